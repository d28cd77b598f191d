//! Chains through the items, as in memcached: a bucket is a reference to the first item of its chain.

use std::io;
use std::iter;

use nuthatch_base::hash::split;
use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use crate::index::{Index, Inserted, Items, Reference, Shape};
use crate::locks::Locks;
use crate::search::Paths;

/// The index of chains.
pub struct Chains<L> {
    heads: Mapped<AtomicU64>,
    mask: u64,
    locks: L,
}

impl<L> Chains<L> {
    /// The items of a chain.
    #[inline(always)]
    fn chain<'a>(
        &'a self,
        bucket: u64,
        items: &'a impl Items,
    ) -> impl Iterator<Item = Reference> + 'a {
        // Relaxed: all links are read and written under the bucket's lock.
        let at = |word: &AtomicU64| Reference::of_word(word.load(Ordering::Relaxed));
        let first = at(&self.heads[bucket as usize]);
        iter::successors(first, move |&item| at(items.link(item)))
    }
}

impl<L: Locks> Index for Chains<L> {
    const LINKS: usize = 1;

    fn new(shape: Shape) -> io::Result<Self> {
        assert!(shape.buckets.is_power_of_two());
        let heads: Mapped<AtomicU64> = match shape.huge_pages {
            true => Mapped::reserve(shape.buckets as usize)?,
            false => Mapped::reserve_to_grow(shape.buckets as usize)?,
        };
        // Backed now: what is measured is the index, not the system.
        heads.populate(0..heads.len());
        Ok(Self {
            heads,
            mask: shape.buckets - 1,
            locks: L::new(shape.buckets),
        })
    }

    #[inline(always)]
    fn find<T>(
        &self,
        hash: u64,
        items: &impl Items,
        mut look: impl FnMut(Reference) -> Option<T>,
    ) -> Option<T> {
        let bucket = split::bucket(hash, self.mask);
        self.locks.read(bucket, bucket, || {
            self.chain(bucket, items).find_map(&mut look)
        })
    }

    #[inline]
    fn insert(&self, hash: u64, item: Reference, items: &impl Items, _: &mut Paths) -> Inserted {
        let bucket = split::bucket(hash, self.mask);
        self.locks.change(bucket, bucket, || {
            let head = &self.heads[bucket as usize];
            let first = head.load(Ordering::Relaxed);
            items.link(item).store(first, Ordering::Relaxed);
            head.store(item.word(), Ordering::Relaxed);
        });
        Inserted::Yes {
            displaced: 0,
            kicked: 0,
        }
    }

    fn remove(
        &self,
        hash: u64,
        items: &impl Items,
        mut is: impl FnMut(Reference) -> bool,
    ) -> Option<Reference> {
        let bucket = split::bucket(hash, self.mask);
        self.locks.change(bucket, bucket, || {
            let mut before = &self.heads[bucket as usize];
            for item in self.chain(bucket, items) {
                let link = items.link(item);
                if is(item) {
                    before.store(link.load(Ordering::Relaxed), Ordering::Relaxed);
                    return Some(item);
                }
                before = link;
            }
            None
        })
    }

    fn bytes(&self, items: u64) -> u64 {
        size_of_val(&*self.heads) as u64 + items * (Self::LINKS * size_of::<AtomicU64>()) as u64
    }

    fn fullest(&self, items: &impl Items) -> usize {
        let chains = (0..=self.mask).map(|bucket| {
            let read = || self.chain(bucket, items).count();
            self.locks.read(bucket, bucket, read)
        });
        chains.max().unwrap_or(0)
    }
}
