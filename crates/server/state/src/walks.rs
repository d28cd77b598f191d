//! Walks over all items that clients ask for: dumps of memcached's clients, of which one runs at a time, and the steps
//! of SCAN and RANDOMKEY of Redis' clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Cursor;

use crate::keyspace::LastCount;
use crate::scans::Scans;

/// The walks of a server.
pub struct Walks {
    /// True while a dump runs. Taken with Acquire, returned with Release.
    dumping: Arc<AtomicBool>,
    /// Dumps since the start. Relaxed: a statistic.
    dumps: AtomicU64,
    /// Set by `lru_crawler enable` and `disable`. Relaxed: a switch on which no other memory depends.
    dumps_enabled: AtomicBool,
    /// Where SCANs go on.
    pub scans: Scans,
    /// The last count of the items of each database.
    pub count: LastCount,
    /// Where the next RANDOMKEY begins.
    random: Mutex<Cursor>,
}

/// The right to be the only dump that runs. Dropping it returns the right.
pub struct DumpPermit(Arc<AtomicBool>);

impl Default for Walks {
    fn default() -> Self {
        Self {
            dumping: Arc::default(),
            dumps: AtomicU64::new(0),
            dumps_enabled: AtomicBool::new(true),
            scans: Scans::default(),
            count: LastCount::default(),
            random: Mutex::default(),
        }
    }
}

impl Walks {
    /// The right to dump, if no other dump has it.
    pub fn begin_dump(&self) -> Option<DumpPermit> {
        // Acquire: pairs with the Release of the dump before, in `DumpPermit::drop`.
        let taken =
            self.dumping
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| {
            self.dumps.fetch_add(1, Ordering::Relaxed);
            DumpPermit(Arc::clone(&self.dumping))
        })
    }

    /// True while a dump runs.
    pub fn is_dumping(&self) -> bool {
        // Relaxed: a statistic.
        self.dumping.load(Ordering::Relaxed)
    }

    /// Dumps since the start.
    pub fn dumps(&self) -> u64 {
        self.dumps.load(Ordering::Relaxed)
    }

    /// Lets dumps begin from now on, or not.
    pub fn enable_dumps(&self, enabled: bool) {
        self.dumps_enabled.store(enabled, Ordering::Relaxed);
    }

    /// True if dumps may begin.
    pub fn are_dumps_enabled(&self) -> bool {
        self.dumps_enabled.load(Ordering::Relaxed)
    }

    /// Where a RANDOMKEY begins.
    pub fn random(&self) -> Cursor {
        *self.random.lock()
    }

    /// Where the next RANDOMKEY begins.
    pub fn set_random(&self, cursor: Cursor) {
        *self.random.lock() = cursor;
    }
}

impl Drop for DumpPermit {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Walks::begin_dump`: the next dump begins after this one has ended.
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dump_runs_at_a_time_and_each_is_counted() {
        let walks = Walks::default();
        let first = walks.begin_dump().unwrap();
        assert!(walks.is_dumping() && walks.begin_dump().is_none());
        drop(first);
        assert!(!walks.is_dumping() && walks.begin_dump().is_some());
        assert_eq!(walks.dumps(), 2);
    }
}
