//! Reads that return more than the value, or change the item: gat, touch, and those of the meta commands.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::get::{ATTEMPTS, Attempt};
use super::handle::{COPY_MAX, CuckooValue};
use super::index::LockedBuckets;
use super::layout::Variant;
use super::local::Local;
use super::write::Replaced;
use super::{Cuckoo, Found, plain_item};
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::{Expiry, Read};
use nuthatch_engine::semantics::{Rewrite, permit_touch, wins};
use nuthatch_store::count::Count;
use nuthatch_store::item::Header;
use nuthatch_store::item::fresh::Fresh;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::{Lookup, Step, Table, answer_vivified};

/// True if a read with these options may change its item, or make one.
fn may_change(read: &Read) -> bool {
    read.touch.is_some() || read.vivify.is_some() || read.may_win
}

/// What a read did to the item that it answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: readers without a lock need not read again. A pin is none. Who unlinks, moves or overwrites an item
    /// takes its lock first: by that, and not by the versions, it sees the pins made before.
    None,
    /// Its header.
    Header,
}

impl Change {
    fn release<D: Variant>(self, locked: LockedBuckets<'_, D>) {
        match self {
            Self::None => locked.release_unmodified(),
            Self::Header => drop(locked),
        }
    }
}

impl<D: Variant> Cuckoo<D> {
    /// Answers with the value of an item whose lock is held, and releases it.
    pub(super) fn hand_out(
        self: &Arc<Self>,
        locked: LockedBuckets<'_, D>,
        change: Change,
        found: (Address, &Header, Item),
        index: usize,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let (address, header, item) = found;
        let shape = header.shape(self.store.cut());
        if item.value_len > COPY_MAX {
            // SAFETY: the item is locked. Only values of up to half of `COPY_MAX` bytes are changed in place.
            let value = unsafe { CuckooValue::new(Arc::clone(self), address, header) };
            change.release(locked);
            replies.large(index, &item, value);
        } else {
            // Copied under the lock: so the change and the answer are one step.
            let into = replies.begin(index, &item);
            self.store.read_value(address, &shape, 0, into);
            change.release(locked);
            replies.commit(index);
        }
    }

    /// A read with options.
    pub(super) fn read(
        self: &Arc<Self>,
        local: &mut Local,
        lookup: &Lookup<'_>,
        read: &Read,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        if self.read_unchanged(local, lookup, read, replies) {
            return;
        }
        // In the paper's design a read that changes the item is a writer. One that only pins a large value, or that
        // writers have spoiled, is none: it takes the stripes alone, as a plain get does.
        let _writer = may_change(read).then(|| self.one_writer());
        self.read_changing(local, lookup, read, replies);
    }

    /// Answers a read that changes nothing, without a lock. False if the read may have to change something, must pin a
    /// large value in place, or has had all its attempts spoiled by writers.
    fn read_unchanged(
        &self,
        local: &Local,
        lookup: &Lookup<'_>,
        read: &Read,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) -> bool {
        let Lookup {
            now,
            ref key,
            index,
        } = *lookup;
        let place = &self.index.place(key.hash());
        if read.touch.is_some() {
            return false;
        }
        for _ in 0..ATTEMPTS {
            let (snapshot, buckets) = self.index.begin(place);
            let met = self.find(local, place.tag, buckets, key);
            let Some(found) = met.filter(|found| self.is_live(&found.header, now)) else {
                if read.vivify.is_some() {
                    return false;
                }
                let missed = || {
                    if let Some(dead) = &met {
                        local.counters.read_dead(&dead.header, now);
                    }
                    replies.done(index, Reply::Miss);
                };
                match self.done_if_unchanged(&snapshot, missed) {
                    Attempt::Done => return true,
                    _ => continue,
                }
            };
            let item = self.item(found.address, &found.header, read.idle.then_some(now));
            let value = read.value && read.unless_cas != Some(item.cas);
            if wins(read, &item, now) || (value && item.value_len > COPY_MAX) {
                return false;
            }
            if value {
                let shape = found.header.shape(self.store.cut());
                self.store
                    .read_value(found.address, &shape, 0, replies.begin(index, &item));
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
                self.store.hit(found.address, &found.header);
            }
            return true;
        }
        false
    }

