//! Handover, the side of the running server: it gives its sockets and its items to a successor.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;

use mio::net::UnixListener;
use mio::{Events, Interest, Poll, Token, Waker};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::shutdown::Shutdown;

use super::taking::Successor;
use super::wire::Wire;
use super::{ALIVE, CONTROL, HELLO, Named, PATIENCE_OF_CLIENTS};
use crate::persistence::circumstances;
use crate::sharing;
use crate::unix_path::UnixPath;
use crate::worker::DRAIN;

/// Successors that wait: more than one at a time is a mistake.
const BACKLOG: i32 = 4;

/// Successors that were refused, and whose connections are open while another one is served.
const REFUSED_MAX: usize = 16;

/// Permissions of its socket: a process that connects there can take all items.
const OWNER_ALONE: u32 = 0o600;

/// Bytes of items that are sent at a time.
const PIECE: usize = 1 << 20;

/// What a successor receives while another one is served.
const BUSY: &str = "refused: another process is taking over";

/// Where successors ask for a handover.
pub(crate) struct Control {
    poll: Poll,
    /// Wakes the poll.
    waker: Arc<Waker>,
    file: UnixPath,
    offer: Offer,
}

/// What successors get.
struct Offer {
    listener: UnixListener,
    sockets: Vec<Named>,
    /// The lock file of the file of a restart.
    lock: Option<(PathBuf, File)>,
    /// The end to read from, for successors; nothing is ever written.
    alive: PipeReader,
}

/// The other end of the pipe that successors get. It is closed when this server has ended, its items being in files:
/// until then a successor that takes this server's place would have neither its items nor those files.
pub(crate) struct Alive(#[expect(dead_code, reason = "it is there to be open")] PipeWriter);

impl Control {
    /// Listens at `path`, for this user alone. The second value is to be kept until the server has ended. Errors name
    /// the path.
    pub(crate) fn bind(
        path: &Path,
        successor: Option<&mut Successor>,
        shutdown: &Shutdown,
    ) -> io::Result<(Self, Alive)> {
        let named = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("--handover {}: {error}", path.display()),
            )
        };
        let taken = successor.and_then(|successor| successor.unix(path));
        let (socket, file) = match taken {
            Some(taken) => taken,
            None => UnixPath::listen(path, OWNER_ALONE, BACKLOG).map_err(named)?,
        };
        let mut listener = UnixListener::from_std(socket.into());
        let (alive, kept_open) = io::pipe()?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, Token(0), Interest::READABLE)?;
        let waker = Arc::new(Waker::new(registry, Token(1))?);
        shutdown.wake_also(Arc::clone(&waker))?;
        let control = Self {
            poll,
            waker,
            file,
            offer: Offer {
                listener,
                sockets: Vec::new(),
                lock: None,
                alive,
            },
        };
        Ok((control, Alive(kept_open)))
    }

    /// Sets what successors get besides the control socket.
    pub(crate) fn offer(&mut self, sockets: Vec<Named>, lock: Option<(PathBuf, File)>) {
        self.offer.sockets = sockets;
        self.offer.lock = lock;
    }

    /// Hands over to a successor that asks, until the server stops or a handover has succeeded. While one is served, others
    /// are refused.
    pub(crate) fn run(self, shared: &ServerState) -> io::Result<()> {
        let Self {
            mut poll,
            waker,
            file,
            offer,
        } = self;
        let mut events = Events::with_capacity(2);
        thread::scope(|scope| {
            let mut serving: Option<Serving<'_>> = None;
            while !shared.shutdown.is_requested() {
                match poll.poll(&mut events, None) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    polled => polled?,
                }
                serving = serving.and_then(Serving::unless_over);
                while !shared.shutdown.is_requested() {
                    let Some(asked) = offer.accept() else {
                        break;
                    };
                    match &mut serving {
                        Some(serving) => serving.refuse(asked, shared),
                        None => {
                            let serve = || offer.serve(asked, shared);
                            serving = Serving::begin(scope, &waker, serve)
                                .inspect_err(|error| tracing::warn!(%error, "no handover"))
                                .ok();
                        }
                    }
                }
            }
            if let Some(serving) = serving {
                serving.end();
            }
            io::Result::Ok(())
        })?;
        if !shared.pause.is_handed_over() {
            // No successor can ask any more.
            file.remove();
        }
        Ok(())
    }
}

/// A successor that is served by a thread of its own.
struct Serving<'s> {
    thread: ScopedJoinHandle<'s, io::Result<()>>,
    is_over: Arc<AtomicBool>,
    /// Those that were refused meanwhile. What they send is not read, and they would not receive the refusal if their
    /// connection were closed before they had sent it.
    refused: VecDeque<Wire>,
}

/// Says that a thread is over, and wakes the one that waits for it.
struct Over(Arc<AtomicBool>, Arc<Waker>);

impl Drop for Over {
    fn drop(&mut self) {
        // Relaxed: the other thread joins this one before it looks at anything else.
        self.0.store(true, Ordering::Relaxed);
        // If it fails, the next successor wakes the other thread.
        let _ = self.1.wake();
    }
}

