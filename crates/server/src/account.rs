//! How much memory the connections' buffers hold: one account for all workers, and what it lets
//! each turn take.
//!
//! ```text
//!      0 .. EASY           EASY .. FULL                    above FULL
//!      plenty for all      who can take no answer at       as before it, and a command that needs
//!                          once gets no turn               a long buffer to itself is refused
//! ```
//!
//! Above `EASY` replies are made only for sockets that have room for them, so they leave the
//! process in the same round, and clients who do not read add nothing but a short input each. What
//! a worker holds within a round is bounded by the round.

use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_protocol::LINE_MAX;

/// Bytes that all connections together may hold before turns get short.
const EASY: usize = 8 << 20;

/// Bytes at which long commands are refused.
const FULL: usize = 12 << 20;

/// A connection reads at most so much a turn: what it does not use has to be kept.
pub(crate) const READ_MAX: usize = 64 << 10;

/// Whatever the others hold, a connection may read so much.
const READ_LEAST: usize = 1 << 10;

/// The longest value that is awaited in the input buffer; a longer one goes to the engine as it
/// comes in.
pub(crate) const AWAITED_MAX: usize = 16 << 10;

/// The same when memory is tight.
const AWAITED_TIGHT: usize = 256;

/// Unsent output of one turn when memory is tight: a socket that says it takes output has room for
/// twice as much.
const OUTPUT_TIGHT: usize = 8 << 10;

/// Memory that came back is worth a trim from here on.
const TRIM_MIN: usize = 2 << 20;

/// Bytes that connections hold between their turns.
#[derive(Default)]
pub(crate) struct Account {
    held: AtomicUsize,
    /// The most it was since the last trim, if that is worth one.
    peak: AtomicUsize,
}

/// What a turn may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Unsent output beyond which nothing more is understood.
    pub(crate) output_cap: usize,
    /// Requests of one turn in a batch.
    pub(crate) requests_max: usize,
    /// Bytes of a read.
    pub(crate) read_max: usize,
    /// The longest value that is awaited in the input buffer.
    pub(crate) awaited_max: usize,
    /// Memory is tight: only who can take an answer at once has a turn.
    pub(crate) tight: bool,
    /// The longest incomplete command that may be kept.
    pub(crate) waiting_max: usize,
}

impl Account {
    /// A worker's connections hold so much more, or less.
    pub(crate) fn change(&self, by: isize) {
        // Relaxed: a sum on which no other memory depends.
        let before = self.held.fetch_add(by as usize, Ordering::Relaxed);
        let held = before.wrapping_add_signed(by);
        if by > 0 && held >= TRIM_MIN {
            // Relaxed: as above.
            self.peak.fetch_max(held, Ordering::Relaxed);
        }
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        // Relaxed: a sum on which no other memory depends.
        self.held.load(Ordering::Relaxed)
    }

    /// True while connections hold so much that replies of any length must be refused.
    pub(crate) fn is_tight(&self) -> bool {
        self.held() >= EASY
    }

    /// What a turn may take now that so many connections share the account, where a batch holds
    /// `batch_max` requests.
    pub(crate) fn terms(&self, connections: usize, batch_max: usize) -> Terms {
        let held = self.held();
        let connections = connections.max(1);
        if held < EASY {
            let output_cap = (EASY / connections).clamp(2 << 10, 256 << 10);
            return Terms {
                output_cap,
                requests_max: batch_max,
                read_max: output_cap.min(READ_MAX),
                awaited_max: AWAITED_MAX,
                tight: false,
                waiting_max: usize::MAX,
            };
        }
        let share = FULL.saturating_sub(held) / connections;
        Terms {
            output_cap: OUTPUT_TIGHT,
            // However long one reply is, two of them stay within what the socket takes.
            requests_max: 1,
            read_max: share.clamp(READ_LEAST, READ_MAX),
            awaited_max: AWAITED_TIGHT,
            tight: true,
            waiting_max: if held < FULL {
                usize::MAX
            } else {
                LINE_MAX + AWAITED_TIGHT + 2
            },
        }
    }

    /// True each time that half of what was held has come back.
    pub(crate) fn is_worth_a_trim(&self) -> bool {
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
    fn terms_get_short_as_the_account_fills() {
        let account = Account::default();
        let few = account.terms(10, 256);
        assert_eq!((few.output_cap, few.tight), (256 << 10, false));
        assert!(account.terms(10_000, 256).output_cap * 10_000 < 32 << 20);
        account.change(EASY as isize);
        let tight = account.terms(1500, 256);
        assert!(tight.tight && tight.requests_max == 1);
        assert_eq!(tight.waiting_max, usize::MAX);
        account.change((FULL - EASY) as isize);
        let full = account.terms(10_000, 256);
        assert_eq!(full.read_max, READ_LEAST);
        assert!(FULL + 10_000 * (full.read_max + AWAITED_TIGHT) < 32 << 20);
        account.change(-(FULL as isize));
        assert_eq!(account.terms(10, 256), few);
    }

    #[test]
    fn a_trim_is_due_once_after_much_came_back() {
        let account = Account::default();
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
