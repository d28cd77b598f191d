//! Cuckoo hashing with buckets of four slots: a key has two buckets, and an item may move to its other one.

use std::io;
use std::marker::PhantomData;

use nuthatch_base::hash::split;
use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::index::{Index, Inserted, Items, Reference, Shape};
use crate::locks::Writers;
use crate::search::Paths;
use crate::tags::{EMPTY, Tags};

/// Slots of a bucket.
pub const SLOTS: usize = 4;

/// The index of buckets.
pub struct Cuckoo<T, L> {
    slots: Mapped<AtomicU64>,
    mask: u64,
    locks: L,
    tags: PhantomData<T>,
}

/// A slot's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its bucket.
    pub bucket: u64,
    /// Its number there.
    pub slot: usize,
}

impl<T: Tags, L: Writers> Cuckoo<T, L> {
    /// The two buckets of a key with this hash, which are different.
    #[inline(always)]
    fn buckets(&self, hash: u64) -> [u64; 2] {
        let first = split::bucket(hash, self.mask);
        [first, split::bucket(first ^ T::offset(hash), self.mask)]
    }

    /// The bucket to which the item of a slot's word could move.
    #[inline(always)]
    pub(crate) fn partner(&self, bucket: u64, word: u64, items: &impl Items) -> u64 {
        split::bucket(bucket ^ T::offset_of(word, items), self.mask)
    }

    #[inline(always)]
    fn slots(&self, bucket: u64) -> &[AtomicU64; SLOTS] {
        let from = bucket as usize * SLOTS;
        let slots = self.slots[from..].first_chunk();
        slots.expect("a bucket's number is below their number")
    }

    /// The words of a bucket.
    #[inline(always)]
    pub(crate) fn words(&self, bucket: u64) -> [u64; SLOTS] {
        // Relaxed: `Locks::read` orders a reader's loads, and a writer's own come after those of the writers before it.
        self.slots(bucket)
            .each_ref()
            .map(|slot| slot.load(Ordering::Relaxed))
    }

    /// A free slot of a bucket, if there is one.
    #[inline(always)]
    pub(crate) fn free(&self, bucket: u64) -> Option<Place> {
        let words = self.words(bucket);
        let slot = words.iter().position(|&word| word == EMPTY)?;
        Some(Place { bucket, slot })
    }

    /// The word of a slot.
    #[inline(always)]
    pub(crate) fn load(&self, at: Place) -> u64 {
        self.slots(at.bucket)[at.slot].load(Ordering::Relaxed)
    }

    /// Within [`Locks::change`](crate::Locks::change) of the bucket.
    #[inline(always)]
    fn store(&self, at: Place, word: u64) {
        // Relaxed: the end of the change publishes it.
        self.slots(at.bucket)[at.slot].store(word, Ordering::Relaxed);
    }

    /// Moves an item to its other bucket. The caller is the only writer.
    #[inline]
    pub(crate) fn displace(&self, from: Place, to: Place, word: u64) {
        debug_assert_eq!((self.load(from), self.load(to)), (word, EMPTY));
        self.locks.change(from.bucket, to.bucket, || {
            self.store(to, word);
            self.store(from, EMPTY);
        });
    }
}

impl<T: Tags, L: Writers> Index for Cuckoo<T, L> {
    const LINKS: usize = 0;

    fn new(shape: Shape) -> io::Result<Self> {
        assert!(shape.buckets.is_power_of_two() && shape.buckets >= 2);
        let slots = shape.buckets as usize * SLOTS;
        let slots: Mapped<AtomicU64> = match shape.huge_pages {
            true => Mapped::reserve(slots)?,
            false => Mapped::reserve_to_grow(slots)?,
        };
        // Backed now: what is measured is the index, not the system.
        slots.populate(0..slots.len());
        Ok(Self {
            slots,
            mask: shape.buckets - 1,
            locks: L::new(shape.buckets),
            tags: PhantomData,
        })
    }

    #[inline(always)]
    fn find<R>(
        &self,
        hash: u64,
        _: &impl Items,
        mut look: impl FnMut(Reference) -> Option<R>,
    ) -> Option<R> {
        let [one, other] = self.buckets(hash);
        self.locks.read(one, other, || {
            // Both are loaded before an item is looked at: the processor fetches their lines at the same time.
            let words = [self.words(one), self.words(other)];
            let words = words.as_flattened().iter();
            let mut candidates = words.filter(|&&word| T::may_be(word, hash));
            candidates.find_map(|&word| look(T::item(word)?))
        })
    }

    #[inline]
    fn insert(
        &self,
        hash: u64,
        item: Reference,
        items: &impl Items,
        paths: &mut Paths,
    ) -> Inserted {
        self.locks.exclusive(|| {
            let [one, other] = self.buckets(hash);
            let Some(room) = paths.make_room(self, [one, other], items) else {
                return Inserted::Full;
            };
            self.locks
                .change(one, other, || self.store(room.at, T::word(hash, item)));
            Inserted::Yes {
                displaced: room.displaced,
                kicked: room.kicked,
            }
        })
    }

    fn remove(
        &self,
        hash: u64,
        _: &impl Items,
        mut is: impl FnMut(Reference) -> bool,
    ) -> Option<Reference> {
        self.locks.exclusive(|| {
            let [one, other] = self.buckets(hash);
            for bucket in [one, other] {
                for (slot, word) in self.words(bucket).into_iter().enumerate() {
                    let item = T::item(word).filter(|_| T::may_be(word, hash));
                    if let Some(item) = item.filter(|&item| is(item)) {
                        let at = Place { bucket, slot };
                        self.locks.change(one, other, || self.store(at, EMPTY));
                        return Some(item);
                    }
                }
            }
            None
        })
    }

    fn bytes(&self, _: u64) -> u64 {
        size_of_val(&*self.slots) as u64
    }

    fn fullest(&self, _: &impl Items) -> usize {
        let used = |bucket| {
            let words = self.words(bucket).into_iter();
            words.filter(|&word| word != EMPTY).count()
        };
        (0..=self.mask).map(used).max().unwrap_or(0)
    }
}
