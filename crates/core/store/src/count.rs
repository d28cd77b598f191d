//! The counters of the engines on the slab store, and the statistics made from them.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::eviction::slab::Policy;
use crate::item::{HEADER, HEADER_WIDE, Header};
use crate::log::Queue;
use crate::memory::arena::{Chunk, WORD};
use crate::memory::sizes::CLASSES_MAX;
use crate::reclaim::ItemState;
use crate::slab::Store;
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
    pub fn one_of(&self, store: &Store, header: &Header, count: ClassCount) {
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
    pub fn evicted_at(&self, store: &Store, header: &Header, age: Duration) {
        let seconds = age.as_secs();
        store.evicted_ages.note(class_of(store, header), age);
        let power = (u64::BITS - seconds.leading_zeros()) as usize;
        self.add(AGES_START + power.min(AGES - 1), 1);
        self.add(Count::EvictedSeconds as usize, seconds);
    }

    /// An item came into the index.
    pub fn item_in(&self, store: &Store, header: &Header) {
        self.one(Count::Linked);
        self.bytes(store, header, 1);
    }

    /// An item left it.
    pub fn item_out(&self, store: &Store, header: &Header) {
        self.one(Count::Unlinked);
        self.bytes(store, header, u64::MAX);
    }

    /// One item in the place of another: usually of the same size, which changes no sum.
    #[inline]
    pub fn item_swapped(&self, store: &Store, old: &Header, new: &Header) {
        let chunk_max = store.chunk_max();
        if old.shape(chunk_max) != new.shape(chunk_max) {
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
    pub fn removed_on_request(&self, store: &Store, header: &Header) {
        self.one_of(store, header, ClassCount::Removed);
    }

    /// An item left without a request: it was evicted if live, else it had expired or was flushed.
    pub fn removed(&self, store: &Store, chunk: Chunk, header: &Header, left: ItemState) {
        let fetched = store.recency.was_fetched(chunk);
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
    fn bytes(&self, store: &Store, header: &Header, times: u64) {
        let shape = header.shape(store.chunk_max());
        let bytes = (shape.total_bytes() as u64).wrapping_mul(times);
        self.add(Count::Bytes as usize, bytes);
        self.add(
            Count::KeyBytes as usize,
            (shape.key_len as u64).wrapping_mul(times),
        );
        if shape.wide {
            self.add(Count::Wide as usize, times);
        }
        self.chunk(store, shape.head_bytes(), times);
        let class = store.class_of(shape.head_bytes());
        self.add(class_count(class, ClassCount::Items), times);
        for index in 0..shape.segments() {
            self.chunk(store, shape.segment_bytes(index), times);
        }
    }

    fn chunk(&self, store: &Store, bytes: usize, times: u64) {
        let class = store.class_of(bytes);
        let bytes = (bytes as u64).wrapping_mul(times);
        self.add(class_count(class, ClassCount::Bytes), bytes);
        self.add(class_count(class, ClassCount::Chunks), times);
    }
}

/// The class in which an item is counted: that of its header.
fn class_of(store: &Store, header: &Header) -> usize {
    store.class_of(header.shape(store.chunk_max()).head_bytes())
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

/// All statistics of an engine without its index.
pub fn engine_stats(
    counters: &Registry<COUNTS>,
    store: &Store,
    timestamps: &Timestamps,
    policy: &dyn Policy,
) -> EngineStats {
    let (sums, live) = (counters.sums_since_reset(), counters.sums());
    let count = |count: Count| sums[count as usize];
    let of_classes = |count| -> u64 {
        let classes = 0..store.sizes.count();
        classes.map(|class| sums[class_count(class, count)]).sum()
    };
    let since = |sequence: Option<u64>| sequence.map(|sequence| timestamps.stored_at(sequence));
    let fast_hits = count(Count::FastHits);
    let (memory_limit, memory_used) = {
        let pool = store.pool();
        (pool.limit() as u64, pool.used() as u64)
    };
    let all = (0..store.sizes.count()).map(|class| {
        let oldest = policy.oldest(store, class);
        ClassStats {
            oldest: since(oldest.map(|chunk| Header::load(&store.arena, chunk).sequence())),
            ..class_stats(&sums, &live, store, class)
        }
    });
    let (classes, vacant_classes) =
        all.partition(|class| class.pages > 0 || class.evictions > 0 || class.out_of_memory > 0);
    EngineStats {
        log: store.log.as_ref().map(|log| {
            let [probation_pages, main_pages] = log.queue_lengths();
            LogStats {
                page_bytes: log.page_bytes() as u64,
                probation_pages: probation_pages as u64,
                main_pages: main_pages as u64,
                probation_since: since(log.first_stored(store, Queue::Probation)),
                main_since: since(log.first_stored(store, Queue::Main)),
                moved_to_main: of_classes(ClassCount::MovedToMain),
                moved_within_main: of_classes(ClassCount::MovedWithinMain),
                ghost_bytes: log.policy.ghosts.bytes() as u64,
                evicted_probation: count(Count::EvictedProbation),
                evicted_main: count(Count::EvictedMain),
                evicted_slots: count(Count::EvictedSlots),
                ghost_hits: count(Count::GhostHits),
                more_hits: more_hits(&sums),
                pages_cleaned: count(Count::PagesCleaned),
                bytes_moved: count(Count::BytesMoved),
            }
        }),
        items: items(&live),
        total_items: count(Count::Stored),
        item_bytes: standing(live[Count::Bytes as usize]),
        memory_use: Some(memory_use(&live, store)),
        memory_limit,
        memory_used,
        evictions: count(Count::Evicted),
        evicted_unfetched: count(Count::EvictedUnfetched),
        evicted_ages: sums[AGES_START..][..AGES].to_vec(),
        evicted_seconds: count(Count::EvictedSeconds),
        expired: count(Count::Expired),
        flushed: Some(count(Count::Flushed)),
        expired_unfetched: count(Count::ExpiredUnfetched),
        out_of_memory: count(Count::OutOfMemory),
        pages_moved: store.pages_moved() + count(Count::PagesCleaned),
        swept: count(Count::Swept),
        read_expired: count(Count::ReadExpired),
        read_flushed: count(Count::ReadFlushed),
        lookups: count(Count::Lookups) + fast_hits + count(Count::FastMisses),
        lookup_hits: count(Count::Hits) + fast_hits,
        searched_hit: count(Count::SearchedHit) + fast_hits,
        searched_miss: count(Count::SearchedMiss),
        read_retries: count(Count::Retries),
        false_tags: count(Count::FalseTags),
        displacements: count(Count::Displaced),
        path_lengths: std::array::from_fn(|length| sums[PATH_START + length]),
        classes,
        vacant_classes,
        ..EngineStats::default()
    }
}

/// The hits of each step, the hits of the steps before it included.
fn more_hits(sums: &[u64; COUNTS]) -> [u64; MORE_MEMORY.len()] {
    let mut hits = 0;
    std::array::from_fn(|step| {
        hits += sums[MORE_START + step];
        hits
    })
}

/// What each byte in use is used for. What changes during the count may be counted twice or not at all.
fn memory_use(live: &[u64; COUNTS], store: &Store) -> MemoryUse {
    let standing = |count: Count| standing(live[count as usize]);
    let (items, bytes, keys) = (
        items(live),
        standing(Count::Bytes),
        standing(Count::KeyBytes),
    );
    let headers = HEADER as u64 * items + (HEADER_WIDE - HEADER) as u64 * standing(Count::Wide);
    let held = match &store.log {
        Some(log) => log.held_words() * WORD,
        None => (0..store.sizes.count())
            .map(|class| store.class(class).used * store.sizes.chunk(class))
            .sum(),
    } as u64;
    let ghosts = store
        .log
        .as_ref()
        .map_or(0, |log| log.policy.ghosts.bytes()) as u64;
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

fn class_stats(
    sums: &[u64; COUNTS],
    live: &[u64; COUNTS],
    store: &Store,
    class: usize,
) -> ClassStats {
    let inner = store.class(class);
    let count = |count| sums[class_count(class, count)];
    let per_page = inner.per_page as usize;
    // In a log the items of a size have no pages of their own: the figure is the number of pages that they would fill.
    let (pages, used, free) = match &store.log {
        Some(_) => {
            let used = standing(live[class_count(class, ClassCount::Chunks)]) as usize;
            (used.div_ceil(per_page), used, 0)
        }
        None => (inner.pages.len(), inner.used, inner.free_chunks()),
    };
    ClassStats {
        class: class + 1,
        chunk_size: inner.chunk_bytes,
        chunks_per_page: per_page,
        pages,
        items: standing(live[class_count(class, ClassCount::Items)]),
        used_chunks: used,
        free_chunks: free,
        requested_bytes: standing(live[class_count(class, ClassCount::Bytes)]),
        evictions: count(ClassCount::Evicted),
        evicted_unfetched: count(ClassCount::EvictedUnfetched),
        evicted_expiring: count(ClassCount::EvictedExpiring),
        evicted_main: count(ClassCount::EvictedMain),
        evicted_age: store.evicted_ages.of(class),
        oldest: None,
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
    use crate::eviction::slab::clock::Clock;
    use crate::memory::sizes::{CHUNK_MIN, PAGE, Sizes};

    /// One thread adds an item after it was summed, and another removed it before it is summed.
    #[test]
    fn what_is_summed_too_late_is_nothing_and_not_everything() {
        let registry = Registry::<COUNTS>::default();
        let counted = ThreadCounters::register(&registry);
        counted.one(Count::Unlinked);
        counted.add(Count::Bytes as usize, 100_u64.wrapping_neg());
        counted.add(class_count(0, ClassCount::Bytes), 100_u64.wrapping_neg());
        let sizes = Sizes::new(4 * PAGE, CHUNK_MIN, 1.25);
        let store = Store::new(4 * PAGE, 4 * PAGE, sizes).unwrap();
        // So that the class is shown.
        store.allocate(0).unwrap();
        let stats = engine_stats(&registry, &store, &Timestamps::default(), &Clock);
        assert_eq!((stats.items, stats.item_bytes), (0, 0));
        assert_eq!(stats.classes[0].requested_bytes, 0);
    }
}
