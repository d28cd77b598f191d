//! What of the items outlives the process, and what became of the copies that were taken.

use std::path::PathBuf;
use std::time::Duration;

use nuthatch_snapshot::{Error, Summary};

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

/// What became of copies that were to be taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saves {
    /// Copies that were taken.
    pub done: u64,
    /// Copies that could not be.
    pub failed: u64,
    /// True if the last one failed.
    pub last_failed: bool,
    /// When the last one that did not was done, in unix time, and the items in it.
    pub last_done: u64,
    /// Items in the last one that was done.
    pub last_items: u64,
    /// How long the last one took.
    pub last_took: Duration,
}

impl Saves {
    /// Notes what became of one, and tells watchers.
    pub fn note(&mut self, shared: &Shared, saved: &Result<Summary, Error>, took: Duration) {
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
