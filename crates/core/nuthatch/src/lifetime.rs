//! How long items live: the time to live, the time to idle, and how both make the one expiry that the engine keeps.
//!
//! The engine keeps one expiry for each item. In a cache with a time to idle the expiry is the earlier of two moments:
//! the end of the time to live, the *deadline*, and the end of the time to idle, which each use moves on. Then the
//! item's flags hold the deadline. (A deadline above 2^14 ticks, 17 minutes after the cache was made, takes a long
//! header: 16 bytes more.)
//!
//! A use does not move the expiry each time, because that takes a lock. The expiry is set a sixteenth of the time to
//! idle too late, the *slack*, and a use moves it only when the last move is longer ago than that:
//!
//! ```text
//!   used          used       used: expiry - now < idle, so the expiry moves
//!    |             |           |
//!    +-------------+-----------+------------- ... ----------+---------+
//!    t             t + slack                           t + idle   t + idle + slack: expiry set at t
//! ```
//!
//! So an item lives for its time to idle after its last use, and for at most a sixteenth of it longer. All ends are
//! rounded up to a tick of the clock, which is a sixteenth of a second. A store reads the exact clock for that. A use
//! does not: it takes for the present the latest that this can be ([`latest`]).

use std::time::Duration;

use nuthatch_engine::{Expiry, Item, Present, Time};

/// How long an item lives after it was stored. A [`Duration`] converts to one.
///
/// ```
/// use std::time::Duration;
/// use nuthatch::{Cache, Lifetime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = Cache::builder().time_to_live(Duration::from_secs(3600)).build()?;
/// cache.insert("an hour", "1")?;
/// cache.insert_for("a minute", "2", Duration::from_secs(60))?;
/// cache.insert_for("as long as there is room", "3", Lifetime::Unlimited)?;
/// # Ok(())
/// # }
/// ```
///
/// No item expires before its time, and none outlives it by more than a sixteenth of a second, and what the kernel's
/// coarse clock lags behind: a few milliseconds. Time goes on while the machine sleeps, and setting the wall clock does
/// not change it. In a cache with a [time to idle](crate::Builder::time_to_idle) an item
/// expires when it was not used for that long, whatever its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Lifetime {
    /// The cache's [time to live](crate::Builder::time_to_live); without one, [`Lifetime::Unlimited`].
    #[default]
    Default,
    /// Until it is removed or evicted.
    Unlimited,
    /// For this long. A duration of more than eight years is unlimited; with a duration of zero the item expires at
    /// once.
    TimeToLive(Duration),
}

impl From<Duration> for Lifetime {
    fn from(time_to_live: Duration) -> Self {
        Lifetime::TimeToLive(time_to_live)
    }
}

/// The cache's own times, for items whose store sets no others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defaults {
    pub time_to_live: Option<Duration>,
    pub idle: Option<Idle>,
}

/// A time to idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    time: Duration,
    /// How much later the expiry is set.
    slack: Duration,
}

/// An item's lifetime, as the engine stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub expiry: Expiry,
    /// In a cache with a time to idle the tick of the deadline, or 0 if there is none.
    pub flags: u32,
}

impl Defaults {
    /// The terms of an item that is stored now.
    #[inline]
    pub fn terms(&self, lifetime: Lifetime, present: impl Fn() -> Present) -> Terms {
        let deadline = match (lifetime, self.time_to_live) {
            (Lifetime::TimeToLive(time), _) | (Lifetime::Default, Some(time)) => {
                at(present().end(time))
            }
            (Lifetime::Default, None) | (Lifetime::Unlimited, _) => Expiry::Never,
        };
        match &self.idle {
            None => Terms {
                expiry: deadline,
                flags: 0,
            },
            Some(idle) => Terms {
                expiry: idle.expiry(deadline, |time| present().end(time)),
                flags: match deadline {
                    Expiry::Never => 0,
                    // Never 0: the clock starts at tick 1.
                    Expiry::At(time) => time.0,
                },
            },
        }
    }
}

impl Idle {
    pub fn new(time: Duration) -> Self {
        let slack = time / 16;
        Self { time, slack }
    }

    pub fn time(&self) -> Duration {
        self.time
    }

    /// The new expiry of an item that was used at `now`, or `None` if its present one will do.
    #[inline]
    pub fn due(&self, item: &Item, now: Time) -> Option<Expiry> {
        let Expiry::At(expiry) = item.expiry else {
            return None;
        };
        let now = latest(now);
        if expiry >= now.after(self.time) {
            return None;
        }
        let deadline = match item.flags {
            0 => Expiry::Never,
            tick => Expiry::At(Time(tick)),
        };
        let moved = self.expiry(deadline, |time| now.after(time));
        Some(moved).filter(|moved| *moved != item.expiry)
    }

