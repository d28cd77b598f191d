//! Statistics of the copies of all items (`--save`).

use std::time::Duration;

use nuthatch_snapshot::{Error, Summary};

use crate::server_state::ServerState;

/// Statistics of copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saves {
    /// Copies that were written.
    pub done: u64,
    /// Copies that failed.
    pub failed: u64,
    /// True if the last one failed.
    pub last_failed: bool,
    /// When the last successful one was done, in unix time.
    pub last_done: u64,
    /// Items in the last successful one.
    pub last_items: u64,
    /// How long the last one took.
    pub last_took: Duration,
}

impl Saves {
    /// Records the outcome of a copy, and tells watchers.
    pub fn note(&mut self, shared: &ServerState, saved: &Result<Summary, Error>, took: Duration) {
        self.last_failed = saved.is_err();
        self.last_took = took;
        let millis = took.as_millis();
        match saved {
            Ok(summary) => {
                self.done += 1;
                self.last_done = shared.clock.wall().unix().as_secs();
                self.last_items = summary.items;
                shared.notify_watchers(format_args!(
                    "type=save state=done items={} bytes={} elapsed_ms={millis}",
                    summary.items, summary.bytes
                ));
            }
            Err(_) => {
                self.failed += 1;
                shared.notify_watchers(format_args!("type=save state=failed elapsed_ms={millis}"));
            }
        }
    }
}
