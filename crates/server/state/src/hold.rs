//! CLIENT PAUSE: clients' requests wait, all or those that write, until a moment or until CLIENT UNPAUSE.
//!
//! A worker looks at the beginning of each of its iterations. It leaves what waits where it is, in the kernel or among its
//! connections, and sleeps until the moment: so nothing grows.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nuthatch_engine::Time;

/// The longest time: nobody can end a hold of all requests earlier, as in Redis.
pub const HOLD_MAX: Duration = Duration::from_secs(60);

/// Which requests wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// None.
    #[default]
    Nothing,
    /// Those that write, and all requests of memcached's clients.
    Writes,
    /// All.
    All,
}

/// Until when requests wait.
#[derive(Default)]
pub struct Hold {
    writes: AtomicU32,
    all: AtomicU32,
}

impl Hold {
    /// Requests wait until this moment, or longer if they do already.
    pub fn begin(&self, held: Held, end: Time) {
        let place = match held {
            Held::Nothing => return,
            Held::Writes => &self.writes,
            Held::All => &self.all,
        };
        // Relaxed, here and below: each worker begins when it sees it.
        place.fetch_max(end.0, Ordering::Relaxed);
    }

    /// Nothing waits any longer. The caller wakes the workers.
    pub fn end(&self) {
        self.writes.store(0, Ordering::Relaxed);
        self.all.store(0, Ordering::Relaxed);
    }

    /// What waits at a moment, and how much longer.
    pub fn at(&self, now: Time) -> (Held, Duration) {
        let left = |place: &AtomicU32| Time(place.load(Ordering::Relaxed)).since(now);
        match (left(&self.all), left(&self.writes)) {
            (Duration::ZERO, Duration::ZERO) => (Held::Nothing, Duration::ZERO),
            (Duration::ZERO, left) => (Held::Writes, left),
            (left, _) => (Held::All, left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_hold_counts_and_all_is_more_than_writes() {
        let (hold, now) = (Hold::default(), Time(100));
        let in_seconds = |seconds| now.after(Duration::from_secs(seconds));
        assert_eq!(hold.at(now).0, Held::Nothing);
        hold.begin(Held::Writes, in_seconds(9));
        hold.begin(Held::Writes, in_seconds(5));
        assert_eq!(hold.at(now), (Held::Writes, Duration::from_secs(9)));
        hold.begin(Held::All, in_seconds(2));
        assert_eq!(hold.at(now), (Held::All, Duration::from_secs(2)));
        assert_eq!(hold.at(in_seconds(2)).0, Held::Writes);
        assert_eq!(hold.at(in_seconds(9)).0, Held::Nothing);
        hold.end();
        assert_eq!(hold.at(now).0, Held::Nothing);
    }
}
