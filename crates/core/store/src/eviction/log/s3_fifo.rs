//! S3-FIFO on pages: two queues and ghosts (S3-FIFO, SOSP 2023; on segments, as in Segcache, NSDI 2021).
//!
//! New items go through a probation queue, at least a sixth of the memory. Items that were used in its older half go to
//! the main queue, the others become ghosts. A ghost that comes back soon goes to the main queue at once. At the end of
//! the main queue an item stays for each use since it came or was passed last. So a scan passes without pushing out
//! items that are used.
//!
//! *Soon* is judged as in LIRS (SIGMETRICS 2002), which compares the time since an item's last use with the time since
//! the last use of the item that it would push out. Here: in a lap of the main queue an item goes from its end to its
//! beginning. A ghost that was away for longer than a lap would leave the main queue before its next use, and only push
//! out others; it goes through the probation queue again. Time is counted in ghosts. If no item comes to the main
//! queue, none leaves it, and a lap gets longer and longer: so a loop that is longer than the memory keeps a part of
//! itself there, and items that are no longer used make way.
//!
//! Uses in the newer half of the probation queue do not count (Clock2Q+, VLDB 2026): an item that is used often within
//! a short time, and then no more, is not worth more than one that is used once. But where much is used there and
//! nothing later, the main queue would keep for ever what was used long ago. So for each page's worth of items that
//! leave although they were used there, a page of the main queue is cleaned. Items that are not used at all, as in a
//! scan or in a loop that is longer than the memory, leave the main queue as it is.
//!
//! How long the probation queue should be depends on the requests. Where items are requested a few times within some
//! while and then no more, a short one lets them leave too early, and those that come back fill the main queue although
//! they are not requested much longer. So its length adapts, as in ARC (FAST 2003): items that leave the main queue
//! become ghosts, too. An item that comes back soon after it left the probation queue makes that queue longer; one that
//! comes back after it left the main queue makes it shorter, and counts several times, since fewer items leave there.
//!
//! What an item pays for staying depends on its size, as with GDSF (greedy dual by size and frequency): in the place of
//! a large item several others could stay. An item of more than twice the mean size pays two uses, one of the mean size
//! pays one, and a smaller one pays one by lot, with the probability of its size divided by the mean: at an eighth of
//! the mean, once in eight rounds. An item of less than a quarter of the mean comes to the main queue without a use.
//! Such small items can do no harm: all items that are smaller than a quarter of the mean take less than a quarter of
//! the memory.
//!
//! Items are not moved one by one but a page at a time, when a page is cleaned. Pages with many words that are no
//! longer in use (of items that were deleted, replaced, or have expired) are cleaned first, and no live item leaves for
//! that.

use std::io;

use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};

use crate::log::depths::Depths;
use crate::log::ghosts::Ghosts;
use crate::log::{Log, Queue};
use crate::store::Store;

/// The unit of the shares of the memory: 64ths.
const UNIT: usize = 64;

/// The probation queue's least share of all pages. This and the constants below were chosen on all traces of
/// docs/hits.md, at four sizes each; docs/notebook.md has the results of other values.
const PROBATION: usize = 10;

/// The probation queue's greatest share.
const PROBATION_MAX: usize = 48;

/// A longer probation queue would have kept an item that comes back before this part of the items that the memory holds
/// became ghosts.
const NEAR_PROBATION: u64 = 16;

/// The same of the main queue. It is longer, because fewer of those ghosts are the main queue's.
const NEAR_MAIN: u64 = 64;

/// The probation queue becomes longer by so many items for one that comes back.
const LENGTHENED_BY: usize = 2;

/// It becomes shorter by so many items for one that comes back after it left the main queue.
const SHORTENED_BY: usize = 6;

/// What distinguishes a ghost of the main queue: these bits of its fingerprint are inverted.
const OF_MAIN: u64 = 0x2a5;

/// The newest part of the probation queue, in which uses do not count.
const UNCOUNTED: usize = 32;

/// Uses that take an item from the probation queue to the main one, unless it is small.
const PROMOTE_AT: u8 = 1;

/// An item that takes less than one part in `SMALL` of the mean needs none.
const SMALL: usize = 4;

/// A page of the main queue is cleaned when this many pages' worth of items have left the probation queue although they
/// were used in its newest part, since the last page of the main queue was cleaned.
const REFUSED: usize = 1;

