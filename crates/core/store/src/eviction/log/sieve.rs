//! SIEVE by the page (NSDI 2024): one queue, and a hand that goes from its oldest page to its newest.
//!
//! The hand empties the pages that it passes. An item that was used since it came, or since the hand passed it last,
//! stays, the others leave. The hand does not come back to what it has kept before it has passed everything newer: so a
//! new item that is not used leaves after a short time, and the items that are used are not copied again and again.
//!
//! ```text
//!   behind the hand                   ahead of it
//!   | kept | kept | kept |  hand ->  | kept before | new | new | open |
//!           main queue               \ main queue /  probation queue
//! ```
//!
//! What the hand keeps is appended to the main queue, which it has passed up to there. When it comes to the page to
//! which new items are appended, it begins again at the oldest page of the main queue, passes all of this queue, and
//! then the pages of new items since. An item pays for its size as under S3-FIFO: see [`cost`](super::cost).
//!
//! Where not to use it: one-pass scans, and loops that are longer than the memory, push items out that are used
//! (docs/hits.md). It has no ghosts, and takes no memory for them.

use super::cost::cost;
use super::{
    Candidate, Evicted, Ghost, Hint, LogPolicy, LogPolicyKind, Memory, Next, Queue, Queues, UNIT,
};

/// SIEVE, as it is chosen.
pub static KIND: LogPolicyKind = LogPolicyKind {
    name: "sieve",
    help: "For cuckoo: one hand over a log, without ghosts",
    ghosts: false,
    build: || Box::new(Sieve::default()),
};

/// The place of the hand.
#[derive(Default)]
pub struct Sieve {
    /// The oldest pages of the main queue that the hand still has ahead of it in this round; 0: it is in the probation
    /// queue.
    ahead: Hint,
}

impl LogPolicy for Sieve {
    fn admit(&self, _: &Ghost, _: &Memory) -> Queue {
        Queue::Probation
    }

    fn note_queues(&self, _: &Queues, _: &Memory) {}

    fn uncounted(&self, _: usize) -> usize {
        0
    }

    /// At first the hand has everything ahead of it.
    fn probation(&self, _: &Memory) -> usize {
        UNIT
    }

    fn next(&self, [_, main]: [usize; 2], _: &Memory) -> Next {
        // Pages with many gaps are emptied out of turn.
        Next::of(match self.ahead.get().min(main as u64) {
            0 => Queue::Probation,
            _ => Queue::Main,
        })
    }

    fn note_emptying(&self, queue: Queue, [_, main]: [usize; 2], _: &Memory) {
        let left = match (queue, self.ahead.get()) {
            // The hand has passed all new items but those in open pages: a new round begins.
            (Queue::Main, 0) => main as u64,
            (Queue::Main, ahead) => (ahead - 1).min(main as u64),
            // There was no page of the main queue left.
            (Queue::Probation, _) => 0,
        };
        self.ahead.set(left);
    }

    fn note_stay(&self, _: Queue) {}

    fn judge(&self, _: Queue, item: &Candidate, memory: &Memory) -> Option<u8> {
        (item.uses >= cost(item, memory.mean)).then_some(0)
    }

    fn note_eviction(&self, _: Queue, _: &Evicted) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MEMORY: Memory = Memory {
        limit: 1 << 20,
        page: 1 << 14,
        mean: 100,
    };

    /// Empties a page as the log does: of the queue that is named, if it has more pages than open ones.
    fn empty(sieve: &Sieve, pages: &mut [usize; 2], open: [usize; 2]) -> Queue {
        let queue = match sieve.next(*pages, &MEMORY).queue {
            Queue::Probation if pages[0] > open[0] => Queue::Probation,
            Queue::Main if pages[1] <= open[1] => Queue::Probation,
            _ => Queue::Main,
        };
        pages[queue as usize] -= 1;
        sieve.note_emptying(queue, *pages, &MEMORY);
        queue
    }

    #[test]
    fn the_hand_passes_what_it_kept_after_everything_newer() {
        use Queue::{Main, Probation};
        let sieve = Sieve::default();
        let mut pages = [4, 0];
        // All of the new pages but the open one; each leaves a page of kept items.
        for _ in 0..3 {
            assert_eq!(empty(&sieve, &mut pages, [1, 0]), Probation);
            pages[1] += 1;
        }
        // A new round: what was kept, and what it keeps again does not count; meanwhile two pages of new items come.
        for _ in 0..3 {
            assert_eq!(empty(&sieve, &mut pages, [1, 0]), Main);
            pages[1] += 1;
        }
        pages[0] += 2;
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Probation);
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Probation);
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Main);
    }

    /// Pages with many gaps are emptied out of turn.
    #[test]
    fn the_hand_does_not_wait_for_pages_that_are_gone() {
        let sieve = Sieve::default();
        let mut pages = [1, 8];
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Queue::Main);
        pages = [3, 0];
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Queue::Probation);
        pages = [2, 5];
        assert_eq!(empty(&sieve, &mut pages, [1, 0]), Queue::Probation);
    }

    #[test]
    fn an_item_stays_once_however_often_it_was_used() {
        let sieve = Sieve::default();
        let left = |uses| {
            let item = Candidate {
                uses,
                bytes: 100,
                random: u32::MAX,
            };
            sieve.judge(Queue::Main, &item, &MEMORY)
        };
        assert_eq!([0, 1, 3].map(left), [None, Some(0), Some(0)]);
    }
}
