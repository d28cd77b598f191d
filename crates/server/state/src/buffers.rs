//! The account of the memory that connections' buffers hold, one for all workers. It limits what each turn may take,
//! and decides when connections must give memory back.
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
//! A turn may leave unsent output up to a part of the free memory. So a few connections that hold much take nothing
//! from the others, and many connections get less each before the bound is reached. A fair share is the mark divided by
//! the number of open connections: if the sum is above a mark, some connection holds more than that. So the bound holds
//! whatever clients do, except for the memory that the workers' iterations add at the same time, which is bounded too.
//! The connections that hold most are closed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are always allowed to all connections together.
const BOUND_LEAST: usize = 4 << 20;

/// Bytes of the bound for each connection that `-c` allows, at least and at most. Between them the engine's memory
/// decides.
const BOUND_EACH: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 10;

/// The bound's part of the engine's memory, beside [`BOUND_BASE`], and the most that it may be of it.
///
/// The process promises to stay within 1.05 times the engine's memory and 32 MiB. The program takes some 14 MiB, and an
/// iteration of each worker up to 2 MiB. The rest is for what connections hold, with a third more for what the allocator
/// needs beside it.
const BOUND_OF_MEMORY: usize = 32;
const BOUND_OF_MEMORY_MOST: usize = 4;

/// What all connections may hold together, however small the engine's memory is, as long as it is not most of it.
const BOUND_BASE: usize = 8 << 20;

/// The least fair share: enough for any line of memcached's, and some value behind it.
pub const SHARE_LEAST: usize = 4 << 10;

/// A connection makes no progress if for this long it has not used up or sent as many bytes as it holds.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The same time if there is hardly any room left: the others cannot wait for long.
pub const PATIENCE_WHEN_FULL: Duration = Duration::from_millis(250);

/// A turn may leave unsent output of one part in this many of the free memory.
const SLICE_OF_FREE: usize = 16;

/// Unsent output of one turn, at least and at most.
const OUTPUT_CAP: std::ops::RangeInclusive<usize> = 2 << 10..=256 << 10;

/// If the cap is below its largest value, a turn may have one request in a batch per this many bytes of the cap: the
/// lengths of replies are not known before.
const OUTPUT_OF_REQUEST: usize = 1 << 10;

/// The most bytes that a connection reads per turn: bytes that it does not use must be kept.
pub const READ_MAX: usize = 64 << 10;

/// The longest value that is awaited in the input buffer. A longer one goes to the engine as it arrives.
pub const AWAITED_MAX: usize = 16 << 10;

/// What all connections may hold together at least, however little memory the system gives.
const WANT_LEAST: usize = 1 << 20;

/// The least peak of held bytes that is worth a trim.
const TRIM_MIN: usize = 2 << 20;

/// Bytes that connections hold between their turns.
pub struct Buffers {
    held: AtomicUsize,
    /// The most that they may hold.
    bound: AtomicUsize,
    /// The most that they may hold because the system gives no more, if that is less.
    want: AtomicUsize,
    /// How often the system had refused memory when `want` was lowered.
    refusals: AtomicU64,
    /// The most bytes held since the last trim, if they are worth another.
    peak: AtomicUsize,
}

/// How much of the bound is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is enough for every connection.
    Plenty,
    /// Connections that hold much and make no progress must give it back.
    Filling,
    /// Connections that hold much and have not just turned it over must give it back.
    Full,
    /// Connections that hold much must give it back.
    Over,
}

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Bytes of unsent output at which the turn parses no more requests.
    pub output_cap: usize,
    /// Requests of one turn in a batch.
    pub requests_max: usize,
    /// Bytes of a read.
    pub read_max: usize,
    /// The longest value that is awaited in the input buffer.
    pub awaited_max: usize,
}

/// The bytes that this many connections may hold together, beside an engine with this much memory.
pub fn bound(connections_max: usize, engine_memory: u64) -> usize {
    let each = |bytes: &usize| connections_max.saturating_mul(*bytes);
    usize::try_from(engine_memory)
        .map_or(usize::MAX, |memory| {
            (BOUND_BASE + memory / BOUND_OF_MEMORY).min(memory / BOUND_OF_MEMORY_MOST)
        })
        .clamp(each(BOUND_EACH.start()), each(BOUND_EACH.end()))
        .max(BOUND_LEAST)
}