/// A page is cleaned for its gaps if no more than this part of it is in use.
const COMPACT_AT: usize = 48;

/// The same while memory is not short: then pages are cleaned only if half of all words are unused, so that items that
/// are written over and over do not spread over the whole memory.
const COMPACT_AT_EASE: usize = 32;

/// Ghosts for each item that the memory holds.
const GHOSTS: usize = 3;

/// A ghost comes back soon if it was away for less than this part of a lap. It is less than a whole lap: all items of a
/// loop come back after the same time, and those that are let in would push out as many.
const SOON: u64 = 56;

/// One part in `GHOSTS_SHARE` of the memory is for ghosts, at most.
const GHOSTS_SHARE: usize = 64;

/// An item of more than this many times the mean must have been used twice.
const HEAVY: usize = 2;

/// The uses that a heavy item pays.
const HEAVY_PAYS: u8 = 2;

/// The mean is taken over about this many of the runs in which records are cleaned. Where sizes differ much, more runs
/// give a steadier mean: 64 had 0.7 % fewer misses than eight. But where sizes grow gradually, the mean of 64 follows
/// so late that items that are large by then cannot stay (conformance, `memory_sizes_drift`).
const MEAN_OF: usize = 16;

/// The shares of the queues, and when pages are cleaned.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What a page is cleaned for.
    pub need: Need,
    /// False: nothing alive may leave, whatever the need.
    pub evicts: bool,
    /// The whole, of which the other fields are parts.
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
    /// Nothing alive may leave, so there is no other way to make room than to fill each gap.
    EveryGap,
    /// Memory is short, and pages in which items have died are being swept: nothing alive leaves before the sweep is
    /// through.
    Dead,
    /// Memory is short, and items leave.
    Room,
    /// Memory is short, and the usual cleaning finds no page: nothing is moved any more, and pages that a cleaning has
    /// left are tried again.
    AnyRoom,
}

/// How strict a cleaning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleaningMode {
    /// Items that were used stay.
    Normal,
    /// Nothing stays: the thread that needs a page has cleaned several in vain.
    EvictAll,
}

/// An item that is to stay or to leave.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Uses since it came or was passed last.
    pub uses: u8,
    /// All bytes that it takes.
    pub bytes: usize,
    /// The item's lot. It stays the same as long as the item lies where it is.
    pub lot: u32,
}

/// The policy that decides which items of a log leave.
pub struct S3Fifo {
    /// Items that left. Those that left the main queue have [`OF_MAIN`] in their hashes.
    pub ghosts: Ghosts,
    /// What more memory would have given.
    pub depths: Depths,
    /// Bytes of [`MEAN_OF`] items in the pages cleaned lately.
    lately: AtomicUsize,
    /// Bytes of items that left the probation queue although they were used, since the last cleaning in the main queue.
    refused: AtomicUsize,
    /// A ghost comes back soon if at most this many ghosts were added since it left.
    soon: AtomicU64,
    /// Bytes that the probation queue may have beyond its least share.
    extra: AtomicUsize,
}

/// The queues, at the moment when a page is opened.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Ghosts inserted since the oldest page of the main queue was opened.
    pub lap: u64,
    /// Pages of the main queue.
    pub main: usize,
    /// Pages of the probation queue.
    pub probation: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
}

impl S3Fifo {
    /// A policy for a memory limit of `limit` bytes, which may be raised to `limit_max`.
    pub fn new(limit: usize, limit_max: usize) -> io::Result<Self> {
        let depths = Depths::new()?;
        depths.note_limit(limit);
        Ok(Self {
            ghosts: Ghosts::reserve(limit_max / GHOSTS_SHARE)?,
            depths,
            lately: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            soon: AtomicU64::new(u64::MAX),
            extra: AtomicUsize::new(0),
        })
    }

