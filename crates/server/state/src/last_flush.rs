//! The last flush_all.

use std::sync::atomic::{AtomicU32, Ordering};

use nuthatch_engine::Time;

/// The moment of the last flush_all. Relaxed everywhere: a statistic, and a hint for the threads that save items and tell
/// of flushes, which may see it a moment later.
#[derive(Default)]
pub struct LastFlush {
    /// In ticks; 0 if there was none.
    at: AtomicU32,
    /// The same if it was delayed and nobody has been told yet that it has come, else 0.
    untold: AtomicU32,
}

impl LastFlush {
    /// All items that exist at this moment expire then. True if it takes the place of a delayed flush that has come, and
    /// that nobody was told of.
    pub fn set(&self, now: Time, at: Time) -> bool {
        self.at.store(at.0, Ordering::Relaxed);
        let untold = if at > now { at.0 } else { 0 };
        is_due(self.untold.swap(untold, Ordering::Relaxed), now)
    }

    /// True if it was delayed and has come: once, so that the caller tells of it.
    pub fn take_due(&self, now: Time) -> bool {
        let untold = self.untold.load(Ordering::Relaxed);
        // If another flush has taken its place meanwhile, that one's caller tells of both.
        is_due(untold, now)
            && self
                .untold
                .compare_exchange(untold, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The second of the last flush; 0 if there was none.
    pub fn seconds(&self) -> u32 {
        self.get().seconds()
    }

    /// Its moment, if it is still to come.
    pub fn to_come(&self, now: Time) -> Option<Time> {
        let at = self.get();
        (at > now).then_some(at)
    }

    /// True if its moment is neither earlier nor later than these.
    pub fn is_between(&self, from: Time, to: Time) -> bool {
        (from..=to).contains(&self.get())
    }

    fn get(&self) -> Time {
        Time(self.at.load(Ordering::Relaxed))
    }
}

fn is_due(untold: u32, now: Time) -> bool {
    untold != 0 && untold <= now.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_flush_is_told_once_when_it_comes() {
        let last = LastFlush::default();
        assert!(!last.take_due(Time(5)));
        assert!(!last.set(Time(5), Time(5)));
        assert!(!last.take_due(Time(6)), "it was told at once");
        assert!(!last.set(Time(6), Time(10)));
        assert!(!last.set(Time(7), Time(20)), "the last counts");
        assert!(!last.take_due(Time(19)));
        assert!(last.take_due(Time(20)));
        assert!(!last.take_due(Time(21)));
        assert!(!last.set(Time(21), Time(30)));
        assert!(last.set(Time(30), Time(40)), "nobody has looked");
        assert!(!last.set(Time(31), Time(31)));
        assert!(!last.take_due(Time(50)), "it does not come any more");
    }
}
