//! The counters of the engines on the slab store, and the statistics made from them.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::item::{HEADER, HEADER_WIDE, Header};
use crate::memory::arena::Address;
use crate::memory::sizes::CLASSES_MAX;
use crate::reclaim::ItemState;
use crate::store::{Placement, Store};
use crate::timestamps::Timestamps;
use nuthatch_base::sync::clock::Time;
use nuthatch_engine::counters::{Counters, Registry};
use nuthatch_engine::request::Expiry;
use nuthatch_engine::stats::{
    AGES, ClassStats, EngineStats, LogStats, MORE_MEMORY, MemoryUse, PATH_LENGTH_MAX,
};

/// The engine-wide counters.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Count {
    /// Items linked.
    Linked,
    /// Items unlinked.
    Unlinked,
    /// Stores.
    Stored,
    /// Bytes asked for by linked items (goes down when they leave).
    Bytes,
    /// Of these, bytes of keys.
    KeyBytes,
    /// Linked items with a wide header.
    Wide,
    /// Live items evicted.
    Evicted,
    /// Of these, never fetched.
    EvictedUnfetched,
    /// Seconds since they were stored.
    EvictedSeconds,
    /// Expired or flushed items whose memory came back.
    Expired,
    /// Of these, those that had not expired.
    Flushed,
    /// Of these, never fetched.
    ExpiredUnfetched,
    /// Stores refused for want of memory.
    OutOfMemory,
    /// Chunks the sweep looked at.
    Swept,
    /// Reads that started again.
    Retries,
    /// Tags that matched although the keys differed.
    FalseTags,
    /// Items moved to their other bucket.
    Displaced,
    /// Searches for a key.
    Lookups,
    /// Of these, those that found it.
    Hits,
    /// Items looked at by searches that found their key.
    SearchedHit,
    /// Items looked at by those that did not.
    SearchedMiss,
    /// Items evicted at the end of a log's probation queue.
    EvictedProbation,
    /// Items evicted at the end of its main queue.
    EvictedMain,
    /// Items evicted because both of their key's buckets were full.
    EvictedSlots,
    /// Items stored that were ghosts and came back soon.
    GhostHits,
    /// Pages of a log emptied.
    PagesCleaned,
    /// Bytes moved to empty them.
    BytesMoved,
    /// Reads that found an item which had expired.
    ReadExpired,
    /// Reads that found an item which had been flushed.
    ReadFlushed,
    /// Gets that found their key at the first item looked at: counted here alone, though each is a
    /// search, a hit and an item looked at as well.
    FastHits,
    /// Gets that looked at no item: counted here alone, though each is a search as well.
    FastMisses,
}

const ENGINE_COUNTS: usize = Count::FastMisses as usize + 1;

/// Counters of a size class.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum ClassCount {
    /// Bytes asked for in its chunks.
    Bytes,
    /// Items and pieces of items of its size.
    Chunks,
    /// The items alone.
    Items,
    /// Live items evicted.
    Evicted,
    /// Of these, never fetched.
    EvictedUnfetched,
    /// Of these, with an expiry.
    EvictedExpiring,
    /// Of these, of a log's main queue.
    EvictedMain,
    /// Expired or flushed items whose memory came back.
    Expired,
    /// Of these, never fetched.
    ExpiredUnfetched,
    /// Items removed on request.
    Removed,
    /// Items moved from a log's probation queue to its main one.
    MovedToMain,
    /// Items moved within its main queue.
    MovedWithinMain,
    /// Stores refused.
    OutOfMemory,
}

const CLASS_COUNTS: usize = ClassCount::OutOfMemory as usize + 1;

const PATH_START: usize = ENGINE_COUNTS;

const AGES_START: usize = PATH_START + PATH_LENGTH_MAX + 1;

const MORE_START: usize = AGES_START + AGES;

const CLASS_START: usize = MORE_START + MORE_MEMORY.len();