    /// Notes the lengths of the queues, when a page is opened. The queues' lock is held.
    pub fn note_lengths(&self, lengths: &Lengths) {
        let soon = match lengths.main as u64 {
            0 => u64::MAX,
            main => {
                // The length of a lap when the main queue has its share.
                let pages = lengths.main + lengths.probation;
                let wanted = pages - pages * self.probation() / UNIT;
                let lap = lengths.lap * wanted as u64 / main;
                // Before it left, it was on probation since its last use: for half of a stay there, by assumption.
                let bytes = lengths.probation * lengths.page_bytes;
                let probation = bytes / self.mean_bytes().max(1);
                let soon = (lap * SOON / UNIT as u64).saturating_sub(probation as u64 / 2);
                // Ages are exact to half an epoch: an item that left in the present one comes back soon. Otherwise next
                // to nothing would, in a table that was made for smaller items.
                soon.max(self.ghosts.epoch_len() / 2)
            }
        };
        // Relaxed, here and below: a page earlier or later makes no difference.
        self.soon.store(soon, Ordering::Relaxed);
    }

    /// True if an item with this hash is a ghost of the probation queue that comes back soon. It is no ghost from then
    /// on. The lengths of the queues follow what comes back.
    pub fn take_ghost(&self, hash: u64) -> bool {
        if let Some(age) = self.ghosts.take(hash) {
            if age <= self.items_held() * NEAR_PROBATION / UNIT as u64 {
                self.lengthen_probation();
            }
            return age <= self.soon.load(Ordering::Relaxed);
        }
        let age = self.ghosts.take(hash ^ OF_MAIN);
        if age.is_some_and(|age| age <= self.items_held() * NEAR_MAIN / UNIT as u64) {
            self.shorten_probation();
        }
        false
    }

    /// An item with this hash has left a queue.
    pub fn note_eviction(&self, queue: Queue, hash: u64) {
        match queue {
            Queue::Probation => self.ghosts.insert(hash),
            Queue::Main => self.ghosts.insert(hash ^ OF_MAIN),
        }
    }

    /// How many items of the mean size the memory holds.
    fn items_held(&self) -> u64 {
        (self.depths.limit() / self.mean_bytes().max(1)) as u64
    }

    fn lengthen_probation(&self) {
        let most = self.depths.limit() / UNIT * (PROBATION_MAX - PROBATION);
        // Relaxed, here and below: a hint for the choice of a page. A change that another thread overwrites is lost.
        let extra = self.extra.load(Ordering::Relaxed) + LENGTHENED_BY * self.mean_bytes();
        self.extra.store(extra.min(most), Ordering::Relaxed);
    }

    fn shorten_probation(&self) {
        let extra = self.extra.load(Ordering::Relaxed);
        let less = SHORTENED_BY * self.mean_bytes();
        self.extra
            .store(extra.saturating_sub(less), Ordering::Relaxed);
    }

    /// The probation queue's share of all pages.
    fn probation(&self) -> usize {
        let extra = self.extra.load(Ordering::Relaxed) * UNIT / self.depths.limit().max(1);
        (PROBATION + extra).min(PROBATION_MAX)
    }

    /// The plan for a need.
    pub fn plan(&self, need: Need, evicts: bool) -> Plan {
        Plan {
            need,
            evicts,
            unit: UNIT,
            probation: self.probation(),
            compact_at: match need {
                Need::Order => COMPACT_AT_EASE,
                Need::EveryGap => UNIT,
                Need::Room | Need::Dead => COMPACT_AT,
                Need::AnyRoom => 0,
            },
        }
    }

    /// How many of so many pages in the probation queue do not count uses: its newest.
    pub fn uncounted(&self, probation: usize) -> usize {
        probation * UNCOUNTED / UNIT
    }

    /// Notes that an item of `bytes` bytes leaves the probation queue, although it was used there.
    pub fn note_refused(&self, bytes: usize) {
        // Relaxed, here and below: a hint for the choice of a page.
        self.refused.fetch_add(bytes, Ordering::Relaxed);
    }

    /// True if a page of so many bytes is to be cleaned in the main queue, although the probation queue has more than
    /// its share.
    pub fn main_is_due(&self, page_bytes: usize) -> bool {
        self.refused.load(Ordering::Relaxed) > REFUSED * page_bytes
    }

    /// Notes the cleaning of a page of so many bytes in a queue.
    pub fn note_cleaning(&self, queue: Queue, page_bytes: usize) {
        let refused = self.refused.load(Ordering::Relaxed);
        let left = match queue {
            // No more than a page's worth is carried on: a burst of any size is worth one page.
            Queue::Main => refused.saturating_sub(page_bytes).min(page_bytes),
            // The main queue has no page that could be cleaned: items that come to it later must not pay for that.
            Queue::Probation if self.main_is_due(page_bytes) => 0,
            Queue::Probation => refused,
        };
        self.refused.store(left, Ordering::Relaxed);
    }

