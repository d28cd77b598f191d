//! The table of one partition: finding, linking, counting references.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::counts::{Counts, Searches};
use super::descriptor::Descriptor;
use super::element::{Element, Fields, HEADER, KEY_LEN_LIMIT, SEQUENCE_MAX, VALUE_LEN_LIMIT, mark};
use super::index::Index;
use super::memory::{BLOCK_COST, BLOCK_LINES, BlockMemory, LINE};
use super::share::OwnDescriptor;
use super::space::{Space, lines_for};
use nuthatch_base::hash::random::Xorshift;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Expiry, Key};

/// Which item leaves when a partition is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used one, strictly.
    #[default]
    Lru,
    /// The first one of a random bucket. A hit changes no order, so it writes next to nothing, and with
    /// LockHash it locks a bucket instead of a partition.
    Random,
}

/// The configuration of a partition.
///
/// The fields are in this order because every hit reads `eviction`: it lies beside the fields that a lookup reads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PartitionConfig {
    /// Which item leaves when there is no room.
    pub eviction: Eviction,
    /// False: a full partition answers [`Reply::OutOfMemory`] instead of evicting.
    pub evicts: bool,
    /// The largest item (header, key and value), in bytes.
    pub item_size_max: usize,
    /// Bytes that the partition may hold at most, with all bookkeeping of its blocks.
    pub capacity: usize,
    /// The seed of its random numbers; any value that differs between partitions is good enough.
    pub seed: u64,
}

/// One partition of a table: a table of its own, with one thread at a time as its owner. Other threads may read it
/// meanwhile if it has a [`Descriptor`].
///
/// The fields that a lookup reads come first, on as few lines as possible.
#[repr(C)]
pub struct Partition {
    pub(super) index: Index,
    pub(super) flush_at: Option<Time>,
    pub(super) flush_before: u64,
    pub(super) newest: Option<Element>,
    pub(super) oldest: Option<Element>,
    searches: Searches,
    pub(super) config: PartitionConfig,
    pub(super) descriptor: Option<OwnDescriptor>,
    pub(super) space: Space,
    pub(super) random: Xorshift,
    sequence: u64,
    /// True if elements with an expiry, or flushed ones, may be present.
    pub(super) sweeping: bool,
    /// The same, by what the sweep under way has met.
    pub(super) expiring: bool,
    /// The position of the sweep, in the order of the walk.
    pub(super) swept_to: u32,
    /// Blocks that the last refused store was short of.
    pub(super) wanted: u32,
    /// True once two keys with one hash were in the table at the same time.
    hash_collisions: bool,
    pub(super) counts: Counts,
}

// Two lines, with the word of a lock in descriptor.
const _: () = {
    let descriptor = std::mem::offset_of!(Partition, config) + size_of::<Eviction>();
    assert!(size_of::<u64>() + descriptor <= 2 * LINE);
};

impl Partition {
    /// An empty partition that takes its blocks from `memory`.
    pub fn new(memory: Arc<BlockMemory>, config: PartitionConfig) -> Self {
        Self::made(memory, config, None)
    }

    /// An empty partition that many threads can read under the bucket's lock while one owns it. They read through
    /// `descriptors[number]`, which is its own. Its eviction is random: the order of use has no lock a bucket.
    pub fn with_descriptor(
        memory: Arc<BlockMemory>,
        config: PartitionConfig,
        descriptors: Arc<[Descriptor]>,
        number: usize,
    ) -> Self {
        assert_eq!(
            config.eviction,
            Eviction::Random,
            "hits write to a partition's order of use, which is its owner's"
        );
        Self::made(
            memory,
            config,
            Some(OwnDescriptor {
                descriptors,
                number,
            }),
        )
    }

    fn made(
        memory: Arc<BlockMemory>,
        config: PartitionConfig,
        descriptor: Option<OwnDescriptor>,
    ) -> Self {
        Self {
            space: Space::new(memory),
            index: Index::new(descriptor.is_some()),
            descriptor,
            config,
            newest: None,
            oldest: None,
            searches: Searches::default(),
            random: Xorshift::new(config.seed),
            sequence: 1,
            flush_before: 0,
            flush_at: None,
            sweeping: false,
            expiring: false,
            swept_to: 0,
            wanted: 0,
            hash_collisions: false,
            counts: Counts::default(),
        }
    }

    /// The memory of its elements.
    #[inline(always)]
    pub fn memory(&self) -> &BlockMemory {
        &self.space.memory
    }

