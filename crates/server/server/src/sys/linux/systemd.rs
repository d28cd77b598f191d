//! What systemd is told of the process. The socket for it is opened once, because a process of `-o drop_privileges` opens
//! none later.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::OnceLock;

pub use sd_notify::NotifyState;

/// The variable with the socket's name, which begins with `@` if it lies outside of the file system.
const NAME: &str = "NOTIFY_SOCKET";

/// The socket, once it was asked for; none in a process that systemd has not started as a service of `Type=notify`.
static SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();

/// Opens the socket, if it is not open.
pub fn open() {
    SOCKET.get_or_init(|| match connect() {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(%error, "{NAME}");
            None
        }
    });
}

/// Tells systemd something. Without systemd this does nothing; a state that cannot be sent is lost.
pub fn notify(state: &NotifyState<'_>) {
    open();
    if let Some(Some(socket)) = SOCKET.get()
        && let Err(error) = socket.send(format!("{state}\n").as_bytes())
    {
        tracing::debug!(%error, "{NAME}");
    }
}

fn connect() -> io::Result<Option<UnixDatagram>> {
    let Some(name) = env::var_os(NAME).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    }?;
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    Ok(Some(socket))
}
