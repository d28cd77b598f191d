//! How much memory the connections' buffers hold: one account for all workers, what it lets each slice
//! take, and when who must give memory back.
//!
//! ```text
//!      0 .. 3/4 of the bound   3/4 .. 15/16                15/16 .. 31/32              above 31/32
//!      plenty for all          a connection that holds     the same after a quarter    a connection that
//!                              more than a fair share,     of a second, until it is    holds more than a
//!                              and has not turned it       7/8                         fair share is closed,
//!                              over for some seconds, is                               until it is 15/16
//!                              closed, until it is 3/4
//! ```
//!
//! A slice may leave a part of what is free, so a few connections that hold much take nothing from the
//! others, and many get less each before the bound is reached. A fair share is the mark's part of each
//! open connection: where the sum is above a mark, somebody holds more than that. So the bound is kept
//! whatever clients do, but for what the workers' iterations add at the same time, which is bounded as well;
//! and those pay who hold most.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are always allowed to all connections together.
const BOUND_LEAST: usize = 4 << 20;

/// Bytes of the bound for each connection that `-c` allows, at least and at most: between them it is the
/// engine's memory that decides.
const BOUND_EACH: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 10;

/// The bound's part of the engine's memory.
const BOUND_OF_MEMORY: usize = 4;

/// A fair share is never less: as much as any line but a long get's, with some value behind it.
pub const SHARE_LEAST: usize = 4 << 10;

/// A connection that has not sent on, or had sent on, as many bytes as it holds for so long makes no progress.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The same where there is hardly any room left: the others cannot wait for long.
pub const PATIENCE_WHEN_FULL: Duration = Duration::from_millis(250);

/// A slice may leave this part of what is free.
const SLICE_OF_FREE: usize = 16;

/// Unsent output of one slice, at least and at most.
const OUTPUT_CAP: std::ops::RangeInclusive<usize> = 2 << 10..=256 << 10;

/// With less than the largest cap, a batch holds one request of a slice for so many bytes of it: how long
/// replies are is not known before.
const OUTPUT_OF_REQUEST: usize = 1 << 10;

/// A connection reads at most so much a slice: what it does not use has to be kept.
pub const READ_MAX: usize = 64 << 10;

/// The longest value that is awaited in the input buffer; a longer one goes to the engine as it
/// comes in.
pub const AWAITED_MAX: usize = 16 << 10;

/// Memory that came back is worth a trim from here on.
const TRIM_MIN: usize = 2 << 20;

/// Bytes that connections hold between their slices.
pub struct Account {
    held: AtomicUsize,
    /// The most that they may hold.
    bound: AtomicUsize,
    /// The most it was since the last trim, if that is worth one.
    peak: AtomicUsize,
}

/// How much of the bound is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is as much as anybody wants.
    Plenty,
    /// Connections that hold much and make no progress must give it back.
    Filling,
    /// Connections that hold much and have not just turned it over must give it back.
    Full,
    /// Connections that hold much must give it back.
    Over,
}

/// What a slice may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Unsent output beyond which nothing more is understood.
    pub output_cap: usize,
    /// Requests of one slice in a batch.
    pub requests_max: usize,
    /// Bytes of a read.
    pub read_max: usize,
    /// The longest value that is awaited in the input buffer.
    pub awaited_max: usize,
}

/// What so many connections may hold together, beside an engine with so much memory.
pub fn bound(connections_max: usize, engine_memory: u64) -> usize {
    let each = |bytes: &usize| connections_max.saturating_mul(*bytes);
    usize::try_from(engine_memory)
        .map_or(usize::MAX, |memory| memory / BOUND_OF_MEMORY)
        .clamp(each(BOUND_EACH.start()), each(BOUND_EACH.end()))
        .max(BOUND_LEAST)
}

