//! S3-FIFO on pages: two queues and ghosts (S3-FIFO, SOSP 2023; on segments, as in Segcache, NSDI 2021).
//!
//! New items go through a probation queue, at first a sixth of the memory. Items that were used in its older half go to
//! the main queue, the others become ghosts. A ghost that comes back soon goes to the main queue at once. At the end of
//! the main queue an item stays for each use since it came or was passed last. So a scan passes without pushing out
//! items that are used.
//!
//! *Soon* is judged as in LIRS (SIGMETRICS 2002), which compares the time since an item's last use with the time since
//! the last use of the item that it would push out. Here: the main queue turns over in the time in which an
//! item goes from its beginning to its end. A ghost that was away for longer would leave the main queue before its next
//! use, and only push out others; it goes through the probation queue again. Time is counted in ghosts. If no item
//! comes to the main queue, none leaves it, and its turnover gets longer and longer: so a loop that is longer than the
//! memory keeps a part of itself there, and items that are no longer used make way.
//!
//! Uses in the newer half of the probation queue do not count (Clock2Q+, VLDB 2026): an item that is used often within
//! a short time, and then no more, is not worth more than one that is used once. But where much is used there and
//! nothing later, the main queue would keep for ever what was used long ago. So for each page's worth of items that
//! leave although they were used there, a page of the main queue is due: if hardly any of its items were used, it is
//! cleaned, otherwise it goes to the back of its queue, and each of them pays a use. So items that are used several times
//! at once, and never again, leave the main queue as it is while it is in use. Items that are not used at all, as in a
//! scan or in a loop that is longer than the memory, do not even make it pay.
//!
//! How long the probation queue should be depends on the requests. Where items are requested a few times within some
//! while and then no more, a short one lets them leave too early, and those that come back fill the main queue although
//! they are not requested much longer. Where a loop is longer than the memory, only what is in the main queue is met
//! again, and the probation queue is room lost. So its length adapts, as in ARC (FAST 2003): items that leave the main
//! queue become ghosts, too. An item that comes back soon after it left the probation queue makes that queue longer. One
//! that comes back later than the memory could have held it makes it shorter, but counts less; and one that left the main
//! queue makes it shorter and counts more, since fewer items leave there. One that comes back between soon and late does
//! neither: it would have been kept by a queue of nearly all of the memory. (Otherwise keys that are read once, some while
//! after they were written, made the queue shorter and shorter, and none of them hit.)
//!
//! What an item pays for staying depends on its [size](super::cost). An item of less than a quarter of the mean size
//! comes to the main queue without a use. Such small items can do no harm: all items that are smaller than a quarter of
//! the mean take less than a quarter of the memory.

use super::cost::cost;
use super::{
    Candidate, Evicted, Ghost, Hint, LogPolicy, LogPolicyKind, Memory, Next, Queue, Queues, UNIT,
};

/// The probation queue's share of all pages at first. This and the constants below were chosen on all traces of
/// docs/hits.md, at several sizes each; docs/notebook.md has the results of other values.
const PROBATION: usize = 10;

/// Its least and its greatest share.
const PROBATION_MIN: usize = 3;
const PROBATION_MAX: usize = 48;

/// A longer probation queue would have kept an item that comes back before this part of the items that the memory holds
/// became ghosts.
const NEAR_PROBATION: u64 = 16;

/// No queue would have kept an item that comes back after this part.
const LATE: u64 = 64;

/// As [`NEAR_PROBATION`], of the main queue. It is longer, because fewer of those ghosts are the main queue's.
const NEAR_MAIN: u64 = 64;

/// The probation queue becomes longer by so many items for one that a longer one would have kept.
const LENGTHENED_BY: usize = 4;

/// It becomes shorter by so many quarters of an item for one that comes back late: in the main queue it would have been kept for
/// longer than in any probation queue.
const SHORTENED_BY_QUARTERS: usize = 3;

/// It becomes shorter by so many items, down to its first share, for one that a longer main queue would have kept.
const SHORTENED_BY_MAIN: usize = 8;

