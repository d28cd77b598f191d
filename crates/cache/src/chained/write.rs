//! Writing: stores and removals.
//!
//! A store fills its chunk first, while nobody else knows of it, and locks only to look at what is
//! there and to change the chain. Stores that depend on what is there: see [`table`].

use nuthatch_sync::clock::Time;

use super::Chained;
use super::find::Found;
use super::index::Locked;
use super::local::Local;
use crate::count::Count;
use crate::item::{Fields, Header, Shape, plain_item};
use crate::lifetime::Lifetimes;
use crate::reply::Reply;
use crate::request::{Condition, Store};
use crate::semantics::{allows, permit};
use crate::slab::arena::Chunk;
use crate::slab::fresh::Fresh;
use crate::table::{self, Asked, Table};

impl Chained {
    /// Finishes the header of a filled item and puts it into the table, in the place of `found`.
    pub(super) fn link(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_>,
        found: Option<Found>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Header {
        let header = Header::new(&fresh.shape, fields);
        header.store(&self.store.arena, fresh.chunk);
        if let Some(old) = &found {
            self.leave(&locked, old);
        }
        self.enter(&locked, fresh.chunk, &header);
        drop(locked);
        match found {
            Some(old) => {
                local
                    .counters
                    .item_swapped(&self.store, &old.header, &header);
                self.store.retire(old.chunk, &old.header);
            }
            None => {
                local.counters.item_in(&self.store, &header);
                if local.came(&self.population) {
                    self.grow_if_crowded(local, now);
                }
            }
        }
        self.help_growth();
        header
    }
}

/// A live item under its bucket's lock.
pub struct Held<'t> {
    locked: Locked<'t>,
    found: Found,
}

impl table::Held for Held<'_> {
    #[inline]
    fn chunk(&self) -> Chunk {
        self.found.chunk
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.found.header
    }

    // Nobody reads without the lock, so there is nobody to be told of a change.
    #[inline]
    fn release(self) {}
}

impl Table for Chained {
    type Local = Local;
    type Held<'t> = Held<'t>;

    fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Always with the wide header.
    fn shape(&self, key_len: usize, value_len: usize, _wide: bool) -> Shape {
        Shape::new(key_len, value_len, true, self.store.chunk_max())
    }

    fn take_chunk(&self, local: &mut Local, now: Time, class: usize) -> Option<Chunk> {
        self.allocate_chunk(local, now, class)
    }

    #[inline(always)]
    fn hold(&self, local: &Local, asked: &Asked<'_>) -> Option<Held<'_>> {
        let locked = self.index.lock(asked.key.hash());
        let found = self.find_live(local, &locked, asked)?;
        Some(Held { locked, found })
    }

    #[inline]
    fn used(&self, held: &Held<'_>) {
        self.hit(held.found.chunk, &held.found.header);
    }

    #[inline]
    fn replace(
        &self,
        local: &mut Local,
        now: Time,
        held: Held<'_>,
        fresh: Fresh,
        fields: &Fields,
    ) -> Header {
        let Held { locked, found } = held;
        self.link(local, now, locked, Some(found), fresh, fields)
    }

    fn publish(
        &self,
        local: &mut Local,
        asked: &Asked<'_>,
        fresh: Fresh,
        store: &Store<'_>,
    ) -> Reply {
        self.lifetimes.note_expiry(store.expiry);
        let now = asked.now;
        let locked = self.index.lock(asked.key.hash());
        let found = self.find(local, &locked, &asked.key);
        let live = found.filter(|found| self.is_live(&found.header, now));
        let stale = match allows(store, live.as_ref().map(|found| &found.header)) {
            Ok(stale) => stale,
            Err(refusal) => {
                drop(locked);
                self.store.discard(fresh);
                return refusal;
            }
        };
        let fields = self.stored(local, now, store, found.map(|found| found.header), stale);
        self.store.recency.start(fresh.chunk);
        let header = self.link(local, now, locked, found, fresh, &fields);
        local.counters.one(Count::Stored);
        Reply::Stored(plain_item(&header))
    }

    fn delete(&self, local: &mut Local, asked: &Asked<'_>, condition: Condition) -> Reply {
        let locked = self.index.lock(asked.key.hash());
        let Some(found) = self.find(local, &locked, &asked.key) else {
            return Reply::NotFound;
        };
        let live = self.is_live(&found.header, asked.now);
        if live && permit(condition, &found.header).is_err() {
            return Reply::Exists;
        }
        // A dead item is taken out as well: its memory comes back at once.
        self.leave(&locked, &found);
        drop(locked);
        local.went(&self.population);
        local.counters.item_out(&self.store, &found.header);
        self.store.retire(found.chunk, &found.header);
        if live {
            Reply::Removed
        } else {
            Reply::NotFound
        }
    }
}
