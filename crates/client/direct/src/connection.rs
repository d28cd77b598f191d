//! The connection to the server: it brings the descriptors, and its end tells that the server has ended.
//!
//! The server says in its memory when it ends, but not when it is killed. Then the kernel closes the connection, at which
//! a thread waits, so that no get has to ask.

use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, connect, recvmsg,
    socket,
};
use nuthatch_base::memory::shared::ForkMark;
use nuthatch_engine::sharing::{Asks, WELCOME_BYTES, check_answer, hello};
use nuthatch_ring::Offer;

/// How long the server may take for its answer, if nobody says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of the watching thread's stack: it makes one call.
const STACK: usize = 64 << 10;

/// An open connection, and the thread that waits for its end.
pub(crate) struct Connection {
    stream: UnixStream,
    has_ended: Arc<AtomicBool>,
    watching: Option<JoinHandle<()>>,
    mark: ForkMark,
}

/// What the server hands out.
pub(crate) struct Files {
    /// To read.
    pub items: OwnedFd,
    /// To write.
    pub hints: OwnedFd,
    /// If it was asked for.
    pub ring: Option<Offer>,
}

impl Connection {
    /// Connects, and asks for the memory. Errors: see [`Direct::connect`](crate::Direct::connect).
    pub fn open(path: &Path, asks: Asks, patience: Duration) -> io::Result<(Self, Files)> {
        let deadline = Instant::now() + patience;
        let mut stream = connect_by(deadline, path)?;
        // A server that refuses this process does not wait for what it says.
        let said = stream.write_all(&hello(asks));
        let files = match receive(&stream, asks, deadline) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(said.err().unwrap_or(error));
            }
            received => received?,
        };
        stream.set_read_timeout(None)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let watching = watch(stream.try_clone()?, Arc::clone(&has_ended))?;
        let connection = Self {
            stream,
            has_ended,
            watching: Some(watching),
            mark: ForkMark::new()?,
        };
        Ok((connection, files))
    }

    /// False once the server has closed the connection, as it does when it ends in any way.
    #[inline]
    pub fn is_open(&self) -> bool {
        // Relaxed: nothing is read that was written before.
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// True in a child of the process that connected: it has neither the thread nor a connection of its own.
    #[inline]
    pub fn is_childs(&self) -> bool {
        self.mark.is_child()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_childs() {
            // The thread is the parent's, and so is the connection, which a shutdown would end for both.
            std::mem::forget(self.watching.take());
            return;
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(watching) = self.watching.take() {
            // It has nothing to tell.
            let _ = watching.join();
        }
    }
}

/// The time up to then, and some of it in each case: none would be taken for no end.
fn left(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    Some(left.max(Duration::from_millis(1)))
}

fn in_vain() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the server does not answer")
}

/// Connects. A connect waits while as many wait as the server lets wait: for as long as sends may.
fn connect_by(deadline: Instant, path: &Path) -> io::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    let flags = SockFlag::SOCK_CLOEXEC;
    let stream = UnixStream::from(socket(AddressFamily::Unix, SockType::Stream, flags, None)?);
    loop {
        stream.set_write_timeout(left(deadline))?;
        match connect(stream.as_raw_fd(), &address) {
            Ok(()) => return Ok(stream),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Err(in_vain()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives the server's answer.
fn receive(stream: &UnixStream, asks: Asks, deadline: Instant) -> io::Result<Files> {
    let mut answer = [0; WELCOME_BYTES];
    let mut files = Vec::new();
    let mut at = 0;
    while at < WELCOME_BYTES {
        if Instant::now() >= deadline {
            return Err(in_vain());
        }
        stream.set_read_timeout(left(deadline))?;
        let mut space = nix::cmsg_space!([i32; 4]);
        let mut parts = [IoSliceMut::new(&mut answer[at..])];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received = match recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)
        {
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            received => received?,
        };
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = message {
                // SAFETY: the kernel has made these descriptors for this process, and nobody else knows of them.
                files.extend(
                    descriptors
                        .into_iter()
                        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                );
            }
        }
        if received.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        at += received.bytes;
    }
    check_answer(&answer)
        .map_err(|refusal| io::Error::new(ErrorKind::PermissionDenied, refusal))?;
    files_of(files, asks).ok_or_else(|| {
        let words = "the server's answer came without its memory";
        io::Error::new(ErrorKind::InvalidData, words)
    })
}

/// What these descriptors are. None: they are not what was asked for.
fn files_of(files: Vec<OwnedFd>, asks: Asks) -> Option<Files> {
    let mut files = files.into_iter();
    let (items, hints) = (files.next()?, files.next()?);
    let ring = match asks {
        Asks::Reads => None,
        Asks::Ring => Some(Offer {
            memory: files.next()?,
            bell: files.next()?,
        }),
    };
    let is_all = files.next().is_none();
    is_all.then_some(Files { items, hints, ring })
}

/// Starts the thread that waits for the end of a connection. Signals of this process are for its other threads.
fn watch(mut stream: UnixStream, has_ended: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = thread::Builder::new().name("nuthatch-direct".to_owned());
    let spawned = thread.stack_size(STACK).spawn(move || {
        loop {
            match stream.read(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Its end, an error, or a byte, which no server sends.
                _ => break,
            }
        }
        has_ended.store(true, Ordering::Relaxed);
    });
    before.thread_set_mask()?;
    spawned
}
