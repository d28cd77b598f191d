//! The counters of workers and of the acceptor, which the [table of metrics](crate::metrics::declared) declares: how
//! requests are counted. Each counter has one writer, so to count is a plain add to a cache line that no other thread
//! writes. `stats` sums over the workers on request.
//!
//! An event of an item is counted by its size class, and as a request whose time will be [measured](super::latency).
//! The sums over all classes are made on request.

use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_engine::Reply;
use nuthatch_engine::counters::Counter;

pub use crate::metrics::declared::{AcceptorCounters, ClassTotals, Totals, WorkerCounters};

use super::latency::Group;
use super::sizes::{CLASSES, Lens};
use crate::metrics::declared::ClassCounters;

/// Counting for the requests of all protocols.
impl WorkerCounters {
    #[inline]
    fn class(&self, lens: Lens) -> &ClassCounters {
        // Class numbers are below CLASSES. The remainder spares the bounds check.
        &self.classes[self.sizes.class(lens) % CLASSES]
    }

    /// Counts a get. For a hit, `hit` has the item's lengths.
    #[inline]
    pub fn count_get(&self, hit: Option<Lens>) {
        match hit {
            Some(lens) => {
                self.class(lens).get_hits.bump();
                self.pending.add(Group::get(lens.value));
            }
            None => {
                self.get_misses.bump();
                self.pending.add(Group::MISS);
            }
        }
    }

    /// Counts a touch, or a get that touches.
    pub fn count_touch(&self, hit: Option<Lens>) {
        self.cmd_touch.bump();
        self.pending.add(Group::TOUCH);
        match hit {
            Some(lens) => self.class(lens).touch_hits.bump(),
            None => self.touch_misses.bump(),
        }
    }

    /// Counts a touch of an item that does not meet its condition.
    pub fn count_refused_touch(&self) {
        self.cmd_touch.bump();
        self.pending.add(Group::TOUCH);
    }

    /// Counts a read of an item's properties.
    pub fn count_look(&self, hit: bool) {
        self.pending.add(Group::OTHER);
        match hit {
            true => self.look_hits.bump(),
            false => self.look_misses.bump(),
        }
    }

    /// Counts a store, whatever its outcome.
    pub fn count_set(&self, offered: Lens) {
        self.class(offered).cmd_set.bump();
        self.pending.add(Group::set(offered.value));
    }

    /// Counts the outcome of a store with a cas.
    pub fn count_cas(&self, offered: Lens, reply: &Reply) {
        match reply {
            Reply::Stored(_) => self.class(offered).cas_hits.bump(),
            Reply::Exists => self.class(offered).cas_badval.bump(),
            _ => self.cas_misses.bump(),
        }
    }

    /// Counts a delete that found an item, or none.
    pub fn count_delete(&self, hit: bool) {
        self.pending.add(Group::DELETE);
        match hit {
            true => self.delete_hits.bump(),
            false => self.delete_misses.bump(),
        }
    }

    /// Counts an addition or a subtraction. For a hit, `hit` has the lengths of the number's item.
    pub fn count_delta(&self, down: bool, hit: Option<Lens>) {
        self.pending.add(Group::DELTA);
        match (hit, down) {
            (Some(lens), false) => self.class(lens).incr_hits.bump(),
            (Some(lens), true) => self.class(lens).decr_hits.bump(),
            (None, false) => self.incr_misses.bump(),
            (None, true) => self.decr_misses.bump(),
        }
    }

    /// The same by the engine's reply. `key` is the length of the key. A value that is no number counts neither as a
    /// hit nor as a miss, and nor does a number that is stored because there was none.
    pub fn count_delta_reply(&self, down: bool, key: usize, reply: &Reply) {
        match reply {
            Reply::Number(_, item) => {
                let value = item.value_len;
                self.count_delta(down, Some(Lens { key, value }));
            }
            Reply::NotFound => self.count_delta(down, None),
            _ => self.pending.add(Group::DELTA),
        }
    }

    /// Counts a failed store.
    pub fn count_failure(&self, reply: &Reply) {
        match reply {
            Reply::TooLarge => self.store_too_large.bump(),
            Reply::OutOfMemory => self.store_no_memory.bump(),
            _ => {}
        }
    }
}

impl Totals {
    /// Keys read by get, gets, mg.
    pub fn cmd_get(&self) -> u64 {
        self.get_hits + self.get_misses
    }
}

/// A counter that shows the count since the last reset. Any thread may reset it.
#[derive(Default)]
pub struct ResettableCounter {
    count: Counter,
    /// The count at the last reset. Relaxed: of two resets at once either is right.
    base: AtomicU64,
}

impl ResettableCounter {
    /// Adds. Only the one writing thread calls this.
    pub fn add(&self, amount: u64) {
        self.count.add(amount);
    }

    /// Adds 1.
    pub fn bump(&self) {
        self.add(1);
    }

    /// The count since the last reset.
    pub fn get(&self) -> u64 {
        // Read the base first: it is never above a count that is read after it, unless a reset comes between the two.
        let base = self.base.load(Ordering::Relaxed);
        self.count.get().saturating_sub(base)
    }

    /// Begins again at 0.
    pub fn reset(&self) {
        self.base.store(self.count.get(), Ordering::Relaxed);
    }
}

impl AcceptorCounters {
    /// Marks whether accepting is suspended. Only the acceptor calls this.
    pub fn set_suspended(&self, suspended: bool) {
        self.suspended.reset();
        self.suspended.add(u64::from(suspended));
    }

    /// Says how many readers of shared memory there are. Only the thread that admits them calls this.
    pub fn set_readers(&self, readers: usize) {
        self.readers.reset();
        self.readers.add(readers as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::sizes::SizeClasses;

    #[test]
    fn totals_are_sums_and_a_reset_zeroes() {
        let [one, two] = [0, 1].map(|_| WorkerCounters::new(SizeClasses::default()));
        let lens = Lens { key: 3, value: 7 };
        one.count_get(Some(lens));
        one.count_get(None);
        two.count_get(Some(lens));
        two.bytes_read.add(10);
        let sum = || {
            let mut totals = Totals::default();
            one.add_to(&mut totals);
            two.add_to(&mut totals);
            totals
        };
        let totals = sum();
        assert_eq!((totals.get_hits, totals.bytes_read), (2, 10));
        assert_eq!((totals.cmd_get(), totals.classes[1].get_hits), (3, 2));
        two.reset();
        assert_eq!((sum().get_hits, sum().bytes_read), (1, 0));
        let told = ResettableCounter::default();
        told.add(3);
        told.reset();
        told.bump();
        assert_eq!(told.get(), 1);
    }

    /// The thread that resets is not the thread that counts: an addition at that moment must not bring old counts back.
    #[test]
    fn a_reset_holds_while_its_worker_counts_on() {
        let counters = WorkerCounters::new(SizeClasses::default());
        counters.bytes_read.add(1 << 40);
        let rounds = 200_000;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..rounds).for_each(|_| counters.bytes_read.bump()));
            for _ in 0..1000 {
                counters.reset();
                let mut totals = Totals::default();
                counters.add_to(&mut totals);
                assert!(totals.bytes_read <= rounds);
            }
        });
    }
}