    /// Uses that take an item of `bytes` bytes out of the probation queue.
    fn promote_at(&self, bytes: usize) -> usize {
        usize::from(PROMOTE_AT).min(SMALL * bytes / self.mean_bytes().max(1))
    }

    /// Makes room for the ghosts of all items, within the limit, as soon as twice as many ghosts are wanted as there is
    /// room for: sizes may have shrunk since, or the limit may have been raised. Pages that are cleaned meanwhile are
    /// kept for the ghosts.
    #[cold]
    fn make_room(&self, store: &Store<Log>) {
        let mut pool = store.pool();
        let items = pool.limit() / self.mean_bytes().max(1);
        let bytes = self
            .ghosts
            .bytes_for(GHOSTS * items, pool.limit() / GHOSTS_SHARE);
        let more = bytes.saturating_sub(self.ghosts.bytes());
        // Checked again under the lock: another thread may have done it.
        if more < self.ghosts.bytes().max(1) {
            return;
        }
        if pool.charge(more) {
            self.ghosts.begin(bytes);
            self.depths.begin(items);
        } else {
            pool.earmark(more);
        }
    }

    /// Sets the memory's limit, in bytes. Returns the bytes that ghosts give back for it.
    pub fn note_limit(&self, limit: usize) -> usize {
        self.depths.note_limit(limit);
        let most = self.ghosts.bytes_for(usize::MAX, limit / GHOSTS_SHARE);
        self.ghosts.shrink(most)
    }

    /// The mean size in bytes of the items in the pages cleaned lately; 0 before the first cleaning.
    pub fn mean_bytes(&self) -> usize {
        // Relaxed, here and below: a statistic.
        self.lately.load(Ordering::Relaxed) / MEAN_OF
    }

    /// The uses that an item pays for staying. It draws a new lot each time that it is moved; all lots are equally
    /// probable.
    fn rent(&self, bytes: usize, lot: u32) -> u8 {
        let mean = self.mean_bytes() as u64;
        let bytes = bytes as u64;
        if bytes > HEAVY as u64 * mean {
            HEAVY_PAYS
        } else {
            u8::from(bytes > (u64::from(lot) * mean) >> u32::BITS)
        }
    }

    /// The uses that are left to an item that stays, or `None` if it leaves.
    pub fn judge(&self, queue: Queue, item: &Candidate, mode: CleaningMode) -> Option<u8> {
        let fails =
            queue == Queue::Probation && usize::from(item.uses) < self.promote_at(item.bytes);
        if mode == CleaningMode::EvictAll || fails {
            return None;
        }
        item.uses.checked_sub(self.rent(item.bytes, item.lot))
    }

