//! Numbers: incr and decr.
//!
//! A number is written over the old one, under the lock, if its digits fit the chunk; late readers read
//! again. Otherwise the item is rewritten like any other.

use std::cell::Cell;
use std::mem::MaybeUninit;

use super::find::Asked;
use super::layout::Design;
use super::local::Local;
use super::{Cuckoo, Found, plain_item};
use crate::item::{Fields, Header, Shape};
use crate::number;
use crate::reply::Reply;
use crate::request::{Delta, Store, StoreMode};
use crate::semantics::{Rewrite, apply, permit};

impl<D: Design> Cuckoo<D> {
    /// incr and decr.
    pub(super) fn delta(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        loop {
            let reply = match self.delta_in_place(local, asked, delta) {
                Some(reply) => reply,
                None => self.delta_rewritten(local, asked, delta),
            };
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

    /// Writes the new number over the old one, under the lock. `None` if it must move: it does not
    /// fit, or the header must widen.
    fn delta_in_place(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Option<Reply> {
        let Asked { now, ref key, .. } = *asked;
        let place = &self.index.place(key.hash());
        let locked = self.index.lock(place);
        let found = self.find_locked(local, &locked, key);
        let found = match found.filter(|found| self.is_live(&found.header, now)) {
            Some(found) => found,
            None => {
                locked.release_unmodified();
                return Some(Reply::NotFound);
            }
        };
        let number = permit(delta.condition, &found.header)
            .and_then(|()| self.number_of(&found).map(|number| apply(number, delta)));
        let number = match number {
            Ok(number) => number,
            Err(refusal) => {
                locked.release_unmodified();
                return Some(refusal);
            }
        };
        let mut digits = number::Digits::default();
        let digits = digits.write(number);
        let old = found.header.shape(self.store.chunk_max());
        let shape = Shape {
            value_len: digits.len(),
            ..old
        };
        let same_class =
            self.store.class_of(shape.head_bytes()) == self.store.class_of(old.head_bytes());
        if !same_class || delta.new_cas.is_some() && !old.wide {
            locked.release_unmodified();
            return None;
        }
        let fields = Fields {
            expiry: delta.touch.unwrap_or(found.header.expiry()),
            sequence: self.lifetimes.next_sequence(
                &mut local.sequences,
                now,
                found.header.sequence(),
            ),
            cas: delta.new_cas,
            ..found.header.fields()
        };
        self.lifetimes.note_expiry(fields.expiry);
        self.store.write_value(found.chunk, &shape, 0, digits);
        let header = Header::new(&shape, &fields);
        header.store(&self.store.arena, found.chunk);
        self.store.recency.hit(found.chunk);
        drop(locked);
        local
            .counters
            .item_swapped(&self.store, &found.header, &header);
        Some(Reply::Number(number, plain_item(&header)))
    }

    fn delta_rewritten(&self, local: &mut Local, asked: &Asked<'_>, delta: &Delta) -> Reply {
        // The digits are made from the number seen here, without memory to write them to; if the item
        // has changed by the time there is, the number is made again.
        loop {
            let Some((seen, number)) = self.peek_number(local, asked) else {
                return Reply::NotFound;
            };
            let number = match number {
                Ok(number) => apply(number, delta),
                Err(refusal) => return refusal,
            };
            let mut digits = number::Digits::default();
            let digits = digits.write(number);
            let changed = Cell::new(false);
            let outcome = self.rewrite(local, asked, |header| {
                changed.set(header.sequence() != seen);
                if changed.get() {
                    return Err(Reply::Exists);
                }
                permit(delta.condition, header)?;
                Ok(Rewrite {
                    expiry: delta.touch.unwrap_or(header.expiry()),
                    new_cas: delta.new_cas,
                    stale: header.is_stale(),
                    won: header.is_won(),
                    ..Rewrite::of(header, digits, false, b"")
                })
            });
            match outcome {
                Ok(item) => return Reply::Number(number, item),
                Err(_) if changed.get() => continue,
                Err(refusal) => return refusal,
            }
        }
    }

    /// The sequence of the key's live item and the number in it, at one moment.
    fn peek_number(&self, local: &Local, asked: &Asked<'_>) -> Option<(u64, Result<u64, Reply>)> {
        let Asked { now, ref key, .. } = *asked;
        let place = &self.index.place(key.hash());
        let locked = self.index.lock(place);
        let found = self.find_locked(local, &locked, key);
        let found = found.filter(|found| self.is_live(&found.header, now));
        let seen = found.map(|found| (found.header.sequence(), self.number_of(&found)));
        locked.release_unmodified();
        seen
    }

    /// The number in an item, or why there is none.
    fn number_of(&self, found: &Found) -> Result<u64, Reply> {
        let shape = found.header.shape(self.store.chunk_max());
        let mut buffer = [MaybeUninit::new(0); number::DIGITS_MAX];
        let Some(text) = buffer.get_mut(..shape.value_len) else {
            return Err(Reply::NotNumeric);
        };
        self.store.read_value(found.chunk, &shape, 0, text);
        // SAFETY: the buffer started initialised, and `read_value` only writes.
        number::parse(unsafe { text.assume_init_ref() }).ok_or(Reply::NotNumeric)
    }
}
