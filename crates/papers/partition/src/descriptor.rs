//! The descriptor of a partition: what readers see of it while another thread owns it.
//!
//! With random eviction a hit changes no order, so all that a lookup needs of a partition is the place of the key's
//! bucket. The descriptor gives it, on a line of its own, which changes only when the index grows or the cache is
//! flushed. So all cores keep that line in their caches, and a lookup that hits writes no line of the partition. It
//! only writes its bucket's lock, and once a tick its element's header.
//!
//! ```text
//!  readers                                   the owner: the holder of the partition's lock
//!     |                                         |
//!     v        buckets, their blocks, flushes   |
//!  | descriptor | <----------------------------------+
//!     |                                         |
//!     +-------> | L bucket | L bucket | ... <---+   locks the one it changes
//!                   |
//!                   +-> element -> element          its words 1 and 4 are the bucket's holder's
//! ```
//!
//! Which operations run under which lock:
//!
//! * **A read** of a present element, with whatever options, takes its bucket's lock alone. It marks, touches or pins
//!   the element and copies its value out.
//! * **Everything else** takes the partition's lock, and its holder is the owner. It searches chains without locking
//!   their buckets, because no other thread changes them. To put an element into a chain, to take one out or to change
//!   one that is in the table it locks the bucket ([`Partition::holding`](super::table::Partition::holding)): the key's
//!   to store, delete or add to a number, a victim's to evict it, an element's to move it to other lines, the bucket
//!   that a new one divides, each that is swept; one at a time. Before that, under the partition's lock only, it
//!   allocates memory and writes new values.
//!
//! A store keeps the partition's lock throughout, because what it takes (lines, a sequence, a place in the counts, a
//! bucket more) belongs to the partition and not to one bucket.
//!
//! Invariants (on top of those of the [partitions](super) and of locked [buckets](super::bucket)):
//! 1. Only the owner changes the descriptor, and it agrees with the owner's state: `buckets` whenever the bucket that
//!    was divided last is not locked, the rest whenever the partition's lock is free.
//! 2. A thread that has locked a bucket, and then found that it is its hash's, can rely on that until it unlocks the
//!    bucket, because dividing the bucket takes the lock.
//! 3. Chains, and words 1 and 4 of the elements in the table, change only under their bucket's lock; chains also only
//!    by the owner. So a reader and the owner may both search.
//! 4. An element leaves its chain, and with it its lines, under the bucket's lock; so the elements that a reader walks
//!    over while it holds the lock are neither freed nor reused. A large value that it goes on reading is pinned first.
//! 5. A key's new element takes the place of the old one while the bucket's lock is held once: no reader misses it. An
//!    old one without which the store would be refused is not evicted to make room for it.
//! 6. No element stored before a flush is returned by a read that began after the flush ended, or that saw the flush or
//!    any later change.
//!
//! Linearization point of a read: the release of its bucket's lock. If it misses because there are no buckets at all:
//! the load of their number.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use nuthatch_base::hash::split;
use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::{AtomicU32, AtomicU64, Ordering};

use super::bucket::{Bucket, SEGMENT};
use super::element::Element;
use super::memory::BlockMemory;
use nuthatch_engine::AuditError;
use nuthatch_engine::reply::{Item, Reply};
use nuthatch_engine::request::{Expiry, Key, Read};

/// Segments whose blocks are listed in the descriptor itself.
const NEAR: usize = 4;
/// Runs of further segments, each twice as long as the one before: enough for every `u32` number of buckets.
const FAR: usize = (u32::BITS - SEGMENT.ilog2() - NEAR.ilog2()) as usize;
/// No delayed flush.
const NEVER: u64 = u64::MAX;

/// The state of a partition that readers see.
#[repr(align(64))]
pub struct Descriptor {
    /// The tick at which a delayed flush is due.
    flush_at: AtomicU64,
    /// Elements with a lower sequence are dead.
    flush_before: AtomicU64,
    buckets: AtomicU32,
    /// 1: a reader gave an element an expiry, and the sweep has not taken note of it yet.
    touched: AtomicU32,
    near: [AtomicU32; NEAR],
    far: OnceLock<Box<Far>>,
}

/// The blocks of segments `NEAR << k` to `NEAR << (k + 1)`, for each `k`.
type Far = [OnceLock<Box<[AtomicU32]>>; FAR];

impl Default for Descriptor {
    fn default() -> Self {
        Self {
            flush_at: AtomicU64::new(NEVER),
            flush_before: AtomicU64::new(0),
            buckets: AtomicU32::new(0),
            touched: AtomicU32::new(0),
            near: std::array::from_fn(|_| AtomicU32::new(0)),
            far: OnceLock::new(),
        }
    }
}

/// The result of a reader's search.
pub struct ReadResult<'a> {
    /// The key's live element.
    pub live: Option<LockedElement<'a>>,
    /// True if the key has an element, live or dead.
    pub found: bool,
    /// Elements looked at.
    pub searched: u64,
}

