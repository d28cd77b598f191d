//! Numbers: incr and decr.
//!
//! A number is written over the old one, under the lock, if its digits fit the chunk. Otherwise its
//! item takes the place of the old one.

use std::mem::MaybeUninit;

use nuthatch_sync::clock::Time;

use super::Chained;
use super::find::{Asked, Found};
use super::index::Locked;
use super::local::Local;
use crate::item::{Fields, Header, Shape, plain_item};
use crate::number;
use crate::reply::Reply;
use crate::request::{Delta, Store, StoreMode};
use crate::semantics::{apply, permit};
use crate::slab::fresh::Fresh;

impl Chained {
    /// incr and decr.
    pub(super) fn delta(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        loop {
            let reply = self.delta_existing(local, asked, delta);
            let (Reply::NotFound, Some((initial, expiry))) = (reply, delta.vivify) else {
                return reply;
            };
            let mut digits = number::Digits::default();
            let add = Store {
                mode: StoreMode::Add,
                expiry,
                new_cas: delta.new_cas,
                ..Store::set(digits.write(initial))
            };
            match self.put(local, asked, &add) {
                Reply::Stored(item) => return Reply::Number(initial, item),
                // Another client was faster: count on from its number.
                Reply::NotStored => continue,
                refusal => return refusal,
            }
        }
    }

    /// Changes the number that is there, or refuses.
    fn delta_existing(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        let mut spare: Option<Fresh> = None;
        let reply = loop {
            let locked = self.index.lock(asked.key.hash());
            let Some(found) = self.find_live(local, &locked, asked) else {
                break Reply::NotFound;
            };
            let old = permit(delta.condition, &found.header).and_then(|()| self.number_of(&found));
            let number = match old {
                Ok(old) => apply(old, delta),
                Err(refusal) => break refusal,
            };
            let mut digits = number::Digits::default();
            let digits = digits.write(number);
            let shape = self.shape(asked.key.bytes().len(), digits.len());
            let class = |shape: &Shape| self.store.class_of(shape.head_bytes());
            let header = if class(&shape) == class(&self.shape_of(&found.header)) {
                self.overwrite(local, asked.now, locked, &found, &shape, digits, delta)
            } else if let Some(fresh) = spare.take_if(|fresh| fresh.shape == shape) {
                self.store.write_value(fresh.chunk, &shape, 0, digits);
                self.store.recency.carry(found.chunk, fresh.chunk);
                let fields = self.fields_after(local, asked.now, &found, delta);
                self.link(local, asked.now, locked, Some(found), fresh, &fields)
            } else {
                drop(locked);
                if let Some(unfit) = spare.take() {
                    self.store.discard(unfit);
                }
                match self.allocate(local, asked.now, asked.key, digits.len()) {
                    Ok(fresh) => spare = Some(fresh),
                    Err(refusal) => break refusal,
                }
                continue;
            };
            break Reply::Number(number, plain_item(&header));
        };
        if let Some(unused) = spare {
            self.store.discard(unused);
        }
        reply
    }

    /// Writes a number over the one in a locked item.
    #[expect(clippy::too_many_arguments, reason = "one call, from the loop above")]
    fn overwrite(
        &self,
        local: &mut Local,
        now: Time,
        locked: Locked<'_>,
        found: &Found,
        shape: &Shape,
        digits: &[u8],
        delta: &Delta,
    ) -> Header {
        let fields = self.fields_after(local, now, found, delta);
        self.store.write_value(found.chunk, shape, 0, digits);
        let header = Header::new(shape, &fields);
        header.store(&self.store.arena, found.chunk);
        self.hit(found.chunk, &header);
        drop(locked);
        local
            .counters
            .item_swapped(&self.store, &found.header, &header);
        header
    }

    /// The fields of a changed number: flags and marks stay.
    fn fields_after(&self, local: &mut Local, now: Time, found: &Found, delta: &Delta) -> Fields {
        let expiry = delta.touch.unwrap_or(found.header.expiry());
        self.lifetimes.note_expiry(expiry);
        Fields {
            expiry,
            sequence: self.sequence_after(local, now, Some(found)),
            cas: delta.new_cas,
            ..found.header.fields()
        }
    }

    /// The number in an item, or why there is none.
    fn number_of(&self, found: &Found) -> Result<u64, Reply> {
        let shape = self.shape_of(&found.header);
        let mut buffer = [MaybeUninit::new(0); number::DIGITS_MAX];
        let Some(text) = buffer.get_mut(..shape.value_len) else {
            return Err(Reply::NotNumeric);
        };
        self.store.read_value(found.chunk, &shape, 0, text);
        // SAFETY: the buffer started initialised, and `read_value` only writes.
        number::parse(unsafe { text.assume_init_ref() }).ok_or(Reply::NotNumeric)
    }
}