/// How many counters a thread has.
pub const COUNTS: usize = CLASS_START + CLASS_COUNTS * CLASSES_MAX;

/// For each class, the age in seconds of the item that was evicted from it last.
pub struct EvictedAges([AtomicU32; CLASSES_MAX]);

impl Default for EvictedAges {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; CLASSES_MAX])
    }
}

impl EvictedAges {
    fn note(&self, class: usize, age: Duration) {
        let seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        // Relaxed, here and below: a statistic. Of several concurrent stores any may be the last. Models leave it out.
        self.0[class].store(seconds, Ordering::Relaxed);
    }

    fn of(&self, class: usize) -> u64 {
        self.0[class].load(Ordering::Relaxed).into()
    }
}

/// A thread's counters. They stay in the sums when the thread has left.
pub struct ThreadCounters(Arc<Counters<COUNTS>>);

/// The index of a class's counter.
pub const fn class_count(class: usize, count: ClassCount) -> usize {
    CLASS_START + CLASS_COUNTS * class + count as usize
}

impl Deref for ThreadCounters {
    type Target = Counters<COUNTS>;

    #[inline(always)]
    fn deref(&self) -> &Counters<COUNTS> {
        &self.0
    }
}

impl ThreadCounters {
    /// A new thread's.
    pub fn register(registry: &Registry<COUNTS>) -> Self {
        Self(registry.register())
    }

    /// The thread leaves.
    pub fn unregister(&self, registry: &Registry<COUNTS>) {
        registry.unregister(&self.0);
    }

    /// One more.
    #[inline(always)]
    pub fn one(&self, count: Count) {
        self.add(count as usize, 1);
    }

    /// One more in a class.
    #[inline(always)]
    pub fn one_in(&self, class: usize, count: ClassCount) {
        self.add(class_count(class, count), 1);
    }

    /// One more in an item's class.
    pub fn one_of<P: Placement>(&self, store: &Store<P>, header: &Header, count: ClassCount) {
        self.one_in(class_of(store, header), count);
    }

    /// Counts a displacement of so many items to make a slot free.
    pub fn path(&self, length: usize) {
        self.add(PATH_START + length.min(PATH_LENGTH_MAX), 1);
    }

    /// Counts items that were stored again and that this step of [`MORE_MEMORY`] would have kept.
    pub fn more_hits(&self, step: usize, items: u64) {
        self.add(MORE_START + step, items);
    }

    /// A live item of this age was evicted.
    pub fn evicted_at<P: Placement>(&self, store: &Store<P>, header: &Header, age: Duration) {
        let seconds = age.as_secs();
        store.evicted_ages.note(class_of(store, header), age);
        let power = (u64::BITS - seconds.leading_zeros()) as usize;
        self.add(AGES_START + power.min(AGES - 1), 1);
        self.add(Count::EvictedSeconds as usize, seconds);
    }

    /// An item came into the index.
    pub fn item_in<P: Placement>(&self, store: &Store<P>, header: &Header) {
        self.one(Count::Linked);
        self.bytes(store, header, 1);
    }

    /// An item left it.
    pub fn item_out<P: Placement>(&self, store: &Store<P>, header: &Header) {
        self.one(Count::Unlinked);
        self.bytes(store, header, u64::MAX);
    }

    /// One item in the place of another: usually of the same size, which changes no sum.
    #[inline]
    pub fn item_swapped<P: Placement>(&self, store: &Store<P>, old: &Header, new: &Header) {
        let cut = store.cut();
        if old.shape(cut) != new.shape(cut) {
            self.item_out(store, old);
            self.item_in(store, new);
        }
    }

    /// A read found an item that is dead.
    #[cold]
    pub fn read_dead(&self, header: &Header, now: Time) {
        self.one(match header.is_expired(now) {
            true => Count::ReadExpired,
            false => Count::ReadFlushed,
        });
    }

    /// A live item was removed on request.
    pub fn removed_on_request<P: Placement>(&self, store: &Store<P>, header: &Header) {
        self.one_of(store, header, ClassCount::Removed);
    }

