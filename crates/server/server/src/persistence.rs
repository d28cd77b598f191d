//! Items that outlive the process: the file of a restart (`-e`), and copies of all items (`--save`), which are written
//! at intervals, on request and at the end.
//!
//! The server writes the file of a restart when it stops, also after a panic of one of its threads, and the next server removes the file when it has taken
//! the items. So a server that was killed leaves no file, and the next one starts empty instead of with values that may
//! have changed since. A server takes a copy only if it is told to (`--load`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_base::file::{open_in_place, open_trusted};
use nuthatch_engine::{AnyEngine, Clock};
use nuthatch_settings::config::Persistence;
use nuthatch_snapshot::{Circumstances, Error, Summary, load_file, load_last, save};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::shutdown::Shutdown;

use crate::handover::taking::Successor;
use crate::sys::systemd::{self, NotifyState};

/// The exclusive right of this process to use a file of a restart.
pub(crate) struct Claim {
    path: PathBuf,
    /// The file stays locked as long as this handle, or a copy of it, is open.
    lock: File,
    /// The file that was there when this process got the right.
    before: Option<Identity>,
}

/// Device and inode of a file.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    let there = fs::symlink_metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

impl Claim {
    /// Locks the file's `.lock`. Errors: another process has the lock; the lock file cannot be opened.
    pub(crate) fn of(path: &Path, successor: Option<&mut Successor>) -> io::Result<Self> {
        // The process that hands over shares its lock with this one, and whichever process goes on keeps it.
        if let Some(lock) = successor.and_then(|successor| successor.lock(path)) {
            return Ok(Self::new(path, lock));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("-e {}: {error}", path.display()))
        };
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).mode(0o600);
        let lock = open_in_place(Path::new(&name), options).map_err(named)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self::new(path, lock)),
            Err(TryLockError::WouldBlock) => {
                let words = "another server uses this file";
                Err(named(io::Error::new(io::ErrorKind::ResourceBusy, words)))
            }
            Err(TryLockError::Error(error)) => Err(named(error)),
        }
    }

    fn new(path: &Path, lock: File) -> Self {
        Self {
            path: path.to_owned(),
            lock,
            before: identity(path),
        }
    }

    /// True if the process with which this one shares the lock has left its items since.
    pub(crate) fn was_left_since(&self) -> bool {
        let now = identity(&self.path);
        now.is_some() && now != self.before
    }

    /// The lock, for another process.
    pub(crate) fn copy(&self) -> io::Result<(PathBuf, File)> {
        Ok((self.path.clone(), self.lock.try_clone()?))
    }

    /// Takes the items of the previous server and removes its file: a later start would otherwise take items that have
    /// changed since. So nothing that may fail comes between this call and the first client. A file that cannot be read
    /// is logged and put aside. `None` if there was nothing to take.
    ///
    /// Errors: it is no file, or another user has written it, or may; it cannot be opened or removed; the server is to
    /// stop, and then the file stays.
    pub(crate) fn take(
        &self,
        engine: &Arc<AnyEngine>,
        clock: &Clock,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Summary>> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("-e {}: {error}", self.path.display()))
        };
        let file = match open_trusted(&self.path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.log_missing();
                return Ok(None);
            }
            // A file that no server of this user left may be neither taken nor put aside.
            Err(error) => return Err(named(error)),
        };
        let begun = Instant::now();
        match load_last(engine, clock, &file, &self.path, &mut until(shutdown)) {
            Ok(summary) => {
                log_summary("taken from", &self.path, &summary, begun);
                fs::remove_file(&self.path).map_err(named)?;
                Ok(Some(summary))
            }
            Err(error @ Error::Stopped(_)) => Err(error.into()),
            Err(error) => {
                let aside = match self.put_aside() {
                    Ok(()) => "put aside".to_owned(),
                    Err(error) => format!("stays until the next stop replaces it: {error}"),
                };
                tracing::error!("started empty: {error}; {aside}");
                Ok(None)
            }
        }
    }

    /// There is no file: no server left one, or the server was killed while it wrote the file.
    fn log_missing(&self) {
        let path = self.path.display();
        match nuthatch_base::file::remove_unfinished(&self.path) {
            Ok(true) => tracing::warn!(
                "-e {path}: started empty: the server that was leaving its items there was killed before all were written"
            ),
            Ok(false) => tracing::info!("-e {path}: no items of before"),
            Err(error) => tracing::error!("-e {path}: {error}"),
        }
    }

    /// Puts the file aside if there is one: its items are older than those of the handover. If this process were
    /// killed, the next start would take them.
    pub(crate) fn pass_over(&self) {
        let path = self.path.display();
        match self.put_aside() {
            Ok(()) => {
                tracing::warn!("-e {path}: put aside, for it is older than what came by handover")
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!("-e {path}: older than what came by handover, and stays: {error}");
            }
        }
    }

    fn put_aside(&self) -> io::Result<()> {
        put_aside(&self.path)
    }

    /// Leaves all items for the next server.
    pub(crate) fn leave(&self, shared: &ServerState, progress: &mut dyn FnMut()) -> io::Result<()> {
        write(shared, &self.path, progress)
            .map(|_| ())
            .map_err(io::Error::other)
    }
}

/// Renames a file that is not taken, so that no later start takes it and no save replaces it.
fn put_aside(path: &Path) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".refused");
    fs::rename(path, aside)
}

/// How long systemd waits at most for the next sign of progress, and how often the server extends that time.
const PATIENCE: Duration = Duration::from_secs(300);
const PATIENCE_EVERY: Duration = Duration::from_secs(5);

