//! Handover, the side of the successor: it takes the sockets and the items of the running server.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, PipeReader};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nuthatch_engine::{AnyEngine, Clock};
use nuthatch_snapshot::{Progress, Summary};
use nuthatch_state::shutdown::Shutdown;
use socket2::{SockAddr, Socket, Type};

use super::wire::Wire;
use super::{ALIVE, HELLO, HELLO_1, PATIENCE};
use crate::unix_path::{UnixPath, unconnected};

/// The most descriptors that a successor takes. The workers' datagram sockets may be many.
const SOCKETS_MAX: usize = 8192;

/// How long a process that ends may take to close its files, in milliseconds.
const CLOSING_MS: u16 = 1000;

/// How often a successor looks whether there is room for it.
const STEP: Duration = Duration::from_millis(50);

/// Bytes of items that are read at a time.
const PIECE: usize = 1 << 20;

/// A process that takes over, and what it has received so far.
pub(crate) struct Successor {
    wire: Wire,
    path: PathBuf,
    sockets: Vec<(String, Socket)>,
    lock: Option<(PathBuf, File)>,
    /// A pipe that only the other process can write to, so it ends with that process.
    alive: Option<PipeReader>,
    /// True when the other process has handed everything over to this one.
    has_taken_over: Arc<AtomicBool>,
}

impl Successor {
    /// Asks the server that listens at `path` for a handover. `None` if no server listens there. Errors: it refuses, or
    /// does not answer; this server is to stop.
    pub(crate) fn ask(path: &Path, shutdown: &Shutdown) -> io::Result<Option<Self>> {
        match Self::ask_by(path, HELLO, shutdown) {
            // What says no in words may be of an earlier version.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Self::ask_by(path, HELLO_1, shutdown)
            }
            asked => asked,
        }
    }

    fn ask_by(path: &Path, hello: &str, shutdown: &Shutdown) -> io::Result<Option<Self>> {
        let stream = match connect(path, shutdown) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            stream => stream,
        };
        let asked = stream.and_then(|stream| Self::receive(stream, path, hello, shutdown));
        asked
            .map(Some)
            .map_err(|error| named(path, &error, shutdown))
    }

    pub(crate) fn receive(
        stream: UnixStream,
        path: &Path,
        hello: &str,
        shutdown: &Shutdown,
    ) -> io::Result<Self> {
        let wire = Wire::new(stream, shutdown.clone())?;
        wire.send(hello, None)?;
        let mut successor = Self {
            wire,
            path: path.to_owned(),
            sockets: Vec::new(),
            lock: None,
            alive: None,
            has_taken_over: Arc::default(),
        };
        for _ in 0..SOCKETS_MAX {
            let (text, descriptor) = successor.wire.receive()?;
            match (text.split_once(' '), descriptor) {
                (Some(("socket", name)), Some(socket)) => {
                    let name = name.to_owned();
                    successor.sockets.push((name, Socket::from(socket)));
                }
                (Some(("lock", path)), Some(lock)) => {
                    successor.lock = Some((path.into(), File::from(lock)));
                }
                (None, Some(pipe)) if text == ALIVE => {
                    successor.alive = Some(PipeReader::from(pipe))
                }
                (None, None) if text == "end" => return Ok(successor),
                _ => return Err(io::Error::new(ErrorKind::InvalidData, text)),
            }
        }
        Err(io::Error::new(ErrorKind::InvalidData, "too many sockets"))
    }

    /// The socket that listens at this address. If the system is to choose the port, the socket with this name.
    pub(crate) fn tcp(&mut self, name: &str, address: SocketAddr) -> Option<Socket> {
        self.take(name, address.port() == 0, |socket| {
            has_address(socket, Type::STREAM, address)
        })
    }

    /// A socket for datagrams to this address. Each worker has one.
    pub(crate) fn udp(&mut self, address: SocketAddr) -> Option<Socket> {
        self.take("udp", address.port() == 0, |socket| {
            has_address(socket, Type::DGRAM, address)
        })
    }

    /// The socket that listens at this path, and its file.
    pub(crate) fn unix(&mut self, path: &Path) -> Option<(Socket, UnixPath)> {
        let socket = self.take("", false, |socket| {
            let address = socket.local_addr();
            address.is_ok_and(|address| address.as_pathname() == Some(path))
        })?;
        Some((socket, UnixPath::of(path, Arc::clone(&self.has_taken_over))))
    }

    fn take(
        &mut self,
        name: &str,
        by_name: bool,
        is_it: impl Fn(&Socket) -> bool,
    ) -> Option<Socket> {
        let is_it = |(its, socket): &(String, Socket)| (!by_name || its == name) && is_it(socket);
        let at = self.sockets.iter().position(is_it)?;
        Some(self.sockets.remove(at).1)
    }

    /// The lock of the file of a restart, if the other process used the same file.
    pub(crate) fn lock(&mut self, restart: &Path) -> Option<File> {
        let (path, lock) = self.lock.take()?;
        (path == restart).then_some(lock)
    }

    /// Takes all items. When this returns, the other process serves no client any more. Errors: the other process goes
    /// on, unless it has ended: see [`inherit`](Self::inherit). `shutdown` is that of [`ask`](Self::ask).
    pub(crate) fn take_over(
        &self,
        engine: &Arc<AnyEngine>,
        clock: &Clock,
        progress: &mut Progress<'_>,
        shutdown: &Shutdown,
    ) -> io::Result<Summary> {
        let named = |error: io::Error| named(&self.path, &error, shutdown);
        // What was left of it went by while this server prepared its start.
        self.wire.set_patience(PATIENCE);
        self.wire.send("ready", None).map_err(named)?;
        let input = BufReader::with_capacity(PIECE, &self.wire);
        let taken = nuthatch_snapshot::receive(engine, clock, input, &self.path, progress);
        let taken = taken.map_err(io::Error::from).map_err(named)?;
        self.wire.send("taken", None).map_err(named)?;
        // The other process may have ended by the time of a stop, and then nobody else has the items.
        self.wire.agree();
        self.wire.expect("go").map_err(named)?;
        // Release: pairs with the Acquire of UnixPath::remove().
        self.has_taken_over.store(true, Ordering::Release);
        Ok(taken)
    }

    /// After an error of [`take_over`](Self::take_over): takes the place of the other process if it has ended, so that
    /// no process serves but this one. False if it merely gave up, and goes on.
    pub(crate) fn inherit(&self) -> bool {
        let Some(alive) = &self.alive else {
            return false;
        };
        // The kernel closes the files of a process that ends one after the other.
        let mut poll = [PollFd::new(alive.as_fd(), PollFlags::empty())];
        let ended = nix::poll::poll(&mut poll, CLOSING_MS).is_ok_and(|count| count > 0);
        if ended {
            // Release: pairs with the Acquire of UnixPath::remove().
            self.has_taken_over.store(true, Ordering::Release);
        }
        ended
    }
}