    /// An item left without a request: it was evicted if live, else it had expired or was flushed.
    pub fn removed<P: Placement>(
        &self,
        store: &Store<P>,
        address: Address,
        header: &Header,
        left: ItemState,
    ) {
        let fetched = store.recency.was_fetched(address);
        let class = class_of(store, header);
        if left == ItemState::Live {
            self.one(Count::Evicted);
            self.one_in(class, ClassCount::Evicted);
            if header.expiry() != Expiry::Never {
                self.one_in(class, ClassCount::EvictedExpiring);
            }
            if !fetched {
                self.one(Count::EvictedUnfetched);
                self.one_in(class, ClassCount::EvictedUnfetched);
            }
        } else {
            self.one(Count::Expired);
            self.one_in(class, ClassCount::Expired);
            if left == ItemState::Flushed {
                self.one(Count::Flushed);
            }
            if !fetched {
                self.one(Count::ExpiredUnfetched);
                self.one_in(class, ClassCount::ExpiredUnfetched);
            }
        }
    }

    /// Adds an item's bytes `times` (1 or, wrapping, minus 1) to the engine's and the class's.
    fn bytes<P: Placement>(&self, store: &Store<P>, header: &Header, times: u64) {
        let shape = header.shape(store.cut());
        let bytes = (shape.total_bytes() as u64).wrapping_mul(times);
        self.add(Count::Bytes as usize, bytes);
        self.add(
            Count::KeyBytes as usize,
            (shape.key_len as u64).wrapping_mul(times),
        );
        if shape.wide {
            self.add(Count::Wide as usize, times);
        }
        self.memory(store, shape.head_bytes(), times);
        let class = store.class_of(shape.head_bytes());
        self.add(class_count(class, ClassCount::Items), times);
        for index in 0..shape.pieces() {
            self.memory(store, shape.piece_bytes(index), times);
        }
    }

    fn memory<P: Placement>(&self, store: &Store<P>, bytes: usize, times: u64) {
        let class = store.class_of(bytes);
        let bytes = (bytes as u64).wrapping_mul(times);
        self.add(class_count(class, ClassCount::Bytes), bytes);
        self.add(class_count(class, ClassCount::Chunks), times);
    }
}

/// The class in which an item is counted: that of its header.
fn class_of<P: Placement>(store: &Store<P>, header: &Header) -> usize {
    store.class_of(header.shape(store.cut()).head_bytes())
}

/// Items in the table, from the counters since the start.
pub fn items(live: &[u64; COUNTS]) -> u64 {
    standing(live[Count::Linked as usize].wrapping_sub(live[Count::Unlinked as usize]))
}

/// A count that goes up and down, from a sum over the threads one after the other: the sum may miss what one thread
/// added and include what another thread subtracted. A negative sum is shown as zero.
fn standing(sum: u64) -> u64 {
    if sum > u64::MAX / 2 { 0 } else { sum }
}

/// The chunks of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassUse {
    /// Its pages.
    pub pages: usize,
    /// Chunks given out.
    pub used: usize,
    /// Free chunks in its pages.
    pub free: usize,
}

/// What a placement tells of itself.
pub trait Figures: Placement {
    /// Bytes of the chunks or records in use.
    fn held_bytes(store: &Store<Self>) -> usize;

    /// Pages moved from one use to another so far, beside those that threads count.
    fn pages_moved(store: &Store<Self>) -> u64;

    /// A class, of which items and pieces of items hold so many chunks.
    fn class_use(store: &Store<Self>, class: usize, chunks: usize) -> ClassUse;

    /// The item of a class that is next to leave, where items of a class are kept in order.
    fn oldest(store: &Store<Self>, class: usize) -> Option<Address>;