/// Like [`patience`], but breaks off when the server is to stop: a start may be given up at any moment.
fn until(shutdown: &Shutdown) -> impl FnMut() -> ControlFlow<()> {
    let mut more = patience();
    move || {
        more();
        match shutdown.is_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Asks systemd for more time whenever work has gone on: a start or a stop with many items takes longer than systemd's
/// timeouts. Without systemd this does nothing.
pub(crate) fn patience() -> impl FnMut() {
    let mut asked = None::<Instant>;
    move || {
        if asked.is_some_and(|asked| asked.elapsed() < PATIENCE_EVERY) {
            return;
        }
        asked = Some(Instant::now());
        let more = NotifyState::ExtendTimeoutUsec(PATIENCE.as_micros() as u32);
        systemd::notify(&more);
    }
}

/// Takes the items of the process that hands over, which then ends. `None` if that process has ended meanwhile: this
/// one has its sockets by then, and serves without the items that it has got. Errors: the other process goes on. It is an error, too,
/// if this server is to stop.
pub(crate) fn take_over(
    successor: &Successor,
    path: &Path,
    engine: &Arc<AnyEngine>,
    clock: &Clock,
    shutdown: &Shutdown,
) -> io::Result<Option<Summary>> {
    let begun = Instant::now();
    match successor.take_over(engine, clock, &mut until(shutdown), shutdown) {
        Ok(summary) => {
            log_summary("taken by handover from", path, &summary, begun);
            Ok(Some(summary))
        }
        Err(error) if !shutdown.is_requested() && successor.inherit() => {
            tracing::warn!("the server that was handing over has ended: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Takes the items of a copy, which stays. If the server saves its own copies to that path, it starts empty where there
/// is no copy yet, so that the same flags work for every start, and also where the copy is damaged or of a later
/// version: then it puts the file aside, so that the next save does not replace it.
///
/// Errors: the copy cannot be read, or another user has written it, or may; one that this server does not save is missing, damaged or of a later version; the
/// server is to stop.
pub(crate) fn begin_with(
    path: &Path,
    persistence: &Persistence,
    engine: &Arc<AnyEngine>,
    clock: &Clock,
    shutdown: &Shutdown,
) -> io::Result<Option<Summary>> {
    let begun = Instant::now();
    let is_missing = |error: &Error| matches!(error, Error::Io(_, error) if error.kind() == io::ErrorKind::NotFound);
    let is_its_own = persistence.loads_what_it_saves();
    let opened = open_trusted(path, true).map_err(|error| Error::Io(path.to_owned(), error));
    let mut progress = until(shutdown);
    match opened.and_then(|file| load_file(engine, clock, &file, path, &mut progress)) {
        Ok(summary) => {
            log_summary("taken from", path, &summary, begun);
            Ok(Some(summary))
        }
        Err(error @ Error::Stopped(_)) => Err(error.into()),
        Err(error) if is_its_own && is_missing(&error) => {
            tracing::warn!("started empty: no copy is at {} yet", path.display());
            Ok(None)
        }
        Err(error @ (Error::Damaged(..) | Error::NotASnapshot(_) | Error::Version(..)))
            if is_its_own =>
        {
            put_aside(path).map_err(|failed| {
                let words = format!("--load: {error}; not put aside: {failed}");
                io::Error::new(failed.kind(), words)
            })?;
            tracing::error!("started empty: --load: {error}; put aside");
            Ok(None)
        }
        Err(error) => Err(io::Error::other(format!("--load: {error}"))),
    }
}

/// Writes a copy at each interval and at each request, until the server stops.
pub(crate) fn save_now_and_then(shared: &ServerState, path: &Path, every: Duration) {
    while shared.saves.wait_until_due(&shared.shutdown, every) {
        // An error is logged, and the next copy may succeed.
        let _ = save_and_note(shared, path, &mut patience());
    }
}

/// Writes the last copy, when no client is served any more.
pub(crate) fn save_at_the_end(shared: &ServerState, progress: &mut dyn FnMut()) -> io::Result<()> {
    match &shared.config.persistence.save {
        Some((path, _)) => save_and_note(shared, path, progress).map_err(io::Error::other),
        None => Ok(()),
    }
}

fn save_and_note(
    shared: &ServerState,
    path: &Path,
    progress: &mut dyn FnMut(),
) -> Result<(), Error> {
    let begun = Instant::now();
    let saved = write(shared, path, progress);
    if let Err(error) = &saved {
        tracing::error!("--save: {error}");
    }
    let ServerState {
        saves,
        clock,
        telemetry,
        ..
    } = shared;
    saves.record(&saved, begun.elapsed(), clock, telemetry);
    saved.map(|_| ())
}

/// What a file of items says besides them.
pub(crate) fn circumstances(shared: &ServerState) -> Circumstances {
    Circumstances {
        flush: shared.flush_to_come(),
        mapping: shared.databases.mapping(),
    }
}

fn write(shared: &ServerState, path: &Path, progress: &mut dyn FnMut()) -> Result<Summary, Error> {
    let begun = Instant::now();
    let circumstances = circumstances(shared);
    let summary = save(&shared.engine, &shared.clock, circumstances, path, progress)?;
    log_summary("saved to", path, &summary, begun);
    Ok(summary)
}

/// Logs what was written or taken, as a warning if there was not enough memory for it.
fn log_summary(what: &str, path: &Path, summary: &Summary, begun: Instant) {
    let Summary {
        items,
        bytes,
        left_out,
        evicted,
        ..
    } = summary;
    let seconds = begun.elapsed().as_secs_f64();
    let path = path.display();
    let said = format!("{items} items, {bytes} bytes {what} {path} in {seconds:.1} s; {left_out}");
    match evicted + left_out.too_large + left_out.no_memory {
        0 => tracing::info!("{said}"),
        _ => tracing::warn!("{said}; {evicted} evicted meanwhile for want of memory"),
    }
}
