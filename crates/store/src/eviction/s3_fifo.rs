//! Two queues and ghosts, on pages (S3-FIFO, SOSP 2023; on segments as Segcache, NSDI 2021, has them).
//!
//! What is new goes through a probation queue, a sixth of the memory. What was used twice there goes to the main queue,
//! the rest become ghosts; a ghost that comes back goes to the main queue at once. At the end of the main queue an
//! item stays for each use since it came or was passed last. So a scan goes by without pushing out what is used.
//!
//! A use pays for an item of the usual size. One that takes more than twice as much stays only for two uses: in its place
//! several others would be kept. Where nothing is used twice, one use takes an item to the main queue now and then: or
//! else that would keep for ever what was used once, and is not any more.
//!
//! Items are not moved one by one but a page at a time, when a page is cleaned. Where pages have many words that are no
//! longer in use (of items that were deleted, replaced, or have expired), they are cleaned first, and nothing that is
//! alive leaves for that.

use std::io;

use nuthatch_sync::shim::{AtomicUsize, Ordering};

use super::depths::Depths;
use super::ghosts::Ghosts;
use super::recency::USES_MAX;
use crate::log::Queue;
use crate::slab::Store;

/// Shares of the memory are told in 64ths.
const UNIT: usize = 64;

/// The probation queue's part of all pages. This and the two below were chosen on all traces of docs/hits.md, at four
/// sizes each; what others gave stands in docs/notebook.md.
const PROBATION: usize = 10;

/// Uses that take an item from the probation queue to the main one.
const PROMOTE_AT: u8 = 2;

/// One use does when so many parts of the pages, in 64ths, were cleaned in the probation queue since one was in the main
/// queue.
const AGED: usize = 1;

/// A page is cleaned for its gaps if no more than this part of it is in use.
const COMPACT_AT: usize = 48;

/// The same while memory is not short: then pages are cleaned only if half of all words are in no use, so that what is
/// written over and over does not spread over all the memory there is.
const COMPACT_AT_EASE: usize = 32;

/// One part in so many of the memory is for ghosts, at most.
const GHOSTS_SHARE: usize = 64;

/// An item of more than so many times the mean must have been used twice.
const HEAVY: usize = 2;

/// How the queues are to be, and when pages are cleaned.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What a page is cleaned for.
    pub need: Need,
    /// The whole, of which the others are parts.
    pub unit: usize,
    /// The probation queue's part of the pages.
    pub probation: usize,
    /// The part of a page that may be in use if it is cleaned for its gaps.
    pub compact_at: usize,
}

/// What a page is cleaned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Memory is not short; the page has many gaps. Nothing alive leaves.
    Order,
    /// There is no other way to make room than to fill each gap, because nothing alive may leave.
    EveryGap,
    /// Memory is short, and pages are being swept in which items have died: nothing alive leaves before that is through.
    Dead,
    /// Memory is short, and items leave.
    Room,
}

/// How strict a cleaning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rigour {
    /// What was used stays.
    Usual,
    /// Nothing stays: the thread that needs a page has cleaned several in vain.
    AllLeave,
}

/// Decides which items of a log leave.
pub struct S3Fifo {
    /// Items that left the probation queue.
    pub ghosts: Ghosts,
    /// What more memory would have given.
    pub depths: Depths,
    /// Bytes of an item in the pages cleaned lately.
    mean: AtomicUsize,
    /// Pages cleaned in the probation queue since one was in the main queue.
    since_main: AtomicUsize,
    /// How many of them are enough.
    aged_at: AtomicUsize,
}

impl S3Fifo {
    /// For a memory limit of so many bytes.
    pub fn new(limit: usize) -> io::Result<Self> {
        let depths = Depths::new()?;
        depths.note_limit(limit);
        Ok(Self {
            ghosts: Ghosts::reserve(limit / GHOSTS_SHARE)?,
            depths,
            mean: AtomicUsize::new(0),
            since_main: AtomicUsize::new(0),
            aged_at: AtomicUsize::new(usize::MAX),
        })
    }

    /// How the queues are to be.
    pub fn plan(&self, need: Need) -> Plan {
        Plan {
            need,
            unit: UNIT,
            probation: PROBATION,
            compact_at: match need {
                Need::Order => COMPACT_AT_EASE,
                Need::EveryGap => UNIT,
                Need::Room | Need::Dead => COMPACT_AT,
            },
        }
    }