    /// Notes that a cleaning met `items` items of `bytes` bytes together.
    pub fn note_sizes(&self, store: &Store<Log>, items: usize, bytes: usize) {
        if items == 0 {
            return;
        }
        let (old, new) = (self.lately.load(Ordering::Relaxed), bytes / items);
        let lately = if old == 0 {
            MEAN_OF * new
        } else {
            old - old / MEAN_OF + new
        };
        self.lately.store(lately, Ordering::Relaxed);
        let limit = self.depths.limit();
        let wanted = self.ghosts.bytes_for(
            GHOSTS * (limit / self.mean_bytes().max(1)),
            limit / GHOSTS_SHARE,
        );
        if wanted >= 2 * self.ghosts.bytes().max(1) {
            self.make_room(store);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::sizes::{CHUNK_MIN, PAGE, Sizes};

    fn store() -> Store<Log> {
        let sizes = Sizes::for_log(16 * PAGE, CHUNK_MIN, 1.25);
        Store::<Log>::new(16 * PAGE, 16 * PAGE, sizes).unwrap()
    }

    /// A policy that has met items of 100 bytes.
    fn policy(store: &Store<Log>) -> S3Fifo {
        let policy = S3Fifo::new(1 << 20, 1 << 20).unwrap();
        policy.note_sizes(store, 10, 1000);
        policy
    }

    /// The uses left of zero, one and two uses, for an item of `bytes` bytes that draws this lot.
    fn left(policy: &S3Fifo, queue: Queue, bytes: usize, lot: u32) -> [Option<u8>; 3] {
        [0, 1, 2]
            .map(|uses| policy.judge(queue, &Candidate { uses, bytes, lot }, CleaningMode::Normal))
    }

    #[test]
    fn a_use_pays_for_the_usual_item_and_two_for_a_large_one() {
        let policy = policy(&store());
        for lot in [0, u32::MAX] {
            let main = |bytes| left(&policy, Queue::Main, bytes, lot);
            assert_eq!(main(100), [None, Some(0), Some(1)]);
            assert_eq!(main(200), [None, Some(0), Some(1)]);
            assert_eq!(main(201), [None, None, Some(0)]);
            let new = |bytes| left(&policy, Queue::Probation, bytes, lot);
            assert_eq!(new(200), [None, Some(0), Some(1)]);
            assert_eq!(new(201), [None, None, Some(0)]);
        }
        let item = Candidate {
            uses: 2,
            bytes: 1,
            lot: u32::MAX,
        };
        assert_eq!(
            policy.judge(Queue::Main, &item, CleaningMode::EvictAll),
            None
        );
    }

    #[test]
    fn a_small_item_pays_as_often_as_it_is_large() {
        let policy = policy(&store());
        let eighths = |bytes| {
            let pays = |eighth: &u32| {
                let lot = eighth << (u32::BITS - 3);
                left(&policy, Queue::Main, bytes, lot) == [None, Some(0), Some(1)]
            };
            (0..8).filter(pays).count()
        };
        assert_eq!([1, 13, 50, 75, 100].map(eighths), [1, 2, 4, 6, 8]);
        assert_eq!(
            left(&policy, Queue::Main, 50, u32::MAX),
            [Some(0), Some(1), Some(2)]
        );
    }

    #[test]
    fn a_small_item_needs_no_use_for_the_main_queue() {
        let policy = policy(&store());
        let stays =
            |bytes| left(&policy, Queue::Probation, bytes, u32::MAX).map(|left| left.is_some());
        assert_eq!(stays(24), [true, true, true]);
        assert_eq!(stays(25), [false, true, true]);
    }

    #[test]
    fn the_main_queue_is_due_when_a_page_of_used_items_was_refused() {
        let policy = policy(&store());
        policy.note_refused(1000);
        assert!(!policy.main_is_due(1000));
        policy.note_cleaning(Queue::Probation, 1000);
        policy.note_refused(1);
        assert!(policy.main_is_due(1000));
        policy.note_cleaning(Queue::Main, 1000);
        assert!(!policy.main_is_due(1000));
        // A page's worth is carried on, and no more.
        policy.note_refused(10_000);
        policy.note_cleaning(Queue::Main, 1000);
        assert!(!policy.main_is_due(1000));
        policy.note_refused(1);
        assert!(policy.main_is_due(1000));
        // Where the main queue has no page to clean, nothing is carried on.
        policy.note_refused(10_000);
        policy.note_cleaning(Queue::Probation, 1000);
        policy.note_refused(1000);
        assert!(!policy.main_is_due(1000));
    }

    #[test]
    fn a_ghost_comes_back_soon_if_it_would_have_been_met() {
        // Items of 100 bytes; the probation queue's share is 10 of 64 pages.
        let policy = policy(&store());
        policy.ghosts.begin(1 << 14);
        let soon = |lap, main, probation, ghosts: std::ops::Range<u64>| {
            let page_bytes = 1000;
            policy.note_lengths(&Lengths {
                lap,
                main,
                probation,
                page_bytes,
            });
            // The 1 in the upper half of the hash chooses the bucket, the 77 is the fingerprint.
            let hash = |number: u64| (number + 1) << 56 | 77;
            policy.ghosts.insert(hash(0));
            ghosts.for_each(|number| policy.ghosts.insert(hash(1 + number % 200)));
            policy.take_ghost(hash(0))
        };
        // Seven eighths of a lap, less half of the ten items of each page on probation, are 2050; an epoch is 1024.
        assert!(soon(2400, 54, 10, 0..1000));
        assert!(!soon(2400, 54, 10, 0..3200));
        // With half a main queue, a lap is half as long as it will be.
        assert!(!soon(1200, 56, 8, 0..1700));
        assert!(soon(1800, 28, 36, 0..1700));
        // Without a main queue, a ghost would push nothing out.
        assert!(soon(0, 0, 64, 0..3200));
        let hash = 9 << 56 | 78;
        assert!(!policy.take_ghost(hash), "it is no ghost");
    }

    #[test]
    fn what_comes_back_moves_the_border_between_the_queues() {
        let policy = policy(&store());
        policy.ghosts.begin(1 << 14);
        policy.depths.note_limit(64_000);
        // 640 items of 100 bytes: each 64th is ten items.
        let hash = |number: u64| (number + 1) << 48 | 77;
        let returns = |queue, number| {
            policy.note_eviction(queue, hash(number));
            policy.take_ghost(hash(number))
        };
        assert_eq!(policy.probation(), PROBATION);
        (0..50).for_each(|number| assert!(returns(Queue::Probation, number)));
        assert_eq!(policy.probation(), PROBATION + 10);
        // It is no ghost that was used: it goes through the probation queue again.
        (0..5).for_each(|number| assert!(!returns(Queue::Main, number)));
        assert_eq!(policy.probation(), PROBATION + 7);
        (0..1000).for_each(|number| assert!(returns(Queue::Probation, number)));
        assert_eq!(policy.probation(), PROBATION_MAX);
        (0..1000).for_each(|number| assert!(!returns(Queue::Main, number)));
        assert_eq!(policy.probation(), PROBATION);
    }

    /// Class of bug: in a table that was made for smaller items, epochs are long, and nothing came back soon in the
    /// later part of each.
    #[test]
    fn what_has_left_just_now_comes_back_soon_however_long_an_epoch_is() {
        // With such a lap, and ten items in each page on probation, 81, 168, 300 and 431 are soon. An epoch is 1024
        // ghosts.
        for lap in [150, 250, 400, 550] {
            let policy = S3Fifo::new(1 << 21, 1 << 21).unwrap();
            policy.note_sizes(&store(), 10, 1000);
            policy.ghosts.begin(1 << 15);
            policy.note_lengths(&Lengths {
                lap,
                main: 54,
                probation: 10,
                page_bytes: 1000,
            });
            let hash = |number: u64| (number + 1) << 56 | 77;
            let away = |number, ghosts: u64| {
                policy.ghosts.insert(hash(number));
                (0..ghosts).for_each(|other| policy.ghosts.insert(hash(100 + other % 100)));
                policy.take_ghost(hash(number))
            };
            for number in 0..90 {
                assert!(away(number, 10), "{number} of a lap of {lap}");
            }
            assert!(!away(90, 3000));
        }
    }

    #[test]
    fn there_are_more_ghosts_when_items_are_smaller() {
        let store = store();
        let policy = S3Fifo::new(1 << 20, 1 << 20).unwrap();
        let used = store.pool().used();
        policy.note_sizes(&store, 1, 20_000);
        let before = policy.ghosts.bytes();
        assert!(before < 6000, "{before}");
        (0..200).for_each(|_| policy.note_sizes(&store, 10, 1000));
        assert_eq!(policy.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
        assert_eq!(store.pool().used() - used, policy.ghosts.bytes());
        // The ghosts keep their room when items grow again: to shrink it would only give a few bytes back.
        (0..200).for_each(|_| policy.note_sizes(&store, 1, 20_000));
        assert_eq!(policy.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
    }

    #[test]
    fn the_mean_follows_what_is_cleaned() {
        let (store, policy) = (store(), S3Fifo::new(1 << 20, 1 << 20).unwrap());
        let used = store.pool().used();
        policy.note_sizes(&store, 10, 10_000);
        assert_eq!(store.pool().used() - used, policy.ghosts.bytes());
        assert_eq!(policy.ghosts.bytes(), (1 << 20) / GHOSTS_SHARE);
        assert_eq!(policy.mean_bytes(), 1000);
        policy.note_sizes(&store, 1, 1000 + MEAN_OF);
        assert_eq!(policy.mean_bytes(), 1001);
        for (bytes, mean) in [(64, 64), (65, 65), (7, 7)] {
            (0..1000).for_each(|_| policy.note_sizes(&store, 1, bytes));
            assert_eq!(policy.mean_bytes(), mean);
        }
    }
}
