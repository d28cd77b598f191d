//! The permissions of a unix socket's file.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nix::sys::stat::{Mode, umask};
use socket2::{SockAddr, Socket};

/// One at a time, since the process has one mask.
static MASK: Mutex<()> = Mutex::new(());

/// Binds the socket to a file with these permission bits. At no moment has the file more.
///
/// These systems change a socket's file by its name alone, which whoever may write into the folder can give to another
/// file. So the mask makes them, as memcached has it: a file that another thread makes meanwhile gets them, too.
pub fn bind(socket: &Socket, path: &Path, mode: u32) -> io::Result<()> {
    let address = SockAddr::unix(path)?;
    let _one = MASK.lock().unwrap_or_else(PoisonError::into_inner);
    let mask = Mode::from_bits_truncate(0o777) - Mode::from_bits_truncate(mode as libc::mode_t);
    let before = umask(mask);
    let bound = socket.bind(&address);
    umask(before);
    bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use socket2::{Domain, Type};

    #[test]
    fn the_mask_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        let mask_of = |name: &str| {
            fs::write(folder.path().join(name), "").unwrap();
            let made = fs::metadata(folder.path().join(name)).unwrap();
            made.permissions().mode() & 0o777
        };
        let before = mask_of("before");
        bind(&socket, &folder.path().join("socket"), 0o700).unwrap();
        assert_eq!(mask_of("after"), before);
    }
}
