//! Doubling the table while it is used, as memcached does: when there are one and a half times as many
//! items as buckets, and a bucket at a time.
//!
//! memcached's maintenance thread moves the buckets. Here every insert moves two, and the
//! background thread more, so a doubling is over before the doubled table is crowded even if
//! nobody maintains it. A bucket is moved under its lock; which are moved already is one number,
//! `split`, stored under that lock (see [`Index::geometry`]).
//!
//! Chains have no end, so a table that may not grow only becomes slower: nothing is ever evicted for
//! want of a bucket.

use nuthatch_sync::clock::Time;
use nuthatch_sync::shim::Ordering;

use super::Chained;
use super::index::Index;
use super::layout::Link;
use super::local::Local;
use crate::geometry::Geometry;
use crate::slab::arena::Chunk;

/// Buckets moved by each insert while the table doubles: `n` are moved by `n / 2` inserts, when
/// the new table is full to one item a bucket.
const SPLITS_AN_INSERT: usize = if cfg!(loom) { 1 } else { 2 };

/// The index may take one part in so many of the memory if pages must be taken from items for it.
const SHARE_OF_MEMORY: usize = 8;

/// Chunks that an insert empties for an index that waits for memory.
const DRAINED_AN_INSERT: usize = 32;

/// Items for each two buckets at which the table doubles (memcached: 1.5 a bucket).
const ITEMS_A_PAIR: u64 = 3;

impl Chained {
    /// Begins a doubling if there are enough items, and memory allows.
    #[cold]
    pub(super) fn grow_if_crowded(&self, local: &mut Local, now: Time) {
        // Relaxed: a number to decide by, a few items out of date. Below zero, wrapped, it is none.
        let items = self.population.load(Ordering::Relaxed);
        let items = if items > u64::MAX / 2 { 0 } else { items };
        let geometry = self.index.geometry();
        let buckets = geometry.buckets();
        if geometry.growing || 2 * items <= ITEMS_A_PAIR * buckets {
            return;
        }
        let Ok(splitter) = self.splitter.try_lock() else {
            return;
        };
        // Again under the lock: another thread may have begun, and even finished.
        let same = self.index.geometry() == geometry;
        if !same || 2 * buckets > self.index.buckets_max() {
            return;
        }
        let added = Index::bytes(buckets);
        if self.store.pool().charge(added) {
            // No key's bucket changes yet: no lock is needed.
            self.index.publish(Geometry {
                growing: true,
                ..geometry
            });
        } else {
            drop(splitter);
            self.save_for_growth(local, now, added);
        }
    }

    /// Empties pages for the index step by step, while it is small beside the items.
    fn save_for_growth(&self, local: &mut Local, now: Time, bytes: usize) {
        if self.evicts && 2 * bytes <= self.store.pool().limit() / SHARE_OF_MEMORY {
            self.store.pool().earmark(bytes);
            self.shrink(local, now, DRAINED_AN_INSERT);
        }
    }

    /// Moves a few buckets if the table is doubling.
    #[inline]
    pub(super) fn help_growth(&self) {
        if self.index.geometry().growing {
            self.split(SPLITS_AN_INSERT);
        }
    }

    /// Moves up to `budget` buckets, unless somebody else is at it. True if the table is still
    /// doubling afterwards.
    #[cold]
    pub(super) fn split(&self, budget: usize) -> bool {
        let Ok(_splitter) = self.splitter.try_lock() else {
            return true;
        };
        for _ in 0..budget {
            let geometry = self.index.geometry();
            if !geometry.growing {
                return false;
            }
            self.split_bucket(geometry);
        }
        self.index.geometry().growing
    }

    /// Divides the next bucket's items between itself and its upper half; behind the last bucket,
    /// the doubling is over.
    fn split_bucket(&self, geometry: Geometry) {
        if geometry.split == geometry.buckets() {
            // No key's bucket changes: no lock is needed.
            return self.index.publish(Geometry {
                mask: 2 * geometry.mask + 1,
                growing: false,
                split: 0,
            });
        }
        let arena = &self.store.arena;
        let upper = geometry.split + geometry.buckets();
        let locked = self.index.lock_bucket(geometry.split);
        // In their order, behind the last of either half.
        let mut last: [Option<Chunk>; 2] = [None; 2];
        let append = |half: usize, behind: Option<Chunk>, to: Option<Chunk>| match (behind, half) {
            (Some(behind), _) => Link::Next.store(arena, behind, to),
            (None, 0) => locked.set_first(to),
            (None, _) => locked.set_first_of_upper(upper, to),
        };
        let mut at = locked.first();
        while let Some(chunk) = at {
            at = Link::Next.load(arena, chunk);
            let half = usize::from(self.hash_of(chunk) & geometry.buckets() != 0);
            append(half, last[half], Some(chunk));
            last[half] = Some(chunk);
        }
        append(0, last[0], None);
        append(1, last[1], None);
        // Under the lock: whoever takes it from now on sees it.
        self.index.publish(Geometry {
            split: geometry.split + 1,
            ..geometry
        });
    }

    /// The hash of the item in a chunk that is in a chain whose lock is held.
    pub(super) fn hash_of(&self, chunk: Chunk) -> u64 {
        match self.store.copy_key(chunk) {
            Some(key) => self.hasher.hash(key.bytes()),
            None => unreachable!("an item in a chain has a key (chained 4)"),
        }
    }
}