/// [`S3Fifo::extra`] before the first change.
const AT_FIRST: u64 = u64::MAX;

/// The newest part of the probation queue, in which uses do not count.
const UNCOUNTED: usize = 32;

/// Uses that take an item from the probation queue to the main one, unless it is small.
const PROMOTE_AT: u8 = 1;

/// An item that takes less than one part in `SMALL` of the mean needs none.
const SMALL: usize = 4;

/// A page of the main queue is due when this many pages' worth of items have left the probation queue although they
/// were used in its newest part, since the last one was due.
const REFUSED: u64 = 1;

/// It stays if at least one part in `IN_USE` of its items were used.
const IN_USE: usize = 4;

/// Where a page stayed the next one is due after so many pages' worth: it costs a use of each used item to find out that
/// the queue is in use, and if it is, not much will have changed.
const REFUSED_IN_USE: u64 = 4;

/// A ghost comes back soon if it was away for less than this part of a turnover. It is less than a whole one: all items
/// of a loop come back after the same time, and those that are let in would push out as many.
const SOON: u64 = 56;

/// S3-FIFO, as it is chosen.
pub static KIND: LogPolicyKind = LogPolicyKind {
    name: "s3-fifo",
    help: "For cuckoo: two queues and ghosts, in a log without size classes",
    ghosts: true,
    build: || Box::new(S3Fifo::default()),
};

/// The same, for hits by bytes.
pub static BYTES: LogPolicyKind = LogPolicyKind {
    name: "s3-fifo-bytes",
    help: "For cuckoo: the same, for the bytes that hit, not the requests: large items pay no more than small ones",
    ghosts: true,
    build: || {
        Box::new(S3Fifo {
            aim: Aim::Bytes,
            ..S3Fifo::default()
        })
    },
};

/// What is to hit as often as possible.
#[derive(Clone, Copy)]
enum Aim {
    /// Requests: the room of a large item is worth several small ones.
    Requests,
    /// Bytes: a use of a large item is worth as much more as its room.
    Bytes,
}

/// The borders between the queues.
pub struct S3Fifo {
    aim: Aim,
    /// Bytes of items that left the probation queue although they were used, since the last emptying in the main queue.
    refused: Hint,
    /// Pages' worth of them at which a page of the main queue is due.
    due_at: Hint,
    /// A ghost comes back soon if it is at most this old.
    soon: Hint,
    /// Bytes that the probation queue may have beyond its least share, or [`AT_FIRST`].
    extra: Hint,
}

impl Default for S3Fifo {
    fn default() -> Self {
        Self {
            aim: Aim::Requests,
            refused: Hint::default(),
            due_at: Hint::new(REFUSED),
            soon: Hint::new(u64::MAX),
            extra: Hint::new(AT_FIRST),
        }
    }
}

impl S3Fifo {
    /// Bytes of a share beyond the least.
    fn beyond_least(share: usize, memory: &Memory) -> usize {
        memory.limit / UNIT * (share - PROBATION_MIN)
    }

    fn extra(&self, memory: &Memory) -> usize {
        match self.extra.get() {
            AT_FIRST => Self::beyond_least(PROBATION, memory),
            extra => extra as usize,
        }
    }

    fn lengthen_probation(&self, bytes: usize, memory: &Memory) {
        let most = Self::beyond_least(PROBATION_MAX, memory);
        self.extra
            .set((self.extra(memory) + bytes).min(most) as u64);
    }

    /// Shortens the probation queue, unless it has no more than this share.
    fn shorten_probation(&self, bytes: usize, least: usize, memory: &Memory) {
        let (extra, least) = (self.extra(memory), Self::beyond_least(least, memory));
        if extra > least {
            self.extra
                .set(extra.saturating_sub(bytes).max(least) as u64);
        }
    }

    /// True if a page is to be emptied in the main queue, although the probation queue has more than its share.
    fn main_is_due(&self, memory: &Memory) -> bool {
        self.refused.get() > self.due_at.get() * memory.page as u64
    }