    /// A read that changes the item, or creates it, under its lock.
    fn read_changing(
        self: &Arc<Self>,
        local: &mut Local,
        lookup: &Lookup<'_>,
        read: &Read,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let Lookup {
            now,
            ref key,
            index,
        } = *lookup;
        let place = &self.index.place(key.hash());
        let attempt = |local: &mut Local, spare: &mut Option<Fresh>| {
            let locked = self.index.lock(place);
            let found = self.find_locked(local, &locked, key);
            if let Some(found) = found.filter(|found| self.is_live(&found.header, now)) {
                self.read_hit(locked, now, found, read, index, replies);
                return Step::Done(());
            }
            if let Some(dead) = &found {
                local.counters.read_dead(&dead.header, now);
            }
            let Some(expiry) = read.vivify else {
                locked.release_unmodified();
                replies.done(index, Reply::Miss);
                return Step::Done(());
            };
            let shape = self.shape(key.bytes().len(), 0, read.new_cas.is_some());
            let Some(fresh) = spare.take() else {
                locked.release_unmodified();
                return Step::Wants(shape);
            };
            let above = found.map_or(0, |found| found.header.sequence());
            let fields = self.vivified(local, now, above, expiry, read);
            self.store.start(&fresh);
            let replaced = found.map(|found| Replaced::by_another(found, now));
            match self.link(local, locked, replaced, fresh, &fields) {
                Ok(header) => answer_vivified(&header, read, index, replies),
                Err(unlinked) => {
                    *spare = Some(unlinked);
                    if self.make_room(local, now, place) {
                        return Step::Wants(shape);
                    }
                    local.counters.one(Count::OutOfMemory);
                    replies.done(index, Reply::OutOfMemory);
                }
            }
            Step::Done(())
        };
        if let Err(refusal) = self.with_memory(local, lookup, attempt) {
            replies.done(index, refusal);
        }
        if read.vivify.is_some() {
            self.help_growth();
        }
    }

    /// A hit under the lock: everything that the read decides and changes.
    fn read_hit(
        self: &Arc<Self>,
        locked: LockedBuckets<'_, D>,
        now: Time,
        mut found: Found,
        read: &Read,
        index: usize,
        replies: &mut dyn Replies<CuckooValue<D>>,
    ) {
        let mut item = self.item(found.address, &found.header, read.idle.then_some(now));
        if let Err(refusal) = permit_touch(read, &item) {
            locked.release_unmodified();
            return replies.done(index, refusal);
        }
        let change = match self.mark(found.address, &mut found.header, &mut item, now, read) {
            true => Change::Header,
            false => Change::None,
        };
        if read.bump {
            self.store.hit(found.address, &found.header);
        }
        if read.value && read.unless_cas != Some(item.cas) {
            let found = (found.address, &found.header, item);
            self.hand_out(locked, change, found, index, replies);
        } else {
            change.release(locked);
            replies.done(index, Reply::Found(item));
        }
    }

    /// Gives the key's item a new expiry and new flags. Refuses as a store does.
    pub(super) fn renew(
        &self,
        local: &mut Local,
        lookup: &Lookup<'_>,
        expiry: Expiry,
        flags: u32,
    ) -> Result<Item, Reply> {
        let renewed = self.rewrite(local, lookup, |header| {
            Ok(Rewrite {
                expiry,
                flags,
                ..Rewrite::of(header, b"", true, b"")
            })
        });
        self.help_growth();
        renewed
    }

    /// Gives the key's item a new expiry if it still has this cas. True if it did.
    pub(super) fn touch_if(
        &self,
        local: &Local,
        lookup: &Lookup<'_>,
        cas: u64,
        expiry: Expiry,
    ) -> bool {
        let locked = self.index.lock(&self.index.place(lookup.key.hash()));
        let same =
            |found: &Found| self.is_live(&found.header, lookup.now) && found.header.cas() == cas;
        let found = self.find_locked(local, &locked, &lookup.key);
        let Some(mut found) = found.filter(same) else {
            locked.release_unmodified();
            return false;
        };
        let touch = Read {
            touch: Some(expiry),
            ..Read::default()
        };
        let mut item = plain_item(&found.header);
        self.mark(
            found.address,
            &mut found.header,
            &mut item,
            lookup.now,
            &touch,
        );
        drop(locked);
        true
    }
}