/// A live element whose bucket is locked until this is dropped.
pub struct LockedElement<'a> {
    descriptor: &'a Descriptor,
    locked: LockedBucket<'a>,
    element: Element,
}

/// A bucket that is locked until this is dropped.
struct LockedBucket<'a> {
    memory: &'a BlockMemory,
    bucket: Bucket,
}

impl Drop for LockedBucket<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.bucket.unlock(self.memory);
    }
}

impl Descriptor {
    /// Looks for a key. `None`: a delayed flush is due, and the partition's owner has to carry it out first.
    #[inline]
    pub fn seek<'a>(
        &'a self,
        memory: &'a BlockMemory,
        now: Time,
        key: &Key<'_>,
    ) -> Option<ReadResult<'a>> {
        // Acquire: pairs with the Release in `set_flush`: a reader that sees that a flush is no longer awaited sees
        // below that it took effect.
        if self.flush_at.load(Ordering::Acquire) <= u64::from(now.0) {
            return None;
        }
        let mut sight = ReadResult {
            live: None,
            found: false,
            searched: 0,
        };
        let Some((locked, first)) = self.lock(memory, key.hash()) else {
            return Some(sight);
        };
        let mut next = first;
        while let Some(element) = next {
            sight.searched += 1;
            if memory.hash(element) == key.hash() && memory.has_key(element, key.bytes()) {
                sight.found = true;
                if self.is_live(memory, element, now) {
                    let descriptor = self;
                    sight.live = Some(LockedElement {
                        descriptor,
                        locked,
                        element,
                    });
                }
                break;
            }
            next = memory.next_in_bucket(element);
        }
        Some(sight)
    }

    /// Locks a hash's bucket, and returns it with its first element. `None` if there are no buckets yet.
    #[inline(always)]
    fn lock<'a>(
        &self,
        memory: &'a BlockMemory,
        hash: u64,
    ) -> Option<(LockedBucket<'a>, Option<Element>)> {
        // This loop ends: a hash's bucket changes only when that bucket is divided, 32 times at most.
        loop {
            let number = self.bucket_of(hash)?;
            let bucket = self.place(number);
            let first = bucket.lock(memory);
            let locked = LockedBucket { memory, bucket };
            // Invariant 2: if it was divided before it was locked, the Acquire of the lock shows it here.
            if self.bucket_of(hash) == Some(number) {
                return Some((locked, first));
            }
        }
    }

    /// The bucket of a hash; `None` if there are none yet.
    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> Option<u32> {
        // Acquire: pairs with the Release in `set_buckets`: a bucket that is counted has its block, and the
        // chain that it was given.
        match self.buckets.load(Ordering::Acquire) {
            0 => None,
            buckets => Some(split::bucket_of_growing(hash, buckets)),
        }
    }

    /// The place of a bucket that is counted.
    #[inline(always)]
    fn place(&self, bucket: u32) -> Bucket {
        let segment = (bucket / SEGMENT) as usize;
        // Relaxed: written once, before the bucket was counted.
        let block = match self.near.get(segment) {
            Some(block) => block.load(Ordering::Relaxed),
            None => self
                .far(segment)
                .map_or(0, |block| block.load(Ordering::Relaxed)),
        };
        Bucket::new(block, bucket)
    }

    /// The entry with the block of a segment that is not near, if it was ever set.
    fn far(&self, segment: usize) -> Option<&AtomicU32> {
        let (run, at) = far_place(segment);
        self.far.get()?[run].get()?.get(at)
    }

    /// True if an element may still be returned.
    #[inline(always)]
    fn is_live(&self, memory: &BlockMemory, element: Element, now: Time) -> bool {
        // Relaxed: whatever showed a thread the end of a flush also orders this store before its load.
        let flush_before = self.flush_before.load(Ordering::Relaxed);
        !memory.expiry(element).is_past(now) && memory.sequence(element) >= flush_before
    }

    /// Starts loading a hash's bucket.
    #[inline]
    pub fn prefetch_bucket(&self, memory: &BlockMemory, hash: u64) {
        if let Some(bucket) = self.bucket_of(hash) {
            self.place(bucket).prefetch(memory);
        }
    }

    /// Starts loading the first element in a hash's bucket: its header and the line behind.
    #[inline]
    pub fn prefetch_header(&self, memory: &BlockMemory, hash: u64) {
        // The number of buckets may have changed by now: a prefetch of any bucket is harmless.
        let bucket = self.bucket_of(hash).map(|bucket| self.place(bucket));
        if let Some(first) = bucket.and_then(|bucket| bucket.first(memory)) {
            memory.prefetch(first.line());
            memory.prefetch_data(first);
        }
    }
}

