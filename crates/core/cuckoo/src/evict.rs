//! Making room in the cuckoo table: beside memory ([`Reclaim`]) a store needs a slot. Items are pushed along a path,
//! the index grows, or one of the items in the key's buckets leaves.
//!
//! No thread waits for an eviction: a victim is taken out of the index like any removed item,
//! with its versions bumped before and after (MemC3 section 4), and late readers read again.

use nuthatch_base::sync::clock::Time;

use super::Cuckoo;
use super::index::{Candidates, LockedBuckets, Moved, Position};
use super::layout::{SlotWord, Variant};
use super::local::Local;
use super::search::Searched;
use nuthatch_store::count::Count;
use nuthatch_store::item::Header;
use nuthatch_store::item::unlinked::Unlinked;
use nuthatch_store::log::Log;
use nuthatch_store::log::clean::Relocate;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::reclaim::removals::Removals;
use nuthatch_store::timestamps::Timestamps;

/// Paths that other writers may spoil before an item of the buckets is evicted instead.
const SEARCHES_MAX: usize = 8;

/// Searches while the table doubles: each splits a few more buckets, and one split bucket within reach is enough.
/// Nearly all stores succeed in the first.
const SEARCHES_MAX_GROWING: usize = 512;

impl<D: Variant> Reclaim for Cuckoo<D> {
    type Local = Local;

    fn timestamps(&self) -> &Timestamps {
        &self.timestamps
    }

    fn remove_from_index(
        &self,
        _local: &mut Local,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let key = self.store.copy_key(address)?;
        self.remove_at(self.hasher.hash(key.bytes()), address, doomed)
    }

    fn removals(&self) -> Option<&Removals> {
        self.removals.as_ref()
    }

    /// False in the paper's design, whose one writer holds its lock meanwhile.
    fn may_notify_between(&self) -> bool {
        !D::ONE_WRITER
    }
}

impl<D: Variant<Placement = Log>> Relocate for Cuckoo<D> {
    fn prefetch_hash(&self, hash: u64) {
        self.index.prefetch(&self.index.place(hash));
    }

    fn remove_hashed(
        &self,
        hash: u64,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        self.remove_at(hash, address, doomed)
    }

    fn relocate(&self, hash: u64, from: Address, to: Address, copied: u64) -> bool {
        let place = self.index.place(hash);
        let locked = self.index.lock(&place);
        let old = SlotWord::new::<D>(place.tag, from);
        // Under the lock: no reader can pin an item that is not in the index.
        let Some(at) = locked.find(old).filter(|_| !self.is_pinned(from)) else {
            locked.release_unmodified();
            return false;
        };
        let header = self.store.finish_move(from, to, copied);
        let words = header.record_words(self.store.cut());
        locked.store(at, SlotWord::of_record::<D>(place.tag, to, words));
        true
    }

    fn relocate_piece(&self, hash: u64, head: Address, from: Address, to: Address) -> bool {
        let place = self.index.place(hash);
        let locked = self.index.lock(&place);
        let linked = locked.find(SlotWord::new::<D>(place.tag, head)).is_some();
        let moved = linked && !self.is_pinned(head) && self.store.finish_piece_move(head, from, to);
        if !moved {
            locked.release_unmodified();
        }
        moved
    }
}

impl<D: Variant> Cuckoo<D> {
    /// True if a reader has a linked item pinned, whose lock is held.
    fn is_pinned(&self, address: Address) -> bool {
        let header = Header::load(&self.store.arena, address);
        self.store.is_pinned(address, &header)
    }

    /// Takes the item at an address out of the index, whose key has this hash, if it is there and `doomed`.
    fn remove_at(
        &self,
        hash: u64,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let place = self.index.place(hash);
        let locked = self.index.lock(&place);
        // The key may have been torn, or the memory reused: only a slot that refers to this very
        // address, under this key's tag, in this key's buckets, proves that it is linked.
        let slot = SlotWord::new::<D>(place.tag, address);
        let found = locked
            .find(slot)
            .map(|at| (at, Header::load(&self.store.arena, address)));
        let Some((at, header)) = found.filter(|(_, header)| doomed(header)) else {
            locked.release_unmodified();
            return None;
        };
        Some(locked.take_out(at, header))
    }

    /// Where the key at an address belongs: reliable only if its bucket is locked.
    pub(super) fn candidates_of(&self, address: Address) -> Option<Candidates> {
        let key = self.store.copy_key(address)?;
        Some(self.index.place(self.hasher.hash(key.bytes())))
    }

    /// Makes a slot free in one of the key's buckets: by pushing items along a cuckoo path, by growing the index, or by
    /// evicting one of the sixteen items there. Another writer may take the slot before the caller does. False if
    /// nothing may be evicted.
    #[cold]
    pub(super) fn make_room(&self, local: &mut Local, now: Time, place: &Candidates) -> bool {
        for turn in 0..SEARCHES_MAX_GROWING {
            let candidates_of = |item: SlotWord| self.candidates_of(item.address::<D>());
            let growing = match local.searcher.search(&self.index, place, candidates_of) {
                Searched::Near => false,
                // The index grows while there still are paths, so no thread waits for a whole doubling.
                Searched::Far | Searched::Full => self.start_growth(local, now),
            };
            if self.follow_path(local) {
                return true;
            }
            if growing && local.searcher.path.free.is_none() {
                self.await_growth();
            }
            let patience = local.searcher.path.free.is_some() && turn < SEARCHES_MAX;
            if !growing && !patience {
                break;
            }
        }
        self.evict_from_buckets(local, now, place)
    }

    /// Moves the items of the path that was found, from its end. False if another writer changed the path first.
    fn follow_path(&self, local: &Local) -> bool {
        let path = &local.searcher.path;
        let Some(mut free) = path.free else {
            return false;
        };
        for &(from, item) in path.steps.iter().rev() {
            let candidates_of = |item: SlotWord| self.candidates_of(item.address::<D>());
            if self.index.relocate(from, free, item, candidates_of) == Moved::Stale {
                return false;
            }
            local.counters.one(Count::Displaced);
            free = from;
        }
        local.counters.path(path.steps.len());
        true
    }

    /// Evicts one of the items in the key's buckets, because the table is full and may not grow, or not fast enough:
    /// one that was not used lately if possible. False if nothing may be evicted.
    fn evict_from_buckets(&self, local: &Local, now: Time, place: &Candidates) -> bool {
        let locked = self.index.lock(place);
        let Some(at) = self.worst(&locked, now) else {
            // Another thread made room meanwhile.
            locked.release_unmodified();
            return true;
        };
        let address = locked.load(at).address::<D>();
        let header = Header::load(&self.store.arena, address);
        if !self.evicts && self.is_live(&header, now) {
            locked.release_unmodified();
            return false;
        }
        let gone = locked.take_out(at, header);
        self.slot_cleared(local, now, gone);
        true
    }

    /// The item of the two buckets whose loss costs least: a dead one, else one not used lately, else the first. `None`
    /// if a slot is free.
    pub(super) fn worst(&self, locked: &LockedBuckets<'_, D>, now: Time) -> Option<Position> {
        let mut worst = None;
        for at in locked.positions() {
            let slot = locked.load(at);
            if slot.is_empty() {
                return None;
            }
            let address = slot.address::<D>();
            if !self.is_live(&Header::load(&self.store.arena, address), now) {
                return Some(at);
            }
            let idle = !self.store.recency.pass(address);
            if worst.is_none() || idle {
                worst = Some(at);
            }
        }
        worst
    }
}
