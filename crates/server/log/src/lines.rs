//! The writer of the log's lines to standard error, to a file, or to a descriptor.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nuthatch_base::file::open_appended;
use nuthatch_base::sync::mutex::Mutex;

/// Bytes that a pipe takes atomically, so that the lines of several processes do not mix (PIPE_BUF).
const PIECE: usize = 4096;

/// Collects lines and writes some at a time.
pub struct Lines {
    state: Mutex<State>,
    progress: AtomicU64,
    lost: Arc<AtomicU64>,
}

struct State {
    /// Whole lines.
    held: Vec<u8>,
    to: To,
}

enum To {
    Stderr,
    File(PathBuf, File),
    Descriptor(File),
}

impl Lines {
    /// To standard error. `lost` counts lines that cannot be written.
    pub fn to_stderr(lost: Arc<AtomicU64>) -> Self {
        Self::to(To::Stderr, lost)
    }

    /// To a file, behind its contents. Errors: it cannot be opened.
    pub fn to_file(path: &Path, lost: Arc<AtomicU64>) -> Result<Self, String> {
        let file = append_to(path)?;
        Ok(Self::to(To::File(path.to_owned(), file), lost))
    }

    /// To a descriptor, which is not opened again.
    pub fn to_descriptor(descriptor: File, lost: Arc<AtomicU64>) -> Self {
        Self::to(To::Descriptor(descriptor), lost)
    }

    fn to(to: To, lost: Arc<AtomicU64>) -> Self {
        Self {
            state: Mutex::new(State {
                held: Vec::with_capacity(PIECE),
                to,
            }),
            progress: AtomicU64::new(0),
            lost,
        }
    }

    /// Adds whole lines to the buffer.
    pub fn append(&self, lines: &[u8]) {
        let mut state = self.state.lock();
        if state.held.len() + lines.len() > PIECE {
            self.write_held(&mut state);
        }
        state.held.extend_from_slice(lines);
        if state.held.len() >= PIECE {
            self.write_held(&mut state);
        }
    }

    /// Writes the buffered lines.
    pub fn flush(&self) {
        self.write_held(&mut self.state.lock());
    }

    /// Opens the file again, if it is one: it has been renamed for rotation. Errors: it cannot be opened, and the old one is
    /// still written.
    pub fn reopen(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        self.write_held(&mut state);
        if let To::File(path, file) = &mut state.to {
            *file = append_to(path)?;
        }
        Ok(())
    }

    /// How many writes were made.
    pub fn progress(&self) -> u64 {
        // Relaxed: the caller polls this counter.
        self.progress.load(Ordering::Relaxed)
    }

    /// Lines that cannot be written are lost: a log must not end the server.
    fn write_held(&self, state: &mut State) {
        let stderr = io::stderr();
        let to = match &state.to {
            To::Stderr => stderr.as_fd(),
            To::File(_, file) | To::Descriptor(file) => file.as_fd(),
        };
        let mut rest = state.held.as_slice();
        while !rest.is_empty() {
            match nix::unistd::write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::EINTR) => {}
                // Another process that shares it made it non-blocking.
                Err(Errno::EAGAIN) => {
                    has_room(to, PollTimeout::NONE);
                }
                Err(_) => {
                    let lost = rest.iter().filter(|&&byte| byte == b'\n').count();
                    // Relaxed: a statistic.
                    self.lost.fetch_add(lost as u64, Ordering::Relaxed);
                    break;
                }
            }
            self.progress.fetch_add(1, Ordering::Relaxed);
        }
        state.held.clear();
    }
}

/// A line comes in one call.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until a write there would not block, or until this timeout. Returns false if there is no room by then.
pub fn has_room(to: BorrowedFd<'_>, most: PollTimeout) -> bool {
    // If `poll` reports nothing, the write returns the error.
    poll(&mut [PollFd::new(to, PollFlags::POLLOUT)], most) != Ok(0)
}

/// The mode of a new file: it tells of peers and keys, which are not for everybody.
const MODE: u32 = 0o640;

/// A pipe without a reader is an error at once: neither a start nor the thread that handles signals waits for a reader.
/// Once it is open, writes wait for the reader.
fn append_to(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let opened = open_appended(path, options.mode(MODE)).and_then(|file| {
        let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
        fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
        Ok(file)
    });
    opened.map_err(|error| format!("--log {}: {error}", path.display()))
}
