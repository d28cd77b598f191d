//! From which number an engine goes on that takes the items of another.
//!
//! A store's number is its item's cas. A client may hold the cas of an item that is not in the file: it was deleted or
//! replaced, before the file was written or, if the engine went on, after. If the next engine gave that number out
//! again, the client's cas would overwrite a value that it has never seen.

use std::time::Duration;

/// The engine that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It has stored nothing since.
    Last,
    /// It may have gone on, and its last stores are in no file.
    Copy,
}

/// The greatest number that an engine gives out: it has 50 bits.
pub const NUMBER_MAX: u64 = (1 << 50) - 1;

/// The numbers that an engine may have given out in a second: more than any that was measured.
const RATE: u64 = 1 << 24;

/// Of all numbers that are left, the part that one load passes over at most: a file may be old, and a clock wrong.
const PART: u64 = 16;

/// A time that is not known counts as this.
const UNKNOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// In a file of version 1, which does not tell the next number, a cas above this is taken for one that a client chose.
const CHOSEN: u64 = 1 << 47;

/// The numbers in a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    highest: u64,
}

impl Next {
    /// Notes an item's cas.
    pub fn note(&mut self, cas: u64) {
        if cas <= CHOSEN {
            self.highest = self.highest.max(cas);
        }
    }

    /// The number to go on from, after a load of a file that was begun so long ago and says that this is the next number.
    /// The numbers that clients chose do not count then.
    pub fn number(&self, said: Option<u64>, source: Source, age: Option<Duration>) -> u64 {
        let after = |number: u64| NUMBER_MAX.saturating_sub(number) / PART;
        match (said, source) {
            (Some(next), Source::Last) => next,
            (Some(next), Source::Copy) => {
                // A second that has begun counts.
                let seconds = age.unwrap_or(UNKNOWN).as_secs().saturating_add(1);
                next + after(next).min(seconds.saturating_mul(RATE))
            }
            // The items that the file does not have may have had any number.
            (None, _) => self.highest + 1 + after(self.highest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

    #[test]
    fn what_may_have_been_given_out_is_passed_over() {
        let mut next = Next::default();
        for cas in [5, 1 << 48, 900, u64::MAX] {
            next.note(cas);
        }
        assert_eq!(next.number(Some(1000), Source::Last, HOUR), 1000);
        assert_eq!(
            next.number(Some(1000), Source::Copy, HOUR),
            1000 + 3601 * RATE
        );
        let at_once = next.number(Some(1000), Source::Copy, Some(Duration::ZERO));
        assert_eq!(at_once, 1000 + RATE);
        let unknown = next.number(Some(1000), Source::Copy, None);
        assert!(unknown > next.number(Some(1000), Source::Copy, HOUR));
        for source in [Source::Last, Source::Copy] {
            let first = next.number(None, source, HOUR);
            assert!(first > 1 << 45 && first < 1 << 47);
        }
    }

    #[test]
    fn however_often_files_are_loaded_numbers_are_left() {
        for age in [None, Some(Duration::MAX)] {
            let mut number = 1;
            for _ in 0..100 {
                let later = Next::default().number(Some(number), Source::Copy, age);
                assert!(later > number);
                number = later;
            }
            assert!(NUMBER_MAX - number > 1 << 40);
        }
        // A file may say anything.
        let next = Next::default();
        assert_eq!(next.number(Some(u64::MAX), Source::Copy, None), u64::MAX);
    }
}
