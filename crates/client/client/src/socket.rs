//! A connected socket, or a ring in memory in its place. It never waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use crate::address::Endpoint;
use crate::memory::SharedEnd;
use crate::names;
#[cfg(feature = "tokio")]
use crate::tasks::TaskRing;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Two streams of bytes in memory that the server has mapped, too.
    Ring(SharedEnd),
    /// tokio's own, which know when to wait.
    #[cfg(feature = "tokio")]
    TaskTcp(tokio::net::TcpStream),
    #[cfg(feature = "tokio")]
    TaskUnix(tokio::net::UnixStream),
    #[cfg(feature = "tokio")]
    TaskRing(TaskRing),
}

impl Socket {
    /// Connects, within this time, to the first of the host's addresses that lets it. A ring is no matter of this: it comes
    /// with the server's memory.
    pub fn connect(endpoint: &Endpoint, patience: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Shared(_) => Err(ErrorKind::Unsupported.into()),
            Endpoint::Unix(path) => Ok(Self::Unix(connect_unix(path, patience)?)),
            Endpoint::Tcp { host, port } => {
                let deadline = Instant::now() + patience;
                let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
                for address in names::addresses(host, *port, patience)? {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    match TcpStream::connect_timeout(&address, left) {
                        Ok(stream) => return Ok(Self::Tcp(stream)),
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }

    pub fn set_up(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)
            }
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Ring(_) => Ok(()),
            #[cfg(feature = "tokio")]
            Self::TaskTcp(stream) => stream.set_nodelay(true),
            #[cfg(feature = "tokio")]
            Self::TaskUnix(_) | Self::TaskRing(_) => Ok(()),
        }
    }

    /// Waits until there is something to be read. A read that finds nothing makes it wait again.
    #[cfg(feature = "tokio")]
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::TaskTcp(stream) => stream.readable().await,
            Self::TaskUnix(stream) => stream.readable().await,
            Self::TaskRing(ring) => ring.readable().await,
            Self::Tcp(_) | Self::Unix(_) | Self::Ring(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Waits until the socket takes bytes.
    #[cfg(feature = "tokio")]
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Self::TaskTcp(stream) => stream.writable().await,
            Self::TaskUnix(stream) => stream.writable().await,
            Self::TaskRing(ring) => {
                ring.writable().await;
                Ok(())
            }
            Self::Tcp(_) | Self::Unix(_) | Self::Ring(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// No more is sent and received. What tokio's sockets wait for ends with their tasks.
    pub fn shut_down(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Ring(ring) => ring.shut_down(),
            #[cfg(feature = "tokio")]
            Self::TaskTcp(_) | Self::TaskUnix(_) | Self::TaskRing(_) => Ok(()),
        }
    }
}

/// Connects to a socket in the file system. On Linux a connect waits while as many wait as the server lets wait: for as long as
/// sends may. nuthatch-direct has the same, because neither needs the other.
#[cfg(target_os = "linux")]
fn connect_unix(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + patience;
    let address = UnixAddr::new(path)?;
    let flags = SockFlag::SOCK_CLOEXEC;
    let stream = UnixStream::from(socket(AddressFamily::Unix, SockType::Stream, flags, None)?);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // No time at all would be no end.
        stream.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        match connect(stream.as_raw_fd(), &address) {
            Ok(()) => return Ok(stream),
            // A signal's handler has run.
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let words = "the server takes no more connections at present";
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The same elsewhere, where a connect does not wait.
#[cfg(not(target_os = "linux"))]
fn connect_unix(path: &Path, _: Duration) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

impl Read for &Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).read(room),
            Socket::Unix(stream) => (&*stream).read(room),
            Socket::Ring(ring) => ring.read(room),
            #[cfg(feature = "tokio")]
            Socket::TaskTcp(stream) => stream.try_read(room),
            #[cfg(feature = "tokio")]
            Socket::TaskUnix(stream) => stream.try_read(room),
            #[cfg(feature = "tokio")]
            Socket::TaskRing(ring) => ring.read(room),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write(bytes),
            Socket::Unix(stream) => (&*stream).write(bytes),
            Socket::Ring(ring) => ring.write(bytes),
            #[cfg(feature = "tokio")]
            Socket::TaskTcp(stream) => stream.try_write(bytes),
            #[cfg(feature = "tokio")]
            Socket::TaskUnix(stream) => stream.try_write(bytes),
            #[cfg(feature = "tokio")]
            Socket::TaskRing(ring) => ring.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Ring(ring) => ring.as_fd(),
            #[cfg(feature = "tokio")]
            Self::TaskTcp(stream) => stream.as_fd(),
            #[cfg(feature = "tokio")]
            Self::TaskUnix(stream) => stream.as_fd(),
            #[cfg(feature = "tokio")]
            Self::TaskRing(ring) => ring.as_fd(),
        }
    }
}