    /// A page of a queue is cleaned, of so many pages in all. The queues' lock is held.
    pub fn note_cleaning(&self, queue: Queue, pages: usize) {
        // Relaxed, here and below: written under a lock, and a hint for those who do not hold it.
        let since = match queue {
            Queue::Probation => self.since_main.load(Ordering::Relaxed) + 1,
            Queue::Main => 0,
        };
        self.since_main.store(since, Ordering::Relaxed);
        let aged_at = (pages * AGED).div_ceil(UNIT);
        self.aged_at.store(aged_at, Ordering::Relaxed);
    }

    /// Uses that take an item out of the probation queue now.
    fn promote_at(&self) -> u8 {
        let since = self.since_main.load(Ordering::Relaxed);
        if since > self.aged_at.load(Ordering::Relaxed) {
            1
        } else {
            PROMOTE_AT
        }
    }

    /// Makes room for the ghosts, within the limit: pages that are cleaned meanwhile are kept for them.
    #[cold]
    fn begin(&self, store: &Store, mean: usize) {
        let mut pool = store.pool();
        let ghosts = pool.limit() / mean.max(1);
        let bytes = self.ghosts.bytes_for(ghosts);
        if pool.charge(bytes) {
            self.ghosts.begin(ghosts);
            self.depths.begin(ghosts);
        } else {
            pool.earmark(bytes);
        }
    }

    /// Bytes of an item in the pages cleaned lately; 0 before the first.
    pub fn mean_bytes(&self) -> usize {
        // Relaxed: a statistic.
        self.mean.load(Ordering::Relaxed)
    }

    /// Uses that an item of so many bytes pays for staying.
    fn rent(&self, bytes: usize) -> u8 {
        if bytes > HEAVY * self.mean_bytes() {
            USES_MAX
        } else {
            1
        }
    }

    /// Uses that are left to an item that stays, or `None` if it leaves.
    pub fn judge(&self, queue: Queue, uses: u8, bytes: usize, rigour: Rigour) -> Option<u8> {
        let fails = queue == Queue::Probation && uses < self.promote_at();
        if rigour == Rigour::AllLeave || fails {
            return None;
        }
        uses.checked_sub(self.rent(bytes))
    }

    /// A cleaning met so many items of so many bytes together. The first one tells how many ghosts there are to be: as
    /// many as items.
    pub fn note_sizes(&self, store: &Store, items: usize, bytes: usize) {
        if items == 0 {
            return;
        }
        let (old, new) = (self.mean.load(Ordering::Relaxed), bytes / items);
        let mean = if old == 0 { new } else { (7 * old + new) / 8 };
        self.mean.store(mean, Ordering::Relaxed);
        if self.ghosts.bytes() == 0 {
            self.begin(store, mean);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::slab::sizes::{CHUNK_MIN, PAGE, Sizes};

    fn store() -> Store {
        let sizes = Sizes::for_log(16 * PAGE, CHUNK_MIN, 1.25);
        Store::log(16 * PAGE, 16 * PAGE, sizes).unwrap()
    }

    #[test]
    fn a_use_pays_for_the_usual_item_and_two_for_a_large_one() {
        let (store, policy) = (store(), S3Fifo::new(1 << 20).unwrap());
        policy.note_sizes(&store, 10, 1000);
        let judge = |queue, uses, bytes| policy.judge(queue, uses, bytes, Rigour::Usual);
        let main = |bytes| [0, 1, 2].map(|uses| judge(Queue::Main, uses, bytes));
        assert_eq!(main(200), [None, Some(0), Some(1)]);
        assert_eq!(main(201), [None, None, Some(0)]);
        assert_eq!(judge(Queue::Probation, 1, 200), None);
        assert_eq!(judge(Queue::Probation, 2, 200), Some(1));
        assert_eq!(policy.judge(Queue::Main, 2, 1, Rigour::AllLeave), None);
    }

    #[test]
    fn the_mean_follows_what_is_cleaned() {
        let (store, policy) = (store(), S3Fifo::new(1 << 20).unwrap());
        let used = store.pool().used();
        for _ in 0..100 {
            policy.note_sizes(&store, 10, 10_000);
        }
        assert_eq!(store.pool().used() - used, policy.ghosts.bytes());
        assert_eq!(policy.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
        assert_eq!(policy.rent(2000), 1);
        assert_eq!(policy.rent(2001), USES_MAX);
    }
}