impl Account {
    /// Nothing is held yet, of `bound` bytes.
    pub fn new(bound: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            bound: AtomicUsize::new(bound),
            peak: AtomicUsize::new(0),
        }
    }

    /// The most that connections may hold.
    pub fn bound(&self) -> usize {
        // Relaxed: a setting on which no other memory depends.
        self.bound.load(Ordering::Relaxed)
    }

    /// The engine's memory changed, and the bound with it.
    pub fn set_bound(&self, bound: usize) {
        // Relaxed: as in bound().
        self.bound.store(bound, Ordering::Relaxed);
    }

    /// A worker's connections hold so much more, or less. True if that raised the level: a worker that sleeps
    /// must look whether it is his to give back.
    pub fn change(&self, by: isize) -> bool {
        // Relaxed: a sum on which no other memory depends.
        let before = self.held.fetch_add(by as usize, Ordering::Relaxed);
        let held = before.wrapping_add_signed(by);
        if by > 0 && held >= TRIM_MIN {
            // Relaxed: as above.
            self.peak.fetch_max(held, Ordering::Relaxed);
        }
        self.level_of(before) < self.level_of(held)
    }

    /// Bytes held now.
    pub fn held(&self) -> usize {
        // Relaxed: a sum on which no other memory depends.
        self.held.load(Ordering::Relaxed)
    }

    /// How much that is.
    pub fn level(&self) -> Level {
        self.level_of(self.held())
    }

    fn level_of(&self, held: usize) -> Level {
        if held <= self.mark(Level::Filling) {
            Level::Plenty
        } else if held <= self.mark(Level::Full) {
            Level::Filling
        } else if held <= self.mark(Level::Over) {
            Level::Full
        } else {
            Level::Over
        }
    }

    /// Bytes above which a level begins.
    fn mark(&self, level: Level) -> usize {
        match level {
            Level::Plenty => 0,
            Level::Filling => self.bound() / 4 * 3,
            Level::Full => self.bound() / 16 * 15,
            Level::Over => self.bound() / 32 * 31,
        }
    }

    /// True if so much was given back that nobody else needs to.
    pub fn is_relieved_of(&self, level: Level) -> bool {
        self.held()
            <= match level {
                Level::Plenty | Level::Filling => self.mark(level),
                // Below the mark, so that the next byte does not bring it back.
                Level::Full => self.bound() / 8 * 7,
                Level::Over => self.mark(Level::Full),
            }
    }

    /// Bytes that each of so many connections may hold so that a level never begins.
    pub fn share(&self, level: Level, connections: usize) -> usize {
        (self.mark(level) / connections.max(1)).max(SHARE_LEAST)
    }

    /// What a slice may take now, where a batch holds `batch_max` requests.
    pub fn terms(&self, batch_max: usize) -> Terms {
        let free = self.bound().saturating_sub(self.held());
        let output_cap = (free / SLICE_OF_FREE).clamp(*OUTPUT_CAP.start(), *OUTPUT_CAP.end());
        let requests_max = if output_cap == *OUTPUT_CAP.end() {
            batch_max
        } else {
            (output_cap / OUTPUT_OF_REQUEST).min(batch_max)
        };
        Terms {
            output_cap,
            requests_max,
            read_max: output_cap.min(READ_MAX),
            awaited_max: output_cap.min(AWAITED_MAX),
        }
    }

    /// True each time that half of what was held has come back.
    pub fn is_worth_a_trim(&self) -> bool {
        // Relaxed: a hint. A peak that comes between is missed, and the next one is not.
        let peak = self.peak.load(Ordering::Relaxed);
        let held = self.held();
        let worth = peak >= TRIM_MIN && held < peak / 2;
        if worth {
            self.peak.store(held, Ordering::Relaxed);
        }
        worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_follows_the_connections_and_the_memory() {
        const MB: u64 = 1 << 20;
        for (connections, memory, expected) in [
            (1024, 64 * MB, 16 * MB),
            (1024, 4 * MB, 4 * MB),
            (1024, 200 * MB, 50 * MB),
            (1024, 64 * 1024 * MB, 64 * MB),
            (10_240, 64 * MB, 40 * MB),
            (10_240, 1024 * MB, 256 * MB),
            (10, 1024 * MB, 4 * MB),
            (usize::MAX, 64 * MB, u64::MAX),
        ] {
            assert_eq!(
                bound(connections, memory) as u64,
                expected,
                "{connections} {memory}"
            );
        }
    }

    #[test]
    fn who_holds_nothing_has_its_terms_until_three_quarters_are_held() {
        let account = Account::new(16 << 20);
        let ample = account.terms(256);
        assert_eq!((ample.output_cap, ample.requests_max), (256 << 10, 256));
        // Fifty lines of 255 KB that never end, or the replies to as many who do not read.
        account.change(12 << 20);
        assert_eq!(
            (account.terms(256), account.level()),
            (ample, Level::Plenty)
        );
        account.change(1 << 20);
        let fewer = account.terms(256);
        assert_eq!((fewer.output_cap, fewer.requests_max), (192 << 10, 192));
        account.change(3 << 20);
        let least = account.terms(256);
        assert_eq!(
            (least.output_cap, least.requests_max, least.read_max),
            (2 << 10, 2, 2 << 10)
        );
        account.change(-(16 << 20));
        assert_eq!(account.terms(256), ample);
    }

    #[test]
    fn a_level_that_is_reached_is_told_once() {
        let account = Account::new(16 << 20);
        assert!(!account.change(12 << 20));
        assert!(account.change(1) && account.level() == Level::Filling);
        assert!(!account.change(1));
        assert!(account.change(3 << 20) && account.level() == Level::Full);
        assert!(account.change(1 << 19) && account.level() == Level::Over);
        assert!(!account.change(-(1 << 19)) && account.level() == Level::Full);
        assert!(!account.change(-(15 << 20)) && account.level() == Level::Plenty);
        assert!(account.change(15 << 20));
        // A limit that is lowered makes what is held more.
        account.change(-(8 << 20));
        assert_eq!(account.level(), Level::Plenty);
        account.set_bound(4 << 20);
        assert_eq!(account.level(), Level::Over);
    }

    #[test]
    fn above_a_mark_somebody_holds_more_than_a_fair_share() {
        let account = Account::new(16 << 20);
        for level in [Level::Filling, Level::Full, Level::Over] {
            for connections in [1, 7, 48, 1500, 3000] {
                let share = account.share(level, connections);
                assert!(share * connections <= account.mark(level));
            }
        }
        // A little is nobody's fault, however many they are.
        assert_eq!(account.share(Level::Full, 100_000), SHARE_LEAST);
    }

    #[test]
    fn a_trim_is_due_once_after_much_came_back() {
        let account = Account::new(16 << 20);
        account.change(TRIM_MIN as isize - 1);
        account.change(1 - TRIM_MIN as isize);
        assert!(!account.is_worth_a_trim(), "too little");
        account.change(2 * TRIM_MIN as isize);
        assert!(!account.is_worth_a_trim(), "still held");
        account.change(-3 * TRIM_MIN as isize / 2);
        assert!(account.is_worth_a_trim());
        assert!(!account.is_worth_a_trim());
    }
}