/// Connects to the server that listens at `path`. It may not accept for a while, with as many successors waiting as its
/// queue has room for.
fn connect(path: &Path, shutdown: &Shutdown) -> io::Result<UnixStream> {
    let end = Instant::now() + PATIENCE;
    loop {
        let socket = unconnected()?;
        match socket.connect(&SockAddr::unix(path)?) {
            Err(error)
                if error.kind() == ErrorKind::WouldBlock
                    && Instant::now() < end
                    && !shutdown.is_requested() =>
            {
                shutdown.sleep(STEP);
            }
            connected => return connected.map(|()| OwnedFd::from(socket).into()),
        }
    }
}

/// The error with the path. If this server is to stop, the kind says so, whatever was broken off.
fn named(path: &Path, error: &io::Error, shutdown: &Shutdown) -> io::Error {
    let kind = match shutdown.is_requested() {
        true => ErrorKind::Interrupted,
        false => error.kind(),
    };
    io::Error::new(kind, format!("--handover {}: {error}", path.display()))
}

/// True if a socket of this kind has this address, or one that differs in the port, which may be any.
fn has_address(socket: &Socket, kind: Type, wanted: SocketAddr) -> bool {
    let address = socket.local_addr().ok().and_then(|local| local.as_socket());
    let is_kind = socket.r#type().is_ok_and(|its| its == kind);
    is_kind
        && address.is_some_and(|address| {
            let same_port = wanted.port() == 0 || address.port() == wanted.port();
            address.ip() == wanted.ip() && same_port
        })
}
