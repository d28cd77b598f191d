//! The control words: what a server tells all clients, by a Put into each client's memory. Clients read them there at
//! no cost.
//!
//! ```text
//!  word 0  63..32 epoch
//!       1  63..48 generation  33 set: a flush is under way  32 set: another generation begins  31..0 at this tick
//!       2  when the epoch began, in ticks
//!       3  the tick of the server's clock, if it has one
//!       4  number of the notices that these words, or younger ones, are of (`server::notices`)
//! ```

use std::sync::atomic::Ordering;

use nuthatch_base::sync::clock::TICKS_PER_SECOND;
use nuthatch_engine::Time;
use nuthatch_fabric::Word;

/// The number of control words, and the word behind them, whose number says that they have arrived.
pub const WORDS: usize = 4;
pub const NUMBER: usize = WORDS;

/// The control word that holds the clock.
pub const CLOCK: usize = 3;

/// This many ticks before the next generation begins, sessions leave to the server all operations that a flush
/// concerns. A batch keeps the moment at which it began, and while it is carried out other sessions reach a later one:
/// what one session missed by the flush, another would hit.
const EARLY: u32 = 2 * TICKS_PER_SECOND;

/// Flushes: each pair belongs to a generation, and pairs of earlier generations are flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// The generation of pairs that are stored now.
    pub generation: u16,
    /// When the next begins, unless another flush says otherwise before.
    pub next: Option<Time>,
    /// The present one is about to end.
    pub under_way: bool,
}

impl Flushes {
    /// True if another generation is to begin by a moment.
    #[inline(always)]
    pub fn are_due(&self, now: Time) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// True if the present generation may be over, or will be soon. Then a session that meets a live pair asks the
    /// server, and sets no pair itself. So there is one moment, at the server, from which on no session hits flushed
    /// pairs, and before which no session misses them.
    #[inline(always)]
    pub fn may_be_over(&self, now: Time) -> bool {
        self.under_way || self.are_due(Time(now.0.saturating_add(EARLY)))
    }

    /// Another generation begins now.
    pub fn begin(&mut self) {
        *self = Self {
            generation: self.generation.wrapping_add(1),
            next: None,
            under_way: false,
        };
    }

    /// Makes the next generation the present one if its moment has come. True if it has.
    pub fn begin_due(&mut self, now: Time) -> bool {
        let begun = self.are_due(now);
        if begun {
            *self = Self {
                generation: self.generation.wrapping_add(1),
                next: None,
                ..*self
            };
        }
        begun
    }
}

/// The content of a server's control words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The present epoch.
    pub epoch: u32,
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
    /// True if another epoch should begin. The client then sends a message, from which the server learns that, unless
    /// the server has a clock of its own: direct operations do not involve the server.
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
            u64::from(self.epoch) << 32,
            u64::from(self.flushes.generation) << 48
                | u64::from(self.flushes.under_way) << 33
                | next,
            self.since.0.into(),
            self.clock.0.into(),
        ]
    }

    /// The server's clock alone.
    #[inline]
    pub fn read_clock(words: &[Word]) -> Time {
        // Relaxed: no other read depends on it.
        Time(words[CLOCK].load(Ordering::Relaxed) as u32)
    }

    /// Reads a client's copy of the words.
    #[inline]
    pub fn read(words: &[Word]) -> Self {
        // Acquire: behind the caller's own words; they need not be of one moment.
        let epoch = words[0].load(Ordering::Acquire);
        let flushes = words[1].load(Ordering::Acquire);
        Self {
            epoch: (epoch >> 32) as u32,
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
        flushes.begin();
        assert_eq!(flushes.generation, 1);
        flushes.next = Some(Time(120));
        let early = 120 - EARLY;
        assert!(!flushes.may_be_over(Time(early - 1)) && flushes.may_be_over(Time(early)));
        assert!(flushes.may_be_over(Time(u32::MAX)));
        assert!(!flushes.begin_due(Time(119)) && flushes.begin_due(Time(120)));
        assert_eq!((flushes.generation, flushes.next), (2, None));
        assert!(!flushes.begin_due(Time(140)));
    }

    #[test]
    fn words_come_back() {
        let control = Control {
            epoch: 7,
            flushes: Flushes {
                generation: u16::MAX,
                next: Some(Time(u32::MAX)),
                under_way: true,
            },
            since: Time(9),
            clock: Time(11),
        };
        let words = control.words().map(Word::new);
        assert_eq!(Control::read(&words), control);
        let zero = [0; WORDS].map(Word::new);
        assert_eq!(Control::read(&zero), Control::default());
    }
}