    /// Uses that take an item of `bytes` bytes out of the probation queue.
    fn promote_at(&self, bytes: usize, memory: &Memory) -> usize {
        let usual = usize::from(PROMOTE_AT);
        match self.aim {
            Aim::Requests => usual.min(SMALL * bytes / memory.mean.max(1)),
            Aim::Bytes => usual,
        }
    }

    /// What an item pays for staying.
    fn cost(&self, item: &Candidate, memory: &Memory) -> u8 {
        match self.aim {
            Aim::Requests => cost(item, memory.mean),
            Aim::Bytes => 1,
        }
    }
}

impl LogPolicy for S3Fifo {
    /// An item that comes back soon after it left the probation queue goes to the main queue. The lengths of the queues
    /// follow what comes back.
    fn admit(&self, ghost: &Ghost, memory: &Memory) -> Queue {
        let within = |near| ghost.age <= memory.items() * near / UNIT as u64;
        let mean = memory.mean;
        match ghost.queue {
            Queue::Probation if within(NEAR_PROBATION) => {
                self.lengthen_probation(LENGTHENED_BY * mean, memory);
            }
            Queue::Probation if within(LATE) => {}
            Queue::Probation => {
                self.shorten_probation(SHORTENED_BY_QUARTERS * mean / 4, PROBATION_MIN, memory);
            }
            Queue::Main if within(NEAR_MAIN) => {
                self.shorten_probation(SHORTENED_BY_MAIN * mean, PROBATION, memory);
            }
            Queue::Main => {}
        }
        match ghost.queue {
            Queue::Probation if ghost.age <= self.soon.get() => Queue::Main,
            _ => Queue::Probation,
        }
    }

    fn note_queues(&self, queues: &Queues, memory: &Memory) {
        let [probation, main] = queues.pages;
        let soon = match main as u64 {
            0 => u64::MAX,
            main_pages => {
                // The turnover when the main queue has its share.
                let pages = main + probation;
                let wanted = pages - pages * self.probation(memory) / UNIT;
                let turnover = queues.turnover * wanted as u64 / main_pages;
                // Before it left, it was on probation since its last use: for half of a stay there, by assumption.
                let on_probation = probation * memory.page / memory.mean.max(1);
                let soon = (turnover * SOON / UNIT as u64).saturating_sub(on_probation as u64 / 2);
                // An item that left so lately that its age is not known comes back soon. Otherwise next to nothing
                // would, in a table of ghosts that was made for smaller items.
                soon.max(queues.grain)
            }
        };
        self.soon.set(soon);
    }

    fn uncounted(&self, probation: usize) -> usize {
        probation * UNCOUNTED / UNIT
    }

    fn probation(&self, memory: &Memory) -> usize {
        let extra = self.extra(memory) * UNIT / memory.limit.max(1);
        (PROBATION_MIN + extra).min(PROBATION_MAX)
    }

    /// The queue that has more than its share, unless items that were used on probation had to leave.
    fn next(&self, [probation, main]: [usize; 2], memory: &Memory) -> Next {
        let has_more = probation * UNIT > (probation + main) * self.probation(memory);
        if !has_more {
            Next::of(Queue::Main)
        } else if self.main_is_due(memory) {
            let items = memory.page / memory.mean.max(1);
            Next {
                queue: Queue::Main,
                stays_at: Some((items / IN_USE).max(1)),
            }
        } else {
            Next::of(Queue::Probation)
        }
    }

    fn note_emptying(&self, queue: Queue, _: [usize; 2], memory: &Memory) {
        let (refused, page) = (self.refused.get(), memory.page as u64);
        let left = match queue {
            // No more than a page's worth is carried on: a burst of any size is worth one page.
            Queue::Main => {
                self.due_at.set(REFUSED);
                refused.saturating_sub(page).min(page)
            }
            // The main queue has no page that could be emptied: items that come to it later must not pay for that.
            Queue::Probation if self.main_is_due(memory) => 0,
            Queue::Probation => refused,
        };
        self.refused.set(left);
    }

