//! The last flush_all.

use std::sync::atomic::{AtomicU32, Ordering};

use nuthatch_engine::Time;

/// The moment of the last flush_all, in ticks; 0 if there was none. Relaxed everywhere: a statistic, and a hint for the
/// thread that saves items, which may see it a moment later.
#[derive(Default)]
pub struct LastFlush(AtomicU32);

impl LastFlush {
    /// All items that exist at this moment expire then.
    pub fn set(&self, at: Time) {
        self.0.store(at.0, Ordering::Relaxed);
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
        Time(self.0.load(Ordering::Relaxed))
    }
}