    /// Its counts since the start, and its present sizes.
    pub fn counts(&self) -> Counts {
        let all = u64::from(self.space.blocks()) * u64::from(BLOCK_LINES);
        Counts {
            free_lines: self.space.free_lines(),
            lines: all - self.space.free_lines(),
            buckets: u64::from(self.index.buckets()),
            bytes: self.bytes() as u64,
            searches: self.searches,
            ..self.counts
        }
    }

    /// Bytes of all its blocks, those of the buckets included, with all their bookkeeping.
    pub fn bytes(&self) -> usize {
        (self.space.blocks() as usize + self.index.blocks().len()) * BLOCK_COST
    }

    /// Bytes that it may hold at most.
    pub fn capacity(&self) -> usize {
        self.config.capacity
    }

    /// Changes the capacity. If the partition holds more, [`Partition::reclaim`] gives it back.
    pub fn set_capacity(&mut self, bytes: usize) {
        self.config.capacity = bytes;
    }

    /// Counts a store that its caller refuses because there is no memory, in other partitions either.
    pub fn count_out_of_memory(&mut self) {
        self.counts.out_of_memory += 1;
    }

    /// Blocks that the last store it refused was short of; the call resets it.
    pub fn take_wanted(&mut self) -> u32 {
        std::mem::take(&mut self.wanted)
    }