    /// The statistics of a log.
    fn log_stats(store: &Store<Self>, sums: &Sums<'_>) -> Option<LogStats>;
}

/// The sums of all threads' counters.
pub struct Sums<'e> {
    /// Since the start or the last reset.
    since_reset: [u64; COUNTS],
    /// Since the start.
    live: [u64; COUNTS],
    timestamps: &'e Timestamps,
}

impl Sums<'_> {
    /// A counter of the engine.
    pub fn of(&self, count: Count) -> u64 {
        self.since_reset[count as usize]
    }

    /// A counter of a class.
    fn in_class(&self, class: usize, count: ClassCount) -> u64 {
        self.since_reset[class_count(class, count)]
    }

    /// A counter of all classes together.
    pub fn of_classes(&self, count: ClassCount) -> u64 {
        let classes = 0..CLASSES_MAX;
        classes.map(|class| self.in_class(class, count)).sum()
    }

    /// A count that goes up and down.
    fn standing(&self, count: Count) -> u64 {
        standing(self.live[count as usize])
    }

    /// The same in a class.
    fn standing_in(&self, class: usize, count: ClassCount) -> u64 {
        standing(self.live[class_count(class, count)])
    }

    /// The moment at which a sequence was given to an item.
    pub fn since(&self, sequence: Option<u64>) -> Option<Time> {
        sequence.map(|sequence| self.timestamps.stored_at(sequence))
    }

    /// The hits of each step of [`MORE_MEMORY`], the hits of the steps before it included.
    pub fn more_hits(&self) -> [u64; MORE_MEMORY.len()] {
        let mut hits = 0;
        std::array::from_fn(|step| {
            hits += self.since_reset[MORE_START + step];
            hits
        })
    }

    /// The numbers of items, by their ages, that were evicted.
    fn evicted_ages(&self) -> &[u64] {
        &self.since_reset[AGES_START..][..AGES]
    }
}

/// All statistics of an engine without its index.
pub fn engine_stats<P: Figures>(
    counters: &Registry<COUNTS>,
    store: &Store<P>,
    timestamps: &Timestamps,
) -> EngineStats {
    let sums = Sums {
        since_reset: counters.sums_since_reset(),
        live: counters.sums(),
        timestamps,
    };
    let fast_hits = sums.of(Count::FastHits);
    let (memory_limit, memory_used) = {
        let pool = store.pool();
        (pool.limit() as u64, pool.used() as u64)
    };
    let all = (0..store.sizes.count()).map(|class| class_stats(&sums, store, class));
    let (classes, vacant_classes) =
        all.partition(|class| class.pages > 0 || class.evictions > 0 || class.out_of_memory > 0);
    EngineStats {
        log: P::log_stats(store, &sums),
        items: items(&sums.live),
        total_items: sums.of(Count::Stored),
        item_bytes: sums.standing(Count::Bytes),
        memory_use: Some(memory_use(&sums, store)),
        memory_limit,
        memory_used,
        evictions: sums.of(Count::Evicted),
        evicted_unfetched: sums.of(Count::EvictedUnfetched),
        evicted_ages: sums.evicted_ages().to_vec(),
        evicted_seconds: sums.of(Count::EvictedSeconds),
        expired: sums.of(Count::Expired),
        flushed: Some(sums.of(Count::Flushed)),
        expired_unfetched: sums.of(Count::ExpiredUnfetched),
        out_of_memory: sums.of(Count::OutOfMemory),
        pages_moved: P::pages_moved(store) + sums.of(Count::PagesCleaned),
        swept: sums.of(Count::Swept),
        read_expired: sums.of(Count::ReadExpired),
        read_flushed: sums.of(Count::ReadFlushed),
        lookups: sums.of(Count::Lookups) + fast_hits + sums.of(Count::FastMisses),
        lookup_hits: sums.of(Count::Hits) + fast_hits,
        searched_hit: sums.of(Count::SearchedHit) + fast_hits,
        searched_miss: sums.of(Count::SearchedMiss),
        read_retries: sums.of(Count::Retries),
        false_tags: sums.of(Count::FalseTags),
        displacements: sums.of(Count::Displaced),
        path_lengths: std::array::from_fn(|length| sums.since_reset[PATH_START + length]),
        classes,
        vacant_classes,
        ..EngineStats::default()
    }
}

