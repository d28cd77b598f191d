//! Items that outlive the process: the file of a restart (`-e`), and copies of all items now and then
//! (`--save`).
//!
//! The file of a restart is written when the server stops as it should, and is removed when the next server has taken
//! it: so one that was killed leaves none, and the next one starts empty instead of with values that may have changed
//! since. A copy is only taken by who asks for it (`--load`).

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_engine::{AnyEngine, Clock};
use nuthatch_snapshot::{Error, Summary, load, save};

use crate::shared::Shared;

/// What is kept, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The file of a restart (`-e`).
    pub restart: Option<PathBuf>,
    /// A file to begin with (`--load`), which stays.
    pub load: Option<PathBuf>,
    /// A file that gets a copy of all items (`--save`), and how often (`--save-every`).
    pub save: Option<(PathBuf, Duration)>,
}

/// The right to use a file of a restart, which no other process has.
pub(crate) struct Claim {
    path: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
}

impl Claim {
    /// Errors: another process uses it; it cannot be written.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("-e {}: {error}", path.display()))
        };
        let lock = File::create(&name).map_err(named)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => {
                let words = "another server uses this file";
                Err(named(io::Error::new(io::ErrorKind::ResourceBusy, words)))
            }
            Err(TryLockError::Error(error)) => Err(named(error)),
        }
    }

    /// Takes the items of the server before, if it left any, and removes its file: another start would take items that
    /// have changed since. So nothing that may fail comes between this and the first client. What cannot be taken is
    /// told in the log, and put aside.
    ///
    /// Errors: it is no file; it cannot be removed.
    pub(crate) fn take(&self, engine: &Arc<AnyEngine>, clock: &Clock) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("-e {}: {error}", self.path.display()))
        };
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_file() => {}
            // It was not left by a server, and is not one's own to put aside.
            Ok(_) => return Err(named(io::Error::other("not a file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::info!("-e {}: no items of before", self.path.display());
                return Ok(());
            }
            Err(error) => return Err(named(error)),
        }
        let begun = Instant::now();
        match load(engine, clock, &self.path) {
            Ok(summary) => {
                tell("taken from", &self.path, &summary, begun);
                fs::remove_file(&self.path).map_err(named)?;
            }
            Err(error) => {
                let mut aside = self.path.clone().into_os_string();
                aside.push(".refused");
                tracing::error!("started empty: {error}");
                // Should this fail too, the next end replaces the file.
                let _ = fs::rename(&self.path, aside);
            }
        }
        Ok(())
    }

    /// Leaves all items for the next server.
    pub(crate) fn leave(&self, engine: &Arc<AnyEngine>, clock: &Clock) -> io::Result<()> {
        write(engine, clock, &self.path)
            .map(|_| ())
            .map_err(io::Error::other)
    }
}

/// Takes the items of a file that stays.
pub(crate) fn begin_with(path: &Path, engine: &Arc<AnyEngine>, clock: &Clock) -> io::Result<()> {
    let begun = Instant::now();
    let summary = load(engine, clock, path);
    let summary = summary.map_err(|error| io::Error::other(format!("--load: {error}")))?;
    tell("taken from", path, &summary, begun);
    Ok(())
}

/// Writes copies until the server stops.
pub(crate) fn save_now_and_then(shared: &Shared, path: &Path, every: Duration) {
    while !shared.shutdown.sleep_all(every) {
        let begun = Instant::now();
        let saved = write(&shared.engine, &shared.clock, path);
        if let Err(error) = &saved {
            tracing::error!("--save: {error}");
        }
        shared.saves.lock().note(shared, &saved, begun.elapsed());
    }
}

/// What became of copies that were to be taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saves {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// True if the last one failed.
    pub(crate) last_failed: bool,
    /// When the last one that did not was done, in unix time, and the items in it.
    pub(crate) last_done: u64,
    pub(crate) last_items: u64,
    /// How long the last one took.
    pub(crate) last_took: Duration,
}

impl Saves {
    fn note(&mut self, shared: &Shared, saved: &Result<Summary, Error>, took: Duration) {
        self.last_failed = saved.is_err();
        self.last_took = took;
        let millis = took.as_millis();
        match saved {
            Ok(summary) => {
                self.done += 1;
                self.last_done = shared.clock.unix(shared.clock.now());
                self.last_items = summary.items;
                shared.tell_watchers(format_args!(
                    "type=save state=done items={} bytes={} elapsed_ms={millis}",
                    summary.items, summary.bytes
                ));
            }
            Err(_) => {
                self.failed += 1;
                shared.tell_watchers(format_args!("type=save state=failed elapsed_ms={millis}"));
            }
        }
    }
}

fn write(engine: &Arc<AnyEngine>, clock: &Clock, path: &Path) -> Result<Summary, Error> {
    let begun = Instant::now();
    let summary = save(engine, clock, path)?;
    tell("saved to", path, &summary, begun);
    Ok(summary)
}

fn tell(what: &str, path: &Path, summary: &Summary, begun: Instant) {
    let Summary {
        items,
        bytes,
        left_out,
    } = summary;
    let seconds = begun.elapsed().as_secs_f64();
    let path = path.display();
    tracing::info!(
        "{items} items, {bytes} bytes {what} {path} in {seconds:.1} s; {left_out} left out"
    );
}