impl LockedElement<'_> {
    /// The metadata that a plain get sees; marks the element as hit.
    #[inline(always)]
    pub fn get(&self, now: Time) -> Item {
        let item = self.memory().item(self.element, now);
        self.memory().mark_hit(self.element, now);
        item
    }

    /// The metadata that a read with options sees; changes the element as the options say, or refuses.
    #[inline]
    pub fn read(&self, now: Time, read: &Read) -> Result<Item, Reply> {
        let item = self.memory().mark_read(self.element, now, read)?;
        // Relaxed, here and in `take_touched`: the bucket's lock orders it with the sweep's look into the bucket. A
        // sweep that has passed the bucket, and took the mark before, finds it set again.
        if read.touch.is_some_and(|expiry| expiry != Expiry::Never)
            && self.descriptor.touched.load(Ordering::Relaxed) == 0
        {
            self.descriptor.touched.store(1, Ordering::Relaxed);
        }
        Ok(item)
    }

    /// Copies its value out.
    #[inline(always)]
    pub fn copy_value(&self, into: &mut [MaybeUninit<u8>]) {
        let memory = self.memory();
        memory.read(self.element, memory.key_len(self.element), into);
    }

    /// Adds a reader, which may keep the element as long as it likes; `None` if there are too many. It gives the
    /// reference back with [`Partition::decref`](super::table::Partition::decref).
    pub fn pin(&self) -> Option<Element> {
        self.memory()
            .add_reader(self.element)
            .then_some(self.element)
    }

    #[inline(always)]
    fn memory(&self) -> &BlockMemory {
        self.locked.memory
    }
}

/// The owner's side: it writes the state that readers see, and takes note of their marks.
impl Descriptor {
    /// Publishes the number of buckets. Their blocks are listed, and their elements are in their places.
    pub(super) fn set_buckets(&self, buckets: u32) {
        // Release: pairs with the Acquire in `bucket_of`.
        self.buckets.store(buckets, Ordering::Release);
    }

    /// Lists the block of the next segment.
    pub(super) fn name_block(&self, segment: usize, block: u32) {
        if let Some(near) = self.near.get(segment) {
            // Relaxed, here and below: published with the number of buckets.
            return near.store(block, Ordering::Relaxed);
        }
        let (run, at) = far_place(segment);
        let far = self.far.get_or_init(Box::default);
        let blocks = far[run].get_or_init(|| (0..NEAR << run).map(|_| AtomicU32::new(0)).collect());
        blocks[at].store(block, Ordering::Relaxed);
    }

    /// Publishes a flush: elements with a lower sequence than `before` are dead, and at `at` a delayed flush is due.
    pub(super) fn set_flush(&self, before: u64, at: Option<Time>) {
        self.flush_before.store(before, Ordering::Relaxed);
        let at = at.map_or(NEVER, |at| u64::from(at.0));
        // Release: pairs with the Acquire in `seek`.
        self.flush_at.store(at, Ordering::Release);
    }

    /// True if a reader gave an element an expiry since the last call.
    pub(super) fn take_touched(&self) -> bool {
        let touched = self.touched.load(Ordering::Relaxed) != 0;
        if touched {
            self.touched.store(0, Ordering::Relaxed);
        }
        touched
    }

    /// Checks invariant 1 against the owner's state. An error gives the descriptor's state.
    pub(super) fn audit(
        &self,
        blocks: &[u32],
        buckets: u32,
        flush: (u64, Option<Time>),
    ) -> Result<(), AuditError> {
        let told = self.buckets.load(Ordering::Relaxed);
        if told != buckets {
            return Err(format!("descriptor 1: {told} buckets, of {buckets}").into());
        }
        for bucket in (0..buckets).step_by(SEGMENT as usize) {
            let block = blocks[(bucket / SEGMENT) as usize];
            if self.place(bucket).block() != block {
                return Err(format!(
                    "descriptor 1: bucket {bucket} is not sought in block {block}"
                )
                .into());
            }
        }
        let before = self.flush_before.load(Ordering::Relaxed);
        let at = self.flush_at.load(Ordering::Relaxed);
        if (before, at) != (flush.0, flush.1.map_or(NEVER, |at| u64::from(at.0))) {
            return Err(format!(
                "descriptor 1: flushed before {before} and at {at}, not {flush:?}"
            )
            .into());
        }
        Ok(())
    }
}

/// The entry for a segment that is not near: its run, and its place there.
fn far_place(segment: usize) -> (usize, usize) {
    let doubled = segment.ilog2();
    ((doubled - NEAR.ilog2()) as usize, segment - (1 << doubled))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_segment_is_named_apart() {
        let descriptor = Descriptor::default();
        let segments = 3000;
        for segment in 0..segments {
            descriptor.name_block(segment, segment as u32 + 7);
        }
        for segment in 0..segments {
            let place = descriptor.place(segment as u32 * SEGMENT);
            assert_eq!(place.block(), segment as u32 + 7);
        }
        let last = (u32::MAX / SEGMENT) as usize;
        assert_eq!(far_place(last), (FAR - 1, (NEAR << (FAR - 1)) - 1));
    }
}