impl Buffers {
    /// An account with a bound of `bound` bytes, of which none are held yet.
    pub fn new(bound: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            bound: AtomicUsize::new(bound),
            want: AtomicUsize::new(usize::MAX),
            refusals: AtomicU64::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// The most that connections may hold.
    pub fn bound(&self) -> usize {
        // Relaxed: settings on which no other memory depends.
        let bound = self.bound.load(Ordering::Relaxed);
        bound.min(self.want.load(Ordering::Relaxed))
    }

    /// The system has refused memory so often. If that is more than before, connections may hold less than they do now,
    /// until [`want_is_over`](Self::want_is_over): then it returns true, to one of the threads that tell it.
    #[inline]
    pub fn note_refusals(&self, refusals: u64) -> bool {
        // Relaxed, as all below: numbers on which no other memory depends.
        let before = self.refusals.load(Ordering::Relaxed);
        refusals != before && self.note_more_refusals(before, refusals)
    }

    #[cold]
    fn note_more_refusals(&self, before: u64, refusals: u64) -> bool {
        let noted =
            self.refusals
                .compare_exchange(before, refusals, Ordering::Relaxed, Ordering::Relaxed);
        if noted.is_ok() {
            let want = self.held().min(self.bound()) / 4 * 3;
            self.want.store(want.max(WANT_LEAST), Ordering::Relaxed);
        }
        noted.is_ok()
    }

    /// True if connections may hold less because the system has refused memory.
    pub fn is_in_want(&self) -> bool {
        // Relaxed: as in bound().
        self.want.load(Ordering::Relaxed) != usize::MAX
    }

    /// The system gives memory again.
    pub fn want_is_over(&self) {
        // Relaxed: as in bound().
        self.want.store(usize::MAX, Ordering::Relaxed);
    }

    /// The engine's memory changed, and the bound with it.
    pub fn set_bound(&self, bound: usize) {
        // Relaxed: as in bound().
        self.bound.store(bound, Ordering::Relaxed);
    }

    /// A worker's connections hold this many bytes more, or fewer. True if that raised the level: then sleeping workers
    /// must wake up and check their own connections.
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

    /// The level of the bytes held now.
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

    /// True if enough memory was given back, so that no other connection must give back.
    pub fn is_relieved_of(&self, level: Level) -> bool {
        self.held()
            <= match level {
                Level::Plenty | Level::Filling => self.mark(level),
                // Below the mark, so that the next byte does not bring it back.
                Level::Full => self.bound() / 8 * 7,
                Level::Over => self.mark(Level::Full),
            }
    }

    /// Bytes that each of this many connections may hold without reaching a level.
    pub fn share(&self, level: Level, connections: usize) -> usize {
        (self.mark(level) / connections.max(1)).max(SHARE_LEAST)
    }

    /// The limits of a turn now, if a batch holds `batch_max` requests.
    pub fn turn_limits(&self, batch_max: usize) -> TurnLimits {
        let free = self.bound().saturating_sub(self.held());
        let output_cap = (free / SLICE_OF_FREE).clamp(*OUTPUT_CAP.start(), *OUTPUT_CAP.end());
        let requests_max = if output_cap == *OUTPUT_CAP.end() {
            batch_max
        } else {
            (output_cap / OUTPUT_OF_REQUEST).min(batch_max)
        };
        TurnLimits {
            output_cap,
            requests_max,
            read_max: output_cap.min(READ_MAX),
            awaited_max: output_cap.min(AWAITED_MAX),
        }
    }

    /// True each time that less than half of the peak is still held: then buffers were for a moment what they are not
    /// now.
    pub fn is_worth_a_trim(&self) -> bool {
        // Relaxed: a hint. A peak between the load and the store is missed, the next one is not.
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
            (1024, 64 * MB, 10 * MB),
            (1024, 4 * MB, 4 * MB),
            (1024, 32 * MB, 8 * MB),
            (1024, 256 * MB, 16 * MB),
            (1024, 64 * 1024 * MB, 64 * MB),
            (10_240, 64 * MB, 40 * MB),
            (10_240, 1024 * MB, 40 * MB),
            (10_240, 8 * 1024 * MB, 264 * MB),
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
        let buffers = Buffers::new(16 << 20);
        let ample = buffers.turn_limits(256);
        assert_eq!((ample.output_cap, ample.requests_max), (256 << 10, 256));
        // Fifty lines of 255 KB that never end, or the replies to as many clients that do not read.
        buffers.change(12 << 20);
        assert_eq!(
            (buffers.turn_limits(256), buffers.level()),
            (ample, Level::Plenty)
        );
        buffers.change(1 << 20);
        let fewer = buffers.turn_limits(256);
        assert_eq!((fewer.output_cap, fewer.requests_max), (192 << 10, 192));
        buffers.change(3 << 20);
        let least = buffers.turn_limits(256);
        assert_eq!(
            (least.output_cap, least.requests_max, least.read_max),
            (2 << 10, 2, 2 << 10)
        );
        buffers.change(-(16 << 20));
        assert_eq!(buffers.turn_limits(256), ample);
    }

    #[test]
    fn a_level_that_is_reached_is_told_once() {
        let buffers = Buffers::new(16 << 20);
        assert!(!buffers.change(12 << 20));
        assert!(buffers.change(1) && buffers.level() == Level::Filling);
        assert!(!buffers.change(1));
        assert!(buffers.change(3 << 20) && buffers.level() == Level::Full);
        assert!(buffers.change(1 << 19) && buffers.level() == Level::Over);
        assert!(!buffers.change(-(1 << 19)) && buffers.level() == Level::Full);
        assert!(!buffers.change(-(15 << 20)) && buffers.level() == Level::Plenty);
        assert!(buffers.change(15 << 20));
        // A lower limit raises the level of the same bytes.
        buffers.change(-(8 << 20));
        assert_eq!(buffers.level(), Level::Plenty);
        buffers.set_bound(4 << 20);
        assert_eq!(buffers.level(), Level::Over);
    }

    #[test]
    fn refused_memory_lowers_what_may_be_held_until_the_want_is_over() {
        let buffers = Buffers::new(16 << 20);
        buffers.change(8 << 20);
        assert!(!buffers.note_refusals(0) && !buffers.is_in_want());
        assert!(buffers.note_refusals(2));
        assert!(!buffers.note_refusals(2), "one thread tells it");
        assert_eq!((buffers.bound(), buffers.level()), (6 << 20, Level::Over));
        assert_eq!(buffers.turn_limits(256).output_cap, 2 << 10);
        buffers.change(-(7 << 20));
        assert!(buffers.note_refusals(3));
        assert_eq!(buffers.bound(), WANT_LEAST, "some is always allowed");
        // A setting that changes meanwhile holds afterwards.
        buffers.set_bound(32 << 20);
        assert_eq!(buffers.bound(), WANT_LEAST);
        buffers.want_is_over();
        assert_eq!((buffers.bound(), buffers.is_in_want()), (32 << 20, false));
        assert!(!buffers.note_refusals(3) && buffers.note_refusals(4));
    }

    #[test]
    fn above_a_mark_somebody_holds_more_than_a_fair_share() {
        let buffers = Buffers::new(16 << 20);
        for level in [Level::Filling, Level::Full, Level::Over] {
            for connections in [1, 7, 48, 1500, 3000] {
                let share = buffers.share(level, connections);
                assert!(share * connections <= buffers.mark(level));
            }
        }
        // A small share is always allowed, however many connections there are.
        assert_eq!(buffers.share(Level::Full, 100_000), SHARE_LEAST);
    }

    #[test]
    fn a_trim_is_due_once_after_much_came_back() {
        let buffers = Buffers::new(16 << 20);
        buffers.change(TRIM_MIN as isize - 1);
        buffers.change(1 - TRIM_MIN as isize);
        assert!(!buffers.is_worth_a_trim(), "too little");
        buffers.change(2 * TRIM_MIN as isize);
        assert!(!buffers.is_worth_a_trim(), "still held");
        buffers.change(-3 * TRIM_MIN as isize / 2);
        assert!(buffers.is_worth_a_trim());
        assert!(!buffers.is_worth_a_trim());
    }
}