    fn note_stay(&self, _: Queue) {
        self.refused.set(0);
        self.due_at.set(REFUSED_IN_USE);
    }

    fn judge(&self, queue: Queue, item: &Candidate, memory: &Memory) -> Option<u8> {
        let wanted = match queue {
            Queue::Probation => self.promote_at(item.bytes, memory),
            Queue::Main => 0,
        };
        if usize::from(item.uses) < wanted {
            return None;
        }
        item.uses.checked_sub(self.cost(item, memory))
    }

    fn note_eviction(&self, queue: Queue, item: &Evicted) {
        if queue == Queue::Probation && item.fetched {
            self.refused.add(item.bytes as u64);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Items of 100 bytes.
    const MEMORY: Memory = Memory {
        limit: 1 << 20,
        page: 1000,
        mean: 100,
    };

    /// The uses left of zero, one and two uses, for an item of `bytes` bytes with this random number.
    fn left(queue: Queue, bytes: usize, random: u32) -> [Option<u8>; 3] {
        let policy = S3Fifo::default();
        [0, 1, 2].map(|uses| {
            let item = Candidate {
                uses,
                bytes,
                random,
            };
            policy.judge(queue, &item, &MEMORY)
        })
    }

    #[test]
    fn a_use_pays_for_the_usual_item_and_two_for_a_large_one() {
        for random in [0, u32::MAX] {
            let main = |bytes| left(Queue::Main, bytes, random);
            assert_eq!(main(100), [None, Some(0), Some(1)]);
            assert_eq!(main(200), [None, Some(0), Some(1)]);
            assert_eq!(main(201), [None, None, Some(0)]);
            let new = |bytes| left(Queue::Probation, bytes, random);
            assert_eq!(new(200), [None, Some(0), Some(1)]);
            assert_eq!(new(201), [None, None, Some(0)]);
        }
    }

    #[test]
    fn a_small_item_pays_as_often_as_it_is_large() {
        let eighths = |bytes| {
            let pays = |eighth: &u32| {
                let random = eighth << (u32::BITS - 3);
                left(Queue::Main, bytes, random) == [None, Some(0), Some(1)]
            };
            (0..8).filter(pays).count()
        };
        assert_eq!([1, 13, 50, 75, 100].map(eighths), [1, 2, 4, 6, 8]);
        let lucky = left(Queue::Main, 50, u32::MAX);
        assert_eq!(lucky, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn a_small_item_needs_no_use_for_the_main_queue() {
        let stays = |bytes| left(Queue::Probation, bytes, u32::MAX).map(|left| left.is_some());
        assert_eq!(stays(24), [true, true, true]);
        assert_eq!(stays(25), [false, true, true]);
    }

    #[test]
    fn all_pay_alike_where_bytes_are_to_hit() {
        let policy = (BYTES.build)();
        for (bytes, random) in [(1, u32::MAX), (100, 0), (10_000, 7)] {
            for queue in [Queue::Probation, Queue::Main] {
                let left = [0, 1, 2].map(|uses| {
                    let item = Candidate {
                        uses,
                        bytes,
                        random,
                    };
                    policy.judge(queue, &item, &MEMORY)
                });
                assert_eq!(left, [None, Some(0), Some(1)]);
            }
        }
    }

    #[test]
    fn the_main_queue_is_due_when_a_page_of_used_items_was_refused() {
        let policy = S3Fifo::default();
        let refuse = |bytes| {
            let fetched = true;
            policy.note_eviction(Queue::Probation, &Evicted { bytes, fetched });
        };
        let emptying = |queue| policy.note_emptying(queue, [10, 10], &MEMORY);
        // The probation queue has more than its share.
        let is_due = || policy.next([10, 10], &MEMORY).queue == Queue::Main;
        refuse(1000);
        assert!(!is_due());
        emptying(Queue::Probation);
        refuse(1);
        assert!(is_due());
        emptying(Queue::Main);
        assert!(!is_due());
        // A page's worth is carried on, and no more.
        refuse(10_000);
        emptying(Queue::Main);
        assert!(!is_due());
        refuse(1);
        assert!(is_due());
        // Where the main queue has no page to empty, nothing is carried on.
        refuse(10_000);
        emptying(Queue::Probation);
        refuse(1000);
        assert!(!is_due());
    }

    #[test]
    fn a_page_that_is_due_stays_while_its_items_are_used() {
        let policy = S3Fifo::default();
        let (bytes, fetched) = (1001, true);
        policy.note_eviction(Queue::Probation, &Evicted { bytes, fetched });
        let next = |pages, mean| policy.next(pages, &Memory { mean, ..MEMORY });
        // A page has ten items.
        let stays_at = |mean| next([10, 10], mean).stays_at;
        assert_eq!([100, 10, 2000].map(stays_at), [Some(2), Some(25), Some(1)]);
        // A main queue that has more than its share is cleaned anyway.
        assert_eq!(next([1, 19], 100), Next::of(Queue::Main));
    }

    #[test]
    fn a_ghost_comes_back_soon_if_it_would_have_been_met() {
        let policy = S3Fifo::default();
        // The probation queue's share is 10 of 64 pages.
        let soon = |turnover, main, probation, age| {
            let queues = Queues {
                pages: [probation, main],
                turnover,
                grain: 0,
            };
            policy.note_queues(&queues, &MEMORY);
            let queue = Queue::Probation;
            policy.admit(&Ghost { queue, age }, &MEMORY) == Queue::Main
        };
        // Seven eighths of a turnover, less half of the ten items of each page on probation.
        assert!(soon(2400, 54, 10, 2050));
        assert!(!soon(2400, 54, 10, 2051));
        // With half a main queue, the turnover is half as long as it will be.
        assert!(soon(1200, 27, 37, 1915));
        assert!(!soon(1200, 27, 37, 1916));
        // Without a main queue, a ghost would push nothing out.
        assert!(soon(0, 0, 64, 1 << 40));
    }

    /// Class of bug: in a table that was made for smaller items, ages are known to a long time only, and nothing came
    /// back soon.
    #[test]
    fn what_has_left_just_now_comes_back_soon_however_coarse_ages_are() {
        let policy = S3Fifo::default();
        let queues = Queues {
            pages: [10, 54],
            turnover: 150,
            grain: 512,
        };
        policy.note_queues(&queues, &MEMORY);
        let back = |age| {
            let queue = Queue::Probation;
            policy.admit(&Ghost { queue, age }, &MEMORY)
        };
        assert_eq!(back(512), Queue::Main);
        assert_eq!(back(513), Queue::Probation);
    }

    #[test]
    fn what_comes_back_moves_the_border_between_the_queues() {
        let policy = S3Fifo::default();
        // 640 items of 100 bytes: each 64th is ten items.
        let memory = Memory {
            limit: 64_000,
            ..MEMORY
        };
        let back = |queue, age, times| {
            for _ in 0..times {
                let to = policy.admit(&Ghost { queue, age }, &memory);
                // A ghost of the main queue is no item that was used: it goes through the probation queue again.
                assert_eq!(to == Queue::Main, queue == Queue::Probation);
            }
            policy.probation(&memory)
        };
        let (new, main) = (Queue::Probation, Queue::Main);
        assert_eq!(policy.probation(&memory), PROBATION);
        assert_eq!(back(new, 160, 50), PROBATION + 20);
        assert_eq!(back(main, 640, 5), PROBATION + 16);
        assert_eq!(back(main, 641, 1000), PROBATION + 16);
        // Between soon and late: neither.
        assert_eq!(back(new, 161, 40), PROBATION + 16);
        assert_eq!(back(new, 640, 40), PROBATION + 16);
        assert_eq!(back(new, 641, 40), PROBATION + 13);
        assert_eq!(back(main, 1, 1000), PROBATION);
        assert_eq!(back(new, 641, 1000), PROBATION_MIN);
        assert_eq!(back(main, 1, 1000), PROBATION_MIN);
        assert_eq!(back(new, 1, 1000), PROBATION_MAX);
    }
}
