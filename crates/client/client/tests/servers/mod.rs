//! Real servers for the client's tests: Nuthatch, and memcached where it is installed.

#![allow(dead_code)] // Each test program uses some of it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[cfg(all(
    feature = "shm",
    target_os = "linux",
    not(any(nuthatch_unix, nuthatch_portable))
))]
mod rings;
#[path = "../../../../server/cli/tests/running/mod.rs"]
pub mod running;

#[cfg(not(all(
    feature = "shm",
    target_os = "linux",
    not(any(nuthatch_unix, nuthatch_portable))
)))]
mod rings {
    pub type Rings = Vec<()>;

    pub fn take(_: &std::path::Path, _: usize) -> Rings {
        Vec::new()
    }
}

pub use rings::Rings;
use running::{Running, wait_until};
use tempfile::TempDir;

/// Whether clients can read the memory of servers.
pub const HAS_SHARED: bool = cfg!(all(
    feature = "shm",
    target_os = "linux",
    not(any(nuthatch_unix, nuthatch_portable))
));

/// How many rings a server gives, and how many processes may read its memory.
pub const RINGS: usize = 16;

/// A server that ends with the test.
pub enum Server {
    Nuthatch(Running),
    /// One whose memory is read, with the folder of its socket, and the rings that were taken from it.
    Shared(Running, TempDir, Rings),
    Memcached(Memcached),
}

impl Server {
    /// Nuthatch on a port of its own choice.
    pub fn nuthatch(flags: &str) -> Self {
        Self::Nuthatch(Running::start(&format!(
            "-l 127.0.0.1 -p 0 -t 1 -m 64 {flags}"
        )))
    }

    /// Nuthatch whose memory can be read, and which gives rings. None: this system, or this build, has no shm://.
    pub fn shared(flags: &str) -> Option<Self> {
        Self::shared_without(0, flags)
    }

    /// The same, which gives no rings, and is asked by a socket.
    pub fn ringless(flags: &str) -> Option<Self> {
        Self::shared_without(RINGS, flags)
    }

    /// One of which so many rings are taken already.
    fn shared_without(rings: usize, flags: &str) -> Option<Self> {
        if !HAS_SHARED {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        let place = shared.display();
        let line = format!("-l 127.0.0.1 -p 0 -t 1 -m 64 --shared {place} {flags}");
        let running = Running::start(&format!("{line} --shared-clients {RINGS}"));
        let taken = rings::take(&shared, rings);
        Some(Self::Shared(running, folder, taken))
    }

    /// Its process.
    pub fn running(&self) -> &Running {
        match self {
            Self::Nuthatch(running) | Self::Shared(running, ..) => running,
            Self::Memcached(_) => panic!("not a Nuthatch"),
        }
    }

    /// `HOST:PORT`.
    pub fn place(&self) -> String {
        match self {
            Self::Nuthatch(running) | Self::Shared(running, ..) => running.address().to_owned(),
            Self::Memcached(memcached) => format!("127.0.0.1:{}", memcached.port),
        }
    }

    /// What clients call it.
    pub fn name(&self) -> String {
        match self {
            Self::Shared(_, folder, _) => folder.path().join("shared").display().to_string(),
            _ => self.place(),
        }
    }

    pub fn address(&self) -> String {
        match self {
            Self::Shared(_, _, taken) => {
                let or = match taken.is_empty() {
                    true => String::new(),
                    false => format!("?or=tcp://{}", self.place()),
                };
                format!("shm://{}{or}", self.name())
            }
            _ => format!("tcp://{}", self.place()),
        }
    }

    /// The address with options.
    pub fn address_with(&self, options: &str) -> String {
        let address = self.address();
        let mark = if address.contains('?') { '&' } else { '?' };
        format!("{address}{mark}{options}")
    }
}

/// What a child of fork finds; it must be true.
pub fn in_child(finds: impl FnOnce() -> bool) {
    // SAFETY: the child uses a client, memory and a thread, of which it takes no lock that another thread may hold here.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let code = if finds() { 7 } else { 1 };
        // SAFETY: a call without addresses. Nothing is unwound: the test is the parent's.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: the number of the child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status}");
    assert_eq!(libc::WEXITSTATUS(status), 7);
}

/// memcached as a process.
pub struct Memcached {
    child: Child,
    port: u16,
}

impl Memcached {
    /// None: it is not installed.
    pub fn start(flags: &str) -> Option<Self> {
        let port = free_port();
        Self::start_at(port, flags)
    }

    /// On this port, where one ran before.
    pub fn start_at(port: u16, flags: &str) -> Option<Self> {
        let mut command = Command::new("memcached");
        let line = format!("-l 127.0.0.1 -p {port} -u nobody -t 1 -m 64 {flags}");
        command.args(line.split_whitespace()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("skipped: memcached is not installed");
            return None;
        };
        let memcached = Self { child, port };
        wait_until("memcached", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(memcached)
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A port on which nobody listens now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Both servers, or the one that is installed; and, where there is shm://, two whose memory is read, with rings and without.
pub fn both(flags: &str) -> Vec<Server> {
    let mut servers = vec![Server::nuthatch(flags)];
    servers.extend(Server::shared(flags));
    servers.extend(Server::ringless(flags));
    servers.extend(Memcached::start(flags).map(Server::Memcached));
    servers
}

/// Whether a program can be called.
pub fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| Path::new(&folder).join(program).is_file())
}

/// Nuthatch with TLS, and who has signed its certificate, beside whom there is an `other`. None: openssl is not installed.
pub fn with_tls() -> Option<(Server, PathBuf)> {
    if !is_installed("openssl") {
        println!("skipped: openssl is not installed");
        return None;
    }
    let folder = tempfile::tempdir().unwrap().keep();
    let path = |name: &str| folder.join(name).display().to_string();
    let openssl = |line: String| {
        let output = Command::new("openssl")
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    };
    let (extensions, new) = (
        path("extensions"),
        "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes",
    );
    std::fs::write(
        &extensions,
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    for (name, key) in [("other", "other.key"), ("ca", "ca.key")] {
        openssl(format!(
            "req -x509 {new} -keyout {} -out {} -subj /CN={name} -days 2",
            path(key),
            path(name)
        ));
    }
    let (ca, request) = (path("ca"), path("request"));
    openssl(format!(
        "req {new} -keyout {} -out {request} -subj /CN=server",
        path("key")
    ));
    openssl(format!(
        "x509 -req -in {request} -CA {ca} -CAkey {ca}.key -CAcreateserial -out {} -days 2 -extfile {extensions}",
        path("cert")
    ));
    let server = Server::nuthatch(&format!(
        "-Z -o ssl_chain_cert={},ssl_key={}",
        path("cert"),
        path("key")
    ));
    Some((server, ca.into()))
}
