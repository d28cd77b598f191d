//! What a server tells all clients, by a Put into each one's memory; they read it there at no cost.
//!
//! ```text
//!  word 0  63..32 epoch               31..0 expiration bar: who was last used before it is gone
//!       1  63..48 generation  33 set: a flush is under way  32 set: another generation begins  31..0 at this tick
//!       2  when the epoch began, in ticks
//!       3  the tick of the server's clock, if it has one
//!       4  mark: the number of the news that these words, or younger ones, are of (`server::news`)
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_engine::Time;
use nuthatch_sync::clock::TICKS_PER_SECOND;

/// Words of it, and the one behind them that says that they have arrived.
pub const WORDS: usize = 4;
pub const MARK: usize = WORDS;

const CLOCK: usize = 3;

/// Flushes: a pair is of a generation, and those of earlier ones are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// The generation of what is stored now.
    pub generation: u16,
    /// When the next begins.
    pub next: Option<Time>,
    /// The present one is about to end: a session that meets a pair of it asks the server. So there is one moment, at
    /// the server, from which on nobody hits what is flushed, and before which nobody misses it.
    pub under_way: bool,
}

impl Flushes {
    /// The generation at a moment.
    #[inline(always)]
    pub fn at(&self, now: Time) -> u16 {
        let begun = self.next.is_some_and(|next| next <= now);
        self.generation.wrapping_add(u16::from(begun))
    }

    /// True if a session may hit a live pair of this generation itself.
    #[inline(always)]
    pub fn are_over(&self, generation: u16, now: Time) -> bool {
        !self.under_way || generation != self.at(now)
    }

    /// Everything stored before `at` is gone from then on.
    pub fn flush(&mut self, now: Time, at: Time) {
        self.begin_due(now);
        *self = match at <= now {
            true => Self {
                generation: self.generation.wrapping_add(1),
                next: None,
                under_way: false,
            },
            false => Self {
                next: Some(at),
                ..*self
            },
        };
    }

    /// A generation that has begun is the present one. True if one has.
    pub fn begin_due(&mut self, now: Time) -> bool {
        let generation = self.at(now);
        let begun = generation != self.generation;
        if begun {
            *self = Self {
                generation,
                next: None,
                ..*self
            };
        }
        begun
    }
}

/// What a server tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The present epoch.
    pub epoch: u32,
    /// The oldest epoch of a pair that is there.
    pub bar: u32,
    /// Flushes.
    pub flushes: Flushes,
    /// When the epoch began.
    pub since: Time,
    /// The present moment by the server's clock; 0 if it has none.
    pub clock: Time,
}

/// The longest epoch: a second.
const EPOCH: u32 = TICKS_PER_SECOND;

impl Control {
    /// True if another epoch is to begin. Who meets that sends a message, by which the server learns of it, unless it has
    /// a clock of its own: direct operations do not call on it.
    #[inline]
    pub fn is_overdue(&self, now: Time) -> bool {
        now.0 >= self.since.0.saturating_add(EPOCH)
    }

    /// As words.
    pub fn words(&self) -> [u64; WORDS] {
        let next = self
            .flushes
            .next
            .map_or(0, |next| 1 << 32 | u64::from(next.0));
        [
            u64::from(self.epoch) << 32 | u64::from(self.bar),
            u64::from(self.flushes.generation) << 48
                | u64::from(self.flushes.under_way) << 33
                | next,
            self.since.0.into(),
            self.clock.0.into(),
        ]
    }

    /// The server's clock alone.
    #[inline]
    pub fn read_clock(words: &[AtomicU64]) -> Time {
        // Relaxed: nothing else is read by it.
        Time(words[CLOCK].load(Ordering::Relaxed) as u32)
    }

    /// Of a client's words.
    #[inline]
    pub fn read(words: &[AtomicU64]) -> Self {
        // Acquire: behind the caller's own words; they need not be of one moment.
        let ages = words[0].load(Ordering::Acquire);
        let flushes = words[1].load(Ordering::Acquire);
        Self {
            epoch: (ages >> 32) as u32,
            bar: ages as u32,
            flushes: Flushes {
                generation: (flushes >> 48) as u16,
                next: (flushes >> 32 & 1 != 0).then_some(Time(flushes as u32)),
                under_way: flushes >> 33 & 1 != 0,
            },
            since: Time(words[2].load(Ordering::Acquire) as u32),
            clock: Self::read_clock(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_begins_a_generation() {
        let mut flushes = Flushes::default();
        flushes.flush(Time(10), Time(10));
        assert_eq!(flushes.at(Time(10)), 1);
        flushes.flush(Time(10), Time(20));
        assert_eq!((flushes.at(Time(19)), flushes.at(Time(20))), (1, 2));
        // A later call replaces a delayed one that has not begun, and adds to one that has.
        flushes.flush(Time(15), Time(30));
        assert_eq!((flushes.at(Time(29)), flushes.at(Time(30))), (1, 2));
        flushes.flush(Time(31), Time(31));
        assert_eq!(flushes.at(Time(31)), 3);
        assert!(!flushes.begin_due(Time(40)));
    }

    #[test]
    fn words_come_back() {
        let control = Control {
            epoch: 7,
            bar: 5,
            flushes: Flushes {
                generation: u16::MAX,
                next: Some(Time(u32::MAX)),
                under_way: true,
            },
            since: Time(9),
            clock: Time(11),
        };
        let words = control.words().map(AtomicU64::new);
        assert_eq!(Control::read(&words), control);
        let zero = [0; WORDS].map(AtomicU64::new);
        assert_eq!(Control::read(&zero), Control::default());
    }
}