    fn expiry(&self, deadline: Expiry, end: impl Fn(Duration) -> Time) -> Expiry {
        match (deadline, at(end(self.time.saturating_add(self.slack)))) {
            (Expiry::At(deadline), Expiry::At(idle)) => Expiry::At(deadline.min(idle)),
            (Expiry::Never, other) | (other, Expiry::Never) => other,
        }
    }
}

/// The expiry of an item that ends at this tick.
fn at(end: Time) -> Expiry {
    match end {
        // Over eight years: beyond the clock's range.
        Time(u32::MAX) => Expiry::Never,
        time => Expiry::At(time),
    }
}

/// The latest that the exact present can be if the coarse clock shows `now`, which is rounded down to a tick and lags
/// behind by less than another.
fn latest(now: Time) -> Time {
    Time(now.0.saturating_add(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1600);
    const SECOND: u32 = 16;

    fn now() -> Present {
        Present::beginning(NOW)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn item(terms: Terms) -> Item {
        Item {
            expiry: terms.expiry,
            flags: terms.flags,
            ..Item::default()
        }
    }

    #[test]
    fn without_a_time_to_idle_the_expiry_is_the_deadline() {
        let defaults = Defaults {
            time_to_live: Some(secs(10)),
            idle: None,
        };
        let terms = |lifetime| defaults.terms(lifetime, now);
        let plain = |expiry| Terms { expiry, flags: 0 };
        assert_eq!(
            terms(Lifetime::Default),
            plain(Expiry::At(Time(1600 + 10 * SECOND)))
        );
        assert_eq!(
            terms(secs(3).into()),
            plain(Expiry::At(Time(1600 + 3 * SECOND)))
        );
        assert_eq!(terms(Lifetime::Unlimited), plain(Expiry::Never));
        assert_eq!(terms(Duration::MAX.into()), plain(Expiry::Never));
        let none = Defaults::default();
        assert_eq!(none.terms(Lifetime::Default, now), plain(Expiry::Never));
    }

    /// Whenever it is used, an item lives for its time to idle from then, at most a sixteenth longer, and never past
    /// its deadline.
    #[test]
    fn uses_move_the_expiry_within_its_bounds() {
        for (idle, to_live) in [
            (16, None),
            (160, None),
            (1, None),
            (16, Some(50)),
            (100, Some(20)),
        ] {
            let defaults = Defaults {
                time_to_live: None,
                idle: Some(Idle::new(secs(idle))),
            };
            let rule = defaults.idle.unwrap();
            let lifetime = to_live.map_or(Lifetime::Default, |time| Lifetime::from(secs(time)));
            let deadline = to_live.map_or(u32::MAX, |time| NOW.0 + time as u32 * SECOND);
            let mut held = item(defaults.terms(lifetime, now));
            let (mut now, mut moves, mut uses) = (NOW, 0, 0);
            for step in (0..1000_u32).map(|step| step * 7 % 23) {
                now = Time(now.0 + step);
                if held.expiry.is_past(now) {
                    break;
                }
                uses += 1;
                if let Some(expiry) = rule.due(&held, now) {
                    assert_ne!(expiry, held.expiry);
                    held.expiry = expiry;
                    moves += 1;
                }
                let ticks = idle as u32 * SECOND;
                let Expiry::At(Time(expiry)) = held.expiry else {
                    panic!("an item without an end")
                };
                let least = latest(now).0 + ticks;
                let most = least + ticks.div_ceil(16);
                assert!((least.min(deadline)..=most.min(deadline)).contains(&expiry));
            }
            match to_live {
                Some(_) => assert!(now.0 >= deadline && held.expiry == Expiry::At(Time(deadline))),
                None if idle > 1 => assert!(uses == 1000 && moves > 10 && moves < uses),
                None => assert!(uses > 1),
            }
        }
    }

    #[test]
    fn the_end_of_the_clock_is_no_end_of_items() {
        let idle = Idle::new(Duration::MAX);
        let held = Item {
            expiry: Expiry::At(Time(1700)),
            ..Item::default()
        };
        assert_eq!(idle.due(&held, NOW), Some(Expiry::Never));
        let late = Idle::new(secs(1000));
        let held = item(Terms {
            expiry: Expiry::At(Time::LAST),
            flags: 0,
        });
        assert_eq!(late.due(&held, Time(u32::MAX - 5)), Some(Expiry::Never));
    }
}