/// What each byte in use is used for. What changes during the count may be counted twice or not at all.
fn memory_use<P: Figures>(sums: &Sums<'_>, store: &Store<P>) -> MemoryUse {
    let items = items(&sums.live);
    let (bytes, keys) = (sums.standing(Count::Bytes), sums.standing(Count::KeyBytes));
    let wide = (HEADER_WIDE - HEADER) as u64 * sums.standing(Count::Wide);
    let headers = HEADER as u64 * items + wide;
    let (held, ghosts) = (P::held_bytes(store) as u64, P::ghost_bytes(store) as u64);
    let pool = store.pool();
    let pages = (pool.used_pages() * store.sizes.page()) as u64;
    let bookkeeping = pool.pages_cost() as u64 - pages;
    MemoryUse {
        values: bytes.saturating_sub(keys + headers),
        keys,
        headers,
        padding: held.saturating_sub(bytes),
        gaps: pages.saturating_sub(held),
        bookkeeping,
        index: (pool.charged() as u64).saturating_sub(ghosts),
        ghosts,
    }
}

fn class_stats<P: Figures>(sums: &Sums<'_>, store: &Store<P>, class: usize) -> ClassStats {
    let count = |count| sums.in_class(class, count);
    let chunks = sums.standing_in(class, ClassCount::Chunks) as usize;
    let ClassUse { pages, used, free } = P::class_use(store, class, chunks);
    let oldest = P::oldest(store, class);
    ClassStats {
        class: class + 1,
        chunk_size: store.sizes.chunk(class),
        chunks_per_page: store.chunks_per_page(class),
        pages,
        items: sums.standing_in(class, ClassCount::Items),
        used_chunks: used,
        free_chunks: free,
        requested_bytes: sums.standing_in(class, ClassCount::Bytes),
        evictions: count(ClassCount::Evicted),
        evicted_unfetched: count(ClassCount::EvictedUnfetched),
        evicted_expiring: count(ClassCount::EvictedExpiring),
        evicted_main: count(ClassCount::EvictedMain),
        evicted_age: store.evicted_ages.of(class),
        oldest: sums.since(oldest.map(|address| Header::load(&store.arena, address).sequence())),
        expired: count(ClassCount::Expired),
        expired_unfetched: count(ClassCount::ExpiredUnfetched),
        removed: count(ClassCount::Removed),
        moved_to_main: count(ClassCount::MovedToMain),
        moved_within_main: count(ClassCount::MovedWithinMain),
        out_of_memory: count(ClassCount::OutOfMemory),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::slab::clock;
    use crate::memory::sizes::{CHUNK_MIN, PAGE, Sizes};
    use crate::slab::Slab;

    /// One thread adds an item after it was summed, and another removed it before it is summed.
    #[test]
    fn what_is_summed_too_late_is_nothing_and_not_everything() {
        let registry = Registry::<COUNTS>::default();
        let counted = ThreadCounters::register(&registry);
        counted.one(Count::Unlinked);
        counted.add(Count::Bytes as usize, 100_u64.wrapping_neg());
        counted.add(class_count(0, ClassCount::Bytes), 100_u64.wrapping_neg());
        let sizes = Sizes::new(4 * PAGE, CHUNK_MIN, 1.25);
        let store = Store::<Slab>::new(4 * PAGE, 4 * PAGE, sizes, 0, &clock::KIND).unwrap();
        // So that the class is shown.
        store.allocate(0).unwrap();
        let stats = engine_stats(&registry, &store, &Timestamps::default());
        assert_eq!((stats.items, stats.item_bytes), (0, 0));
        assert_eq!(stats.classes[0].requested_bytes, 0);
    }
}
