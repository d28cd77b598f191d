//! Reading: gets, and reads that look at more than the value or change the item (gat, touch, and the
//! meta commands').
//!
//! A value is copied under its bucket's lock, or, if it is large, pinned there.

use std::sync::Arc;

use nuthatch_sync::clock::Time;

use super::Chained;
use super::find::{Asked, Found};
use super::handle::{COPY_MAX, ChainedValue};
use super::index::Locked;
use super::local::Local;
use crate::item::{Fields, Header, plain_item};
use crate::reply::{Item, Replies, Reply};
use crate::request::{Expiry, Read};
use crate::semantics::wins;
use crate::slab::fresh::Fresh;

impl Chained {
    /// A plain get.
    #[inline]
    pub(super) fn get(
        self: &Arc<Self>,
        local: &Local,
        asked: &Asked<'_>,
        replies: &mut impl Replies<ChainedValue>,
    ) {
        let locked = self.index.lock(asked.key.hash());
        match self.find_live(local, &locked, asked) {
            Some(found) => {
                self.hit(found.chunk, &found.header);
                self.hand_out(locked, &found, found.item(), asked.index, replies);
            }
            None => {
                drop(locked);
                replies.done(asked.index, Reply::Miss);
            }
        }
    }

    /// Answers with the value of a locked item, and releases the lock.
    fn hand_out(
        self: &Arc<Self>,
        locked: Locked<'_>,
        found: &Found,
        item: Item,
        index: usize,
        replies: &mut impl Replies<ChainedValue>,
    ) {
        if item.value_len > COPY_MAX {
            self.store.pins.pin(found.chunk);
            drop(locked);
            let value = ChainedValue::new(Arc::clone(self), found.chunk, found.header);
            replies.large(index, &item, value);
        } else {
            let into = replies.begin(index, &item);
            let shape = self.shape_of(&found.header);
            self.store.read_value(found.chunk, &shape, 0, into);
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
        replies: &mut impl Replies<ChainedValue>,
    ) {
        let Asked { now, key, index } = *asked;
        let mut spare: Option<Fresh> = None;
        loop {
            let locked = self.index.lock(key.hash());
            let found = self.find(local, &locked, key);
            if let Some(found) = found.filter(|found| self.is_live(&found.header, now)) {
                self.read_hit(locked, now, &found, read, index, replies);
                break;
            }
            let Some(expiry) = read.vivify else {
                drop(locked);
                replies.done(index, Reply::Miss);
                break;
            };
            if let Some(fresh) = spare.take() {
                let item = self.vivify(local, now, locked, found, fresh, expiry, read);
                answer_vivified(item, read, index, replies);
                break;
            }
            drop(locked);
            match self.allocate(local, now, key, 0) {
                Ok(fresh) => spare = Some(fresh),
                Err(refusal) => {
                    replies.done(index, refusal);
                    break;
                }
            }
        }
        if let Some(unused) = spare {
            self.store.discard(unused);
        }
    }

    /// Takes an empty item in that its creator has won.
    #[expect(clippy::too_many_arguments, reason = "one call, from the loop above")]
    fn vivify(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_>,
        dead: Option<Found>,
        fresh: Fresh,
        expiry: Expiry,
        read: &Read,
    ) -> Item {
        self.lifetimes.note_expiry(expiry);
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: self.sequence_after(local, now, dead.as_ref()),
            cas: read.new_cas,
            stale: false,
            won: true,
        };
        self.store.recency.start(fresh.chunk);
        let header = self.link(local, now, locked, dead, fresh, &fields);
        Item {
            won: true,
            won_before: false,
            ..plain_item(&header)
        }
    }

    /// A hit: everything that the read decides and changes.
    fn read_hit(
        self: &Arc<Self>,
        locked: Locked<'_>,
        now: Time,
        found: &Found,
        read: &Read,
        index: usize,
        replies: &mut impl Replies<ChainedValue>,
    ) {
        let mut item = self.item(found.chunk, &found.header, now);
        let mut fields = found.header.fields();
        let won = wins(read, &item, now);
        if won {
            item.won = true;
            fields.won = true;
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            fields.expiry = expiry;
            self.lifetimes.note_expiry(expiry);
        }
        let mut found = *found;
        if won || read.touch.is_some() {
            found.header = Header::new(&self.shape_of(&found.header), &fields);
            found.header.store(&self.store.arena, found.chunk);
        }
        if read.bump {
            self.hit(found.chunk, &found.header);
        }
        if read.value && read.unless_cas != Some(item.cas) {
            self.hand_out(locked, &found, item, index, replies);
        } else {
            drop(locked);
            replies.done(index, Reply::Found(item));
        }
    }
}

fn answer_vivified(
    item: Item,
    read: &Read,
    index: usize,
    replies: &mut impl Replies<ChainedValue>,
) {
    if read.value {
        replies.begin(index, &item);
        replies.commit(index);
    } else {
        replies.done(index, Reply::Found(item));
    }
}
