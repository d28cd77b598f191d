//! When a file was written, so that a reader can tell how long ago that was.
//!
//! The wall clock alone does not tell: it may have been set since. On the same machine, as long as that has not been
//! started anew, the time since its start tells.

use std::time::Duration;

use nuthatch_engine::{Wall, boot, since_boot};

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Since 1970, by the wall clock of then.
    pub unix: Duration,
    /// The start of the machine that was the last one then, all zero if it is not known.
    pub boot: [u8; 16],
    /// The time since that start, with all the time that the machine slept.
    pub uptime: Duration,
}

impl Written {
    /// The present.
    pub fn now(wall: &Wall) -> Self {
        Self {
            unix: wall.unix(),
            boot: boot(),
            uptime: since_boot(),
        }
    }

    /// The time from this moment to `now`. `None` if nothing tells: the wall clock shows an earlier time than it did.
    pub fn until(&self, now: &Self) -> Option<Duration> {
        if self.boot == now.boot && self.boot != [0; 16] {
            return now.uptime.checked_sub(self.uptime);
        }
        now.unix.checked_sub(self.unix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix: u64, boot: u8, uptime: u64) -> Written {
        Written {
            unix: Duration::from_secs(unix),
            boot: [boot; 16],
            uptime: Duration::from_secs(uptime),
        }
    }

    #[test]
    fn the_wall_clock_tells_only_from_one_start_of_the_machine_to_another() {
        let written = at(10_000, 1, 500);
        let ago = |now: Written| written.until(&now).map(|ago| ago.as_secs());
        assert_eq!(ago(at(10_060, 1, 560)), Some(60));
        // The clock was set.
        assert_eq!(ago(at(13_660, 1, 560)), Some(60));
        assert_eq!(ago(at(6_460, 1, 560)), Some(60));
        // Another start, or another machine.
        assert_eq!(ago(at(10_060, 2, 5)), Some(60));
        assert_eq!(ago(at(9_000, 2, 5)), None);
        // A machine that does not tell its start.
        let written = at(10_000, 0, 500);
        let now = at(10_060, 0, 5);
        assert_eq!(written.until(&now), Some(Duration::from_secs(60)));
    }
}
