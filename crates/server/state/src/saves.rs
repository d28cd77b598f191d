//! The copies of all items (`--save`): when the next one is due, and how they ended.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Clock;
use nuthatch_snapshot::{Error, Summary};

use crate::shutdown::Shutdown;
use crate::telemetry::Telemetry;

/// The copies of a server.
#[derive(Default)]
pub struct Saves {
    stats: Mutex<SaveStats>,
    /// Set to ask for one more copy: see [`Shutdown::ask`].
    requested: AtomicBool,
}

/// Statistics of copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaveStats {
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
    /// Asks for a copy now. If another one is being written, it follows that.
    pub fn request(&self, shutdown: &Shutdown) {
        shutdown.ask(&self.requested);
    }

    /// Waits until the next copy is due: after `interval`, or at a request. False if the server stops instead.
    pub fn wait_until_due(&self, shutdown: &Shutdown, interval: Duration) -> bool {
        shutdown.sleep_until_asked(interval, &self.requested)
    }

    /// The statistics so far.
    pub fn stats(&self) -> SaveStats {
        *self.stats.lock()
    }

    /// Records the outcome of a copy, and notifies watchers.
    pub fn record(
        &self,
        saved: &Result<Summary, Error>,
        took: Duration,
        clock: &Clock,
        telemetry: &Telemetry,
    ) {
        let mut stats = self.stats.lock();
        stats.last_failed = saved.is_err();
        stats.last_took = took;
        let millis = took.as_millis();
        match saved {
            Ok(summary) => {
                stats.done += 1;
                stats.last_done = clock.wall().unix().as_secs();
                stats.last_items = summary.items;
                telemetry.notify_watchers(format_args!(
                    "type=save state=done items={} bytes={} elapsed_ms={millis}",
                    summary.items, summary.bytes
                ));
            }
            Err(_) => {
                stats.failed += 1;
                telemetry
                    .notify_watchers(format_args!("type=save state=failed elapsed_ms={millis}"));
            }
        }
    }
}
