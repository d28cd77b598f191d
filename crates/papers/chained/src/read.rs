//! Reading: gets, and reads that return more than the value or change the item (gat, touch, and those of the meta
//! commands).
//!
//! A value is copied under its bucket's lock, or, if it is large, pinned there.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::Chained;
use super::find::Found;
use super::handle::{COPY_MAX, ChainedValue};
use super::index::LockedBucket;
use super::local::Local;
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::Read;
use nuthatch_engine::semantics::permit_touch;
use nuthatch_store::item::fresh::Fresh;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::table::{Lookup, Step, Table, answer_vivified};

impl Chained {
    /// A plain get.
    #[inline]
    pub(super) fn get(
        self: &Arc<Self>,
        local: &Local,
        lookup: &Lookup<'_>,
        replies: &mut (impl Replies<ChainedValue> + ?Sized),
    ) {
        let locked = self.index.lock(lookup.key.hash());
        match self.find_live(local, &locked, lookup) {
            Some(found) => {
                self.hit(found.address, &found.header);
                self.hand_out(locked, &found, found.item(), lookup.index, replies);
            }
            None => {
                drop(locked);
                replies.done(lookup.index, Reply::Miss);
            }
        }
    }

    /// Answers with the value of a locked item, and releases the lock.
    fn hand_out(
        self: &Arc<Self>,
        locked: LockedBucket<'_>,
        found: &Found,
        item: Item,
        index: usize,
        replies: &mut (impl Replies<ChainedValue> + ?Sized),
    ) {
        if item.value_len > COPY_MAX {
            // SAFETY: the item is locked. Only numbers are changed in place, and they are far shorter.
            let value =
                unsafe { ChainedValue::new(Arc::clone(self), found.address, &found.header) };
            drop(locked);
            replies.large(index, &item, value);
        } else {
            let into = replies.begin(index, &item);
            let shape = self.shape_of(&found.header);
            self.store.read_value(found.address, &shape, 0, into);
            drop(locked);
            replies.commit(index);
        }
    }

    /// A read with options.
    pub(super) fn read(
        self: &Arc<Self>,
        local: &mut Local,
        lookup: &Lookup<'_>,
        read: &Read,
        replies: &mut dyn Replies<ChainedValue>,
    ) {
        let Lookup {
            now,
            ref key,
            index,
        } = *lookup;
        let attempt = |local: &mut Local, spare: &mut Option<Fresh>| {
            let locked = self.index.lock(key.hash());
            let found = self.find(local, &locked, key);
            if let Some(found) = found.filter(|found| self.is_live(&found.header, now)) {
                self.read_hit(locked, now, found, read, index, replies);
                return Step::Done(());
            }
            if let Some(dead) = &found {
                local.counters.read_dead(&dead.header, now);
            }
            let Some(expiry) = read.vivify else {
                drop(locked);
                replies.done(index, Reply::Miss);
                return Step::Done(());
            };
            let Some(fresh) = spare.take() else {
                return Step::Wants(self.shape(key.bytes().len(), 0, true));
            };
            let above = found.map_or(0, |found| found.header.sequence());
            let fields = self.vivified(local, now, above, expiry, read);
            self.store.start(&fresh);
            let header = self.link(local, now, locked, found, fresh, &fields);
            answer_vivified(&header, read, index, replies);
            Step::Done(())
        };
        if let Err(refusal) = self.with_memory(local, lookup, attempt) {
            replies.done(index, refusal);
        }
    }

    /// A hit: everything that the read decides and changes.
    fn read_hit(
        self: &Arc<Self>,
        locked: LockedBucket<'_>,
        now: Time,
        mut found: Found,
        read: &Read,
        index: usize,
        replies: &mut dyn Replies<ChainedValue>,
    ) {
        let mut item = self.item(found.address, &found.header, read.idle.then_some(now));
        if let Err(refusal) = permit_touch(read, &item) {
            drop(locked);
            return replies.done(index, refusal);
        }
        self.mark(found.address, &mut found.header, &mut item, now, read);
        if read.bump {
            self.hit(found.address, &found.header);
        }
        if read.value && read.unless_cas != Some(item.cas) {
            self.hand_out(locked, &found, item, index, replies);
        } else {
            drop(locked);
            replies.done(index, Reply::Found(item));
        }
    }
}