impl<'s> Serving<'s> {
    fn begin<'e>(
        scope: &'s Scope<'s, 'e>,
        waker: &Arc<Waker>,
        serve: impl FnOnce() -> io::Result<()> + Send + 's,
    ) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Over(Arc::clone(&is_over), Arc::clone(waker));
        let thread = thread::Builder::new().name("successor".to_owned());
        let thread = thread.spawn_scoped(scope, move || {
            let _over = over;
            serve()
        })?;
        Ok(Self {
            thread,
            is_over,
            refused: VecDeque::new(),
        })
    }

    /// `None` if the successor has taken over, or has not.
    fn unless_over(self) -> Option<Self> {
        // Relaxed: see [`Over`].
        match self.is_over.load(Ordering::Relaxed) {
            false => Some(self),
            true => {
                self.end();
                None
            }
        }
    }

    /// Waits for its end.
    fn end(self) {
        match self.thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "no handover: this server goes on"),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Refuses another one.
    fn refuse(&mut self, asked: UnixStream, shared: &ServerState) {
        let wire = Wire::new(asked, shared.shutdown.clone());
        // It has room for so short a message.
        let sent = wire.and_then(|wire| wire.send(BUSY, None).map(|()| wire));
        match sent {
            Ok(wire) => {
                tracing::warn!("a second process asks for a handover, and is refused");
                self.refused.push_back(wire);
                if self.refused.len() > REFUSED_MAX {
                    self.refused.pop_front();
                }
            }
            Err(error) => tracing::warn!(%error, "handover"),
        }
    }
}

impl Offer {
    /// The next successor, if there is one.
    fn accept(&self) -> Option<UnixStream> {
        match self.listener.accept() {
            Ok((stream, _)) => Some(UnixStream::from(OwnedFd::from(stream))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => {
                tracing::warn!(%error, "handover");
                None
            }
        }
    }

    /// Serves one successor, and requests the stop when the successor serves. Errors: the successor has not taken over.
    fn serve(&self, stream: UnixStream, shared: &ServerState) -> io::Result<()> {
        let wire = Wire::new(stream, shared.shutdown.clone())?;
        let hello = wire.receive()?.0;
        if hello != HELLO {
            wire.send("refused: the running server is of another version", None)?;
            return Err(io::Error::other(format!(
                "who asks is of another version: {hello:?}"
            )));
        }
        wire.send(&format!("socket {CONTROL}"), Some(self.listener.as_fd()))?;
        for Named { name, socket } in &self.sockets {
            wire.send(&format!("socket {name}"), Some(socket.as_fd()))?;
        }
        if let Some((path, lock)) = &self.lock {
            wire.send(&format!("lock {}", path.display()), Some(lock.as_fd()))?;
        }
        wire.send(ALIVE, Some(self.alive.as_fd()))?;
        wire.send("end", None)?;
        wire.expect("ready")?;
        wire.set_patience(PATIENCE_OF_CLIENTS);
        let begun = Instant::now();
        tracing::info!("handover: nothing more is accepted");
        let threads = shared.config.threads.get();
        let scripts = &shared.scripting.running;
        scripts.close(DRAIN);
        let given = match shared.pause.begin(threads, &shared.shutdown) {
            // Unwind safe: who gives only reads the items. After a panic the pause has to end, too: a server that pauses
            // cannot end, and so not save.
            true => catch_unwind(AssertUnwindSafe(|| give(&wire, shared))),
            false => Ok(Err(io::Error::other("the server stops"))),
        };
        // Before the pause ends: otherwise the acceptor could accept a client of the successor, and close it without an
        // answer.
        match given {
            Ok(Ok(_)) => shared.shutdown.request(),
            _ => shared.pause.take_back(),
        }
        scripts.reopen();
        if shared.shutdown.is_requested() {
            // It may have been closed for that before.
            scripts.close(DRAIN);
        }
        shared.pause.end(&shared.shutdown);
        let items = given.unwrap_or_else(|panic| resume_unwind(panic))?;
        let seconds = begun.elapsed().as_secs_f64();
        tracing::info!("handover: {items} items went to another process in {seconds:.1} s");
        Ok(())
    }
}

/// Sends all items. Returns their number, once the successor has them and has got its "go".
fn give(wire: &Wire, shared: &ServerState) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(PIECE, wire);
    let ServerState { engine, clock, .. } = shared;
    let circumstances = circumstances(shared);
    let given = nuthatch_snapshot::write(engine, clock, circumstances, &mut out, &mut || ())?;
    out.flush()?;
    wire.expect("taken")?;
    wire.agree();
    // From here on everything is the successor's: if this process ends now, it leaves no file of items and removes no
    // socket file.
    shared.pause.hand_over();
    sharing::end(shared);
    wire.send("go", None)
        .inspect_err(|_| sharing::begin(shared))?;
    Ok(given.items)
}