    /// Puts a delayed flush into effect once its time has come. To be called before each operation.
    #[inline(always)]
    pub(super) fn enter(&mut self, now: Time) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            self.flush_now();
            self.tell_flush();
        }
    }

    /// Every element stored before `at` stops being returned from `at` on. A moment not after `now`
    /// takes effect at once; a later call replaces a delayed one.
    pub fn flush(&mut self, now: Time, at: Time) {
        // A delayed flush that is due, but that no request has met yet, is not replaced.
        self.enter(now);
        self.flush_at = (at > now).then_some(at);
        if at <= now {
            self.flush_now();
        }
        self.tell_flush();
    }

    fn flush_now(&mut self) {
        self.flush_before = self.sequence;
        self.note_expiring();
    }

    /// True if an element may still be returned.
    #[inline(always)]
    pub(super) fn is_live(&self, element: Element, now: Time) -> bool {
        let memory = self.memory();
        !memory.expiry(element).is_past(now) && memory.sequence(element) >= self.flush_before
    }

    /// The element of a hash for which `same` holds, dead or live, and the number of elements looked at.
    #[inline(always)]
    fn search(
        &self,
        hash: u64,
        same: impl Fn(&BlockMemory, Element) -> bool,
    ) -> (Option<Element>, u64) {
        let mut searched = 0;
        if self.index.buckets() == 0 {
            return (None, searched);
        }
        let memory = self.memory();
        let mut next = self.index.first(memory, self.index.bucket_of(hash));
        while let Some(element) = next {
            searched += 1;
            if memory.hash(element) == hash && same(memory, element) {
                break;
            }
            next = memory.next_in_bucket(element);
        }
        (next, searched)
    }

    /// The same for the partition's own purposes: it does not count as a search.
    #[inline(always)]
    pub(super) fn find_where(
        &self,
        hash: u64,
        same: impl Fn(&BlockMemory, Element) -> bool,
    ) -> Option<Element> {
        self.search(hash, same).0
    }

    /// The same for a request: it counts as a search.
    #[inline(always)]
    pub(super) fn find_counted(
        &mut self,
        hash: u64,
        same: impl Fn(&BlockMemory, Element) -> bool,
    ) -> Option<Element> {
        let (found, searched) = self.search(hash, same);
        self.searches.count(found.is_some(), searched);
        found
    }

    /// The key's element, dead or live. The owner compares the keys.
    #[inline(always)]
    pub(super) fn find(&mut self, key: &Key<'_>) -> Option<Element> {
        self.find_counted(key.hash(), |memory, element| {
            memory.has_key(element, key.bytes())
        })
    }

    /// The key's live element.
    #[inline(always)]
    pub(super) fn find_live(&mut self, now: Time, key: &Key<'_>) -> Option<Element> {
        self.find(key).filter(|&element| self.is_live(element, now))
    }

    /// LOOKUP of the paper: the first live element with this hash, hit and with one more reader. The reader compares
    /// the key ([`BlockMemory::has_key`]) and gives the reference back with [`Partition::decref`]. If the key is
    /// another, two keys have one hash, and the owner has to compare them ([`Partition::execute`]). This and
    /// [`Partition::lookup_all`] are for partitions without a descriptor.
    #[inline]
    pub fn lookup(&mut self, now: Time, hash: u64) -> Option<Element> {
        debug_assert!(self.descriptor.is_none(), "readers go by the descriptor");
        self.enter(now);
        let live = |_: &BlockMemory, element| self.is_live(element, now);
        let (found, searched) = self.search(hash, live);
        self.searches.count(found.is_some(), searched);
        let element = found?;
        self.memory().add_reader(element).then_some(())?;
        self.hit(now, element);
        Some(element)
    }

    /// True once two keys with one hash were in the table at the same time: [`Partition::lookup`] may find the wrong
    /// one of them.
    #[inline]
    pub fn has_hash_collisions(&self) -> bool {
        self.hash_collisions
    }

    /// All live elements with this hash, each hit and with one more reader.
    pub fn lookup_all(&mut self, now: Time, hash: u64) -> Vec<Element> {
        debug_assert!(self.descriptor.is_none(), "readers go by the descriptor");
        self.enter(now);
        let (mut found, mut searched) = (Vec::new(), 0);
        let memory = self.memory();
        let mut next = match self.index.buckets() {
            0 => None,
            _ => self.index.first(memory, self.index.bucket_of(hash)),
        };
        while let Some(element) = next {
            searched += 1;
            let live = memory.hash(element) == hash && self.is_live(element, now);
            if live && memory.add_reader(element) {
                found.push(element);
            }
            next = memory.next_in_bucket(element);
        }
        self.searches.count(!found.is_empty(), searched);
        for &element in &found {
            self.hit(now, element);
        }
        found
    }

    /// Adds a reader to an element that the caller just found in the table; false if there are too many.
    #[inline]
    pub fn pin(&mut self, element: Element) -> bool {
        let hash = self.memory().hash(element);
        self.holding(hash, |partition| partition.memory().add_reader(element))
    }

    /// Removes a reader. The last one frees an element that is not in the table.
    #[inline]
    pub fn decref(&mut self, element: Element) {
        let memory = self.memory();
        if memory.state_bits(element) & mark::LINKED != 0 {
            let hash = memory.hash(element);
            return self.holding(hash, |partition| partition.memory().drop_reader(element));
        }
        memory.drop_reader(element);
        if memory.readers(element) == 0 {
            self.counts.held -= 1;
            self.free(element);
        }
    }

    /// Marks an element as used now. Its bucket is held.
    #[inline(always)]
    pub(super) fn hit(&mut self, now: Time, element: Element) {
        self.memory().mark_hit(element, now);
        self.renew(element);
    }

    /// INSERT of the paper: room for an element, NOT READY, with the caller as its one reader. The caller writes key
    /// and value with [`BlockMemory::write`] and makes it READY with [`Partition::publish`], or drops it with
    /// [`Partition::decref`]. An item of the same key does not change until then, so no reader misses it.
    ///
    /// Errors: [`Reply::TooLarge`]; [`Reply::OutOfMemory`] if all other elements have readers, or nothing may be
    /// evicted.
    pub fn insert(
        &mut self,
        now: Time,
        hash: u64,
        key_len: usize,
        value_len: usize,
    ) -> Result<Element, Reply> {
        // A caller may ask for any lengths: the sum is checked only if neither length is too large by itself.
        if key_len > KEY_LEN_LIMIT
            || value_len > VALUE_LEN_LIMIT
            || HEADER + key_len + value_len > self.config.item_size_max
        {
            return Err(Reply::TooLarge);
        }
        let data = key_len + value_len;
        // The first buckets come first: otherwise the element could take the last free memory.
        let indexed = self.index.buckets() > 0 || self.make_bucket(now);
        let element = indexed.then(|| self.allocate(now, data)).flatten();
        let element = element.ok_or(Reply::OutOfMemory)?;
        self.memory()
            .begin_header(element, hash, key_len, value_len);
        self.counts.held += 1;
        Ok(element)
    }

    /// Lines for an element, from any source: a block of the pool, scattered lines, or the lines of evicted elements.
    fn allocate(&mut self, now: Time, data: usize) -> Option<Element> {
        let lines = lines_for(data);
        if !self.config.evicts && !self.memory().claim(lines) {
            return None;
        }
        let blocks = (lines / BLOCK_LINES as usize) as u32;
        loop {
            let whole = if blocks == 0 {
                self.space.allocate(data)
            } else {
                while self.space.free_blocks() < blocks && self.grow() {}
                self.space.gather(data)
            };
            let element = match whole {
                Some(element) => Some(element),
                None if self.grow() => continue,
                None => self.space.gather(data),
            };
            if element.is_some() {
                return element;
            }
            if !self.config.evicts || !self.evict(now) {
                let short = (lines as u64).saturating_sub(self.space.free_lines());
                self.wanted = short.div_ceil(u64::from(BLOCK_LINES)) as u32 + 1;
                if !self.config.evicts {
                    self.memory().unclaim(lines);
                }
                return None;
            }
        }
    }

    /// One more block, if capacity and pool allow it.
    pub(super) fn grow(&mut self) -> bool {
        self.bytes() + BLOCK_COST <= self.config.capacity && self.space.grow()
    }

    /// Frees an element's lines. No reference to it is left.
    fn free(&mut self, element: Element) {
        if !self.config.evicts {
            let memory = self.memory();
            let data = memory.key_len(element) + memory.value_len(element);
            memory.unclaim(lines_for(data));
        }
        self.space.free(element);
    }

    /// Takes sequences from `least` on, unless the counter is further already.
    pub fn number_from(&mut self, least: u64) {
        self.sequence = self.sequence.max(least.min(SEQUENCE_MAX));
    }

    /// The sequence that the next store takes.
    pub fn next_number(&self) -> u64 {
        self.sequence
    }

    /// Takes the next sequence: above that of every element and every flush.
    ///
    /// Panics if there is none left.
    pub(super) fn next_sequence(&mut self) -> u64 {
        assert!(
            self.sequence < SEQUENCE_MAX,
            "{}",
            nuthatch_store::timestamps::SPENT
        );
        self.sequence += 1;
        self.sequence - 1
    }

    /// Puts an element into the table. Its bucket is held, and no other element has its key. Its reader stays.
    pub(super) fn link(&mut self, now: Time, element: Element, fields: &Fields) {
        self.note_expiry(fields.expiry);
        self.hash_collisions |= self
            .find_where(self.memory().hash(element), |_, _| true)
            .is_some();
        let memory = &*self.space.memory;
        memory.set_fields(element, memory.value_len(element), fields);
        memory.set_state_bits(element, mark::LINKED | mark::READY, 0);
        memory.set_accessed(element, now);
        let bucket = self.index.bucket_of(memory.hash(element));
        memory.set_next_in_bucket(element, self.index.first(memory, bucket));
        self.index.set_first(memory, bucket, Some(element));
        self.push_newest(element);
        self.count(element, 1);
        self.counts.held -= 1;
    }

    /// Takes an element out of the table. Its bucket is held. The element is freed, unless it has readers.
    pub(super) fn unlink(&mut self, element: Element) {
        let memory = &*self.space.memory;
        let bucket = self.index.bucket_of(memory.hash(element));
        self.replace_in_bucket(bucket, element, memory.next_in_bucket(element));
        self.drop_from_order(element);
        let memory = &*self.space.memory;
        memory.set_state_bits(element, 0, mark::LINKED);
        let readers = memory.readers(element);
        self.count(element, u64::MAX);
        if readers == 0 {
            self.free(element);
        } else {
            self.counts.held += 1;
        }
    }

    /// Puts `other` in the place of an element in its bucket's chain. The bucket is held.
    pub(super) fn replace_in_bucket(&self, bucket: u32, element: Element, other: Option<Element>) {
        let memory = self.memory();
        let mut at = self.index.first(memory, bucket);
        if at == Some(element) {
            return self.index.set_first(memory, bucket, other);
        }
        while let Some(before) = at {
            at = memory.next_in_bucket(before);
            if at == Some(element) {
                return memory.set_next_in_bucket(before, other);
            }
        }
        unreachable!("partition 1: a linked element is in its bucket");
    }

    /// Adds an element to the sums `times` (1 or, wrapping, minus 1).
    fn count(&mut self, element: Element, times: u64) {
        let memory = self.memory();
        let bytes = HEADER + memory.key_len(element) + memory.value_len(element);
        self.counts.items = self.counts.items.wrapping_add(times);
        self.counts.item_bytes = self
            .counts
            .item_bytes
            .wrapping_add((bytes as u64).wrapping_mul(times));
    }

    /// Notes that there may be something for the sweep to find.
    pub(super) fn note_expiring(&mut self) {
        self.sweeping = true;
        self.expiring = true;
    }

    /// The same, if the expiry is not `Never`.
    pub(super) fn note_expiry(&mut self, expiry: Expiry) {
        if expiry != Expiry::Never {
            self.note_expiring();
        }
    }

    /// The first element of a walk over a bucket; for visits, sweeps and audits.
    pub(super) fn bucket(&self, bucket: u32) -> Option<Element> {
        self.index.first(self.memory(), bucket)
    }
}
