//! Reads that look at more than the value, or change the item: gat, touch, and the meta commands'.

use std::sync::Arc;

use nuthatch_sync::clock::Time;

use super::find::Asked;
use super::get::Attempt;
use super::handle::{COPY_MAX, CuckooValue};
use super::index::Locked;
use super::layout::Design;
use super::local::Local;
use super::{Cuckoo, Found, plain_item};
use crate::count::Count;
use crate::item::{Fields, Header};
use crate::reply::{Item, Replies, Reply};
use crate::request::{Expiry, Read};
use crate::semantics::wins;
use crate::slab::arena::Chunk;
use crate::slab::fresh::Fresh;

impl<D: Design> Cuckoo<D> {
    /// Answers with the value of an item whose lock is held, and releases it.
    pub(super) fn hand_out(
        self: &Arc<Self>,
        locked: Locked<'_, D>,
        chunk: Chunk,
        header: &Header,
        item: Item,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let shape = header.shape(self.store.chunk_max());
        if item.value_len > COPY_MAX {
            self.store.pins.pin(chunk);
            drop(locked);
            let value = CuckooValue::new(Arc::clone(self), chunk, *header);
            replies.large(index, &item, value);
        } else {
            // Copied under the lock: what was changed and what is answered are one.
            let into = replies.begin(index, &item);
            self.store.read_value(chunk, &shape, 0, into);
            drop(locked);
            replies.commit(index);
        }
    }

    /// A read with options.
    pub(super) fn read(
        self: &Arc<Self>,
        local: &mut Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if !self.read_unchanged(local, asked, read, replies) {
            self.read_changing(local, asked, read, replies);
        }
    }

    /// Answers a read that changes nothing, without a lock. False if it may have to change
    /// something, or must hold a large value in place.
    fn read_unchanged(
        &self,
        local: &Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) -> bool {
        let Asked {
            now,
            ref key,
            index,
        } = *asked;
        let place = &self.index.place(key.hash());
        if read.touch.is_some() {
            return false;
        }
        loop {
            let (snapshot, buckets) = self.index.begin(place);
            let found = self.find(local, place.tag, buckets, key);
            let Some(found) = found.filter(|found| self.is_live(&found.header, now)) else {
                if read.vivify.is_some() {
                    return false;
                }
                match self.settle(&snapshot, || replies.done(index, Reply::Miss)) {
                    Attempt::Done => return true,
                    _ => continue,
                }
            };
            let item = self.item(found.chunk, &found.header, now);
            let value = read.value && read.unless_cas != Some(item.cas);
            if wins(read, &item, now) || (value && item.value_len > COPY_MAX) {
                return false;
            }
            if value {
                let shape = found.header.shape(self.store.chunk_max());
                self.store
                    .read_value(found.chunk, &shape, 0, replies.begin(index, &item));
            }
            match (self.index.unchanged(&snapshot), value) {
                (true, true) => replies.commit(index),
                (true, false) => replies.done(index, Reply::Found(item)),
                (false, laid_down) => {
                    if laid_down {
                        replies.retract(index);
                    }
                    local.counters.one(Count::Retries);
                    continue;
                }
            }
            if read.bump {
                self.store.recency.hit(found.chunk);
            }
            return true;
        }
    }

    /// A read that changes the item, or creates it, under its lock.
    fn read_changing(
        self: &Arc<Self>,
        local: &mut Local,
        asked: &Asked<'_>,
        read: &Read,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let Asked {
            now,
            ref key,
            index,
        } = *asked;
        let place = &self.index.place(key.hash());
        let mut spare = None;
        loop {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            let live = found.filter(|found| self.is_live(&found.header, now));
            if let Some(found) = live {
                self.read_hit(locked, now, &found, read, index, replies);
                break;
            }
            let Some(expiry) = read.vivify else {
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
                break;
            };
            let Some(fresh) = spare.take() else {
                locked.release_unmodified();
                match self.allocate(local, now, key, 0, read.new_cas.is_some()) {
                    Ok(fresh) => spare = Some(fresh),
                    Err(refusal) => return replies.done(index, refusal),
                }
                continue;
            };
            match self.vivify(local, locked, found, fresh, now, expiry, read) {
                Ok(item) => {
                    self.answer_vivified(item, read, index, replies);
                    break;
                }
                Err(fresh) => {
                    spare = Some(fresh);
                    if !self.make_room(local, now, place) {
                        local.counters.one(Count::OutOfMemory);
                        replies.done(index, Reply::OutOfMemory);
                        break;
                    }
                }
            }
        }
        if let Some(fresh) = spare {
            self.discard(fresh);
        }
        self.help_growth();
    }

    fn answer_vivified(
        &self,
        item: Item,
        read: &Read,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        if read.value {
            replies.begin(index, &item);
            replies.commit(index);
        } else {
            replies.done(index, Reply::Found(item));
        }
    }

    /// Links an empty item that its creator has won. Gives the memory back if there is no slot.
    #[expect(clippy::too_many_arguments, reason = "one call, from the loop above")]
    fn vivify(
        &self,
        local: &mut Local,
        locked: Locked<'_, D>,
        dead: Option<Found>,
        fresh: Fresh,
        now: Time,
        expiry: Expiry,
        read: &Read,
    ) -> Result<Item, Fresh> {
        self.lifetimes.note_expiry(expiry);
        let above = dead.map_or(0, |found| found.header.sequence());
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: self
                .lifetimes
                .next_sequence(&mut local.sequences, now, above),
            cas: read.new_cas,
            stale: false,
            won: true,
        };
        let header = self.link(local, locked, dead, fresh, &fields)?;
        Ok(Item {
            won: true,
            won_before: false,
            ..plain_item(&header)
        })
    }

    /// A hit under the lock: everything that the read decides and changes.
    fn read_hit(
        self: &Arc<Self>,
        locked: Locked<'_, D>,
        now: Time,
        found: &Found,
        read: &Read,
        index: usize,
        replies: &mut impl Replies<CuckooValue<D>>,
    ) {
        let mut item = self.item(found.chunk, &found.header, now);
        let mut fields = found.header.fields();
        let mut changed = false;
        if wins(read, &item, now) {
            item.won = true;
            fields.won = true;
            changed = true;
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            fields.expiry = expiry;
            changed = true;
            self.lifetimes.note_expiry(expiry);
        }
        if changed {
            let shape = found.header.shape(self.store.chunk_max());
            Header::new(&shape, &fields).store(&self.store.arena, found.chunk);
        }
        if read.bump {
            self.store.recency.hit(found.chunk);
        }
        let header = Header::load(&self.store.arena, found.chunk);
        if read.value && read.unless_cas != Some(item.cas) {
            self.hand_out(locked, found.chunk, &header, item, index, replies);
        } else if changed {
            drop(locked);
            replies.done(index, Reply::Found(item));
        } else {
            locked.release_unmodified();
            replies.done(index, Reply::Found(item));
        }
    }
}
