//! The operations of the Engine seam, carried out by a partition's owner on behalf of whoever asks.
//!
//! Each is one call that begins and ends with the partition whole, so it is atomic for its key. The
//! element of a store is filled before the old one leaves the table. An element that has readers is
//! never changed where they look: whatever would change it makes another in its place.

use std::mem::MaybeUninit;

use nuthatch_sync::clock::Time;

use super::element::{Element, Fields, HEADER, mark};
use super::memory::Memory;
use super::space::lines_for;
use super::table::Partition;
use crate::number;
use crate::reply::{Item, Reply};
use crate::request::{Condition, Delta, Expiry, Key, Leave, Op, Read, Removal, Store, StoreMode};
use crate::semantics::{Concatenated, Rewrite, allows, apply, concatenated, left, permit, wins};

/// What an operation answers.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// A read that returns this element's value. It is not pinned: the owner copies it before anything
    /// else happens in the partition, or pins it.
    Value(Element, Item),
    /// Any other answer.
    Done(Reply),
}

impl Partition {
    /// Carries out one operation.
    #[inline]
    pub fn execute(&mut self, now: Time, key: &Key<'_>, op: &Op<'_>) -> Outcome {
        self.enter(now);
        match op {
            Op::Get => self.get(now, key),
            Op::Read(read) => self.read(now, key, read),
            Op::Store(store) => Outcome::Done(self.store(now, key, store)),
            Op::Remove(removal) => Outcome::Done(self.remove(now, key, removal)),
            Op::Delta(delta) => Outcome::Done(self.delta(now, key, delta)),
        }
    }

    /// A plain get.
    #[inline]
    fn get(&mut self, now: Time, key: &Key<'_>) -> Outcome {
        match self.find_live(now, key) {
            Some(element) => {
                let item = self.memory().item(element, now);
                self.hit(now, element);
                Outcome::Value(element, item)
            }
            None => Outcome::Done(Reply::Miss),
        }
    }

    /// A read with options.
    fn read(&mut self, now: Time, key: &Key<'_>, read: &Read) -> Outcome {
        let Some(element) = self.find_live(now, key) else {
            return match read.vivify {
                Some(expiry) => self.vivify(now, key, read, expiry),
                None => Outcome::Done(Reply::Miss),
            };
        };
        let mut item = self.memory().item(element, now);
        if wins(read, &item, now) {
            item.won = true;
            self.memory().set_marks(element, mark::WON, 0);
        }
        if let Some(expiry) = read.touch {
            item.expiry = expiry;
            self.memory().set_expiry(element, expiry);
            self.note_expiry(expiry);
        }
        if read.bump {
            self.hit(now, element);
        }
        if read.value && read.unless_cas != Some(item.cas) {
            Outcome::Value(element, item)
        } else {
            Outcome::Done(Reply::Found(item))
        }
    }

    /// An empty item that its creator has won.
    fn vivify(&mut self, now: Time, key: &Key<'_>, read: &Read, expiry: Expiry) -> Outcome {
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: 0,
            cas: read.new_cas,
            marks: mark::WON,
        };
        let made = self.make(now, key, &[b""]);
        match made.and_then(|element| self.put_in_place(now, element, fields)) {
            Ok((element, item)) => {
                let item = Item {
                    won: true,
                    won_before: false,
                    ..item
                };
                if read.value {
                    Outcome::Value(element, item)
                } else {
                    Outcome::Done(Reply::Found(item))
                }
            }
            Err(refusal) => Outcome::Done(refusal),
        }
    }

    /// A store of any mode.
    fn store(&mut self, now: Time, key: &Key<'_>, store: &Store<'_>) -> Reply {
        if HEADER + key.bytes().len() + store.value.len() > self.config.item_size_max {
            return Reply::TooLarge;
        }
        let reply = match store.mode {
            StoreMode::Append => self.concatenate(now, key, store, b"", store.value),
            StoreMode::Prepend => self.concatenate(now, key, store, store.value, b""),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => {
                let live = self.find_live(now, key);
                match self.fields_of_store(now, live, store) {
                    Ok(fields) => self.put_value(now, key, store.value, fields),
                    Err(refusal) => refusal,
                }
            }
        };
        self.count_stored(reply)
    }

    /// What a set, add or replace makes of the live element that is there, or why not.
    fn fields_of_store(
        &self,
        now: Time,
        live: Option<Element>,
        store: &Store<'_>,
    ) -> Result<Fields, Reply> {
        let old = live.map(|element| self.memory().item(element, now));
        let stale = allows(store, old.as_ref())?;
        let kept = old.filter(|_| stale);
        let won = kept.is_some_and(|old| old.won_before);
        let marks = if stale { mark::STALE } else { 0 } | if won { mark::WON } else { 0 };
        Ok(Fields {
            flags: store.flags,
            expiry: kept.map_or(store.expiry, |old| old.expiry),
            sequence: 0,
            cas: store.new_cas,
            marks,
        })
    }

    fn put_value(&mut self, now: Time, key: &Key<'_>, value: &[u8], fields: Fields) -> Reply {
        let made = self.make(now, key, &[value]);
        match made.and_then(|element| self.put_in_place(now, element, fields)) {
            Ok((_, item)) => Reply::Stored(item),
            Err(refusal) => refusal,
        }
    }

    fn count_stored(&mut self, reply: Reply) -> Reply {
        if let Reply::Stored(_) = reply {
            self.counts.stored += 1;
        }
        reply
    }

    /// An element with this key and the pieces of its value written; NOT READY.
    fn make(&mut self, now: Time, key: &Key<'_>, value: &[&[u8]]) -> Result<Element, Reply> {
        let value_len = value.iter().map(|piece| piece.len()).sum();
        let element = self.insert(now, key.hash(), key.bytes().len(), value_len)?;
        self.memory().write(element, 0, key.bytes());
        let mut offset = key.bytes().len();
        for piece in value {
            self.memory().write(element, offset, piece);
            offset += piece.len();
        }
        Ok(element)
    }

    /// Makes a filled element the one of its key, READY, in place of the one that is there, and drops the
    /// reference of whoever filled it. `fields.sequence` is set here.
    fn put_in_place(
        &mut self,
        now: Time,
        element: Element,
        mut fields: Fields,
    ) -> Result<(Element, Item), Reply> {
        if !self.make_bucket(now) {
            self.decref(element);
            return Err(Reply::OutOfMemory);
        }
        // Only now: making room may have thrown the old one out.
        let hash = self.memory().hash(element);
        let same = |memory: &Memory, other| memory.same_key(element, other);
        if let Some(old) = self.find_where(hash, same) {
            self.unlink(old);
        }
        fields.sequence = self.next_sequence();
        self.link(now, element, &fields);
        self.memory().drop_reader(element);
        Ok((element, self.memory().item(element, now)))
    }

    /// *Ready* of the paper: carries out the store of an element that [`Partition::insert`] gave and whose
    /// key and value are written; `store.value` is ignored. Takes the caller's reference in any
    /// case. The reply is that of the same store in one go.
    pub fn publish(&mut self, now: Time, element: Element, store: &Store<'_>) -> Reply {
        self.enter(now);
        if matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            // What is there must be copied in any case, so the bytes come out of their place once.
            let memory = self.memory();
            let (hash, key_len) = (memory.hash(element), memory.key_len(element));
            let data = memory.to_vec(element, 0, key_len + memory.value_len(element));
            self.decref(element);
            let (key, value) = data.split_at(key_len);
            return self.store(now, &Key::hashed(key, hash), &Store { value, ..*store });
        }
        let hash = self.memory().hash(element);
        let same = |memory: &Memory, other| memory.same_key(element, other);
        let old = self.find_asked(hash, same);
        let live = old.filter(|&old| self.is_live(old, now));
        let reply = match self.fields_of_store(now, live, store) {
            Ok(fields) => match self.put_in_place(now, element, fields) {
                Ok((_, item)) => Reply::Stored(item),
                Err(refusal) => refusal,
            },
            Err(refusal) => {
                self.decref(element);
                refusal
            }
        };
        self.count_stored(reply)
    }

    /// Append and prepend.
    fn concatenate(
        &mut self,
        now: Time,
        key: &Key<'_>,
        store: &Store<'_>,
        before: &[u8],
        after: &[u8],
    ) -> Reply {
        let reply = self.rewrite(now, key, |item| {
            permit(store.condition, item)?;
            Ok(Rewrite {
                new_cas: store.new_cas,
                ..Rewrite::of(item, before, true, after)
            })
        });
        match concatenated(reply, store) {
            Concatenated::Stored(item) => Reply::Stored(item),
            Concatenated::AddInstead(add) => {
                let fields = Fields {
                    flags: add.flags,
                    expiry: add.expiry,
                    sequence: 0,
                    cas: add.new_cas,
                    marks: 0,
                };
                self.put_value(now, key, add.value, fields)
            }
            Concatenated::Refused(refusal) => refusal,
        }
    }

    /// Replaces the key's element by one made from it. `plan` may refuse. Missing items are answered with
    /// [`Reply::NotFound`].
    fn rewrite<'v>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        plan: impl Fn(&Item) -> Result<Rewrite<'v>, Reply>,
    ) -> Result<Item, Reply> {
        let Some(old) = self.find_live(now, key) else {
            return Err(Reply::NotFound);
        };
        let item = self.memory().item(old, now);
        let rewrite = plan(&item)?;
        // Held, so that it is not thrown out to make room for what it becomes.
        if !self.pin(old) {
            return Err(Reply::OutOfMemory);
        }
        let (key_len, value_len) = (key.bytes().len(), rewrite.value_len(&item));
        let made = self.insert(now, key.hash(), key_len, value_len);
        let made = made.and_then(|element| {
            let memory = self.memory();
            let kept = if rewrite.keep { item.value_len } else { 0 };
            let start = key_len + rewrite.before.len();
            memory.write(element, 0, key.bytes());
            memory.write(element, key_len, rewrite.before);
            memory.copy((old, key_len), (element, start), kept);
            memory.write(element, start + kept, rewrite.after);
            let marks = memory.marks(old) & mark::FETCHED
                | if rewrite.stale { mark::STALE } else { 0 }
                | if rewrite.won { mark::WON } else { 0 };
            let fields = Fields {
                flags: rewrite.flags,
                expiry: rewrite.expiry,
                sequence: 0,
                cas: rewrite.new_cas,
                marks,
            };
            self.put_in_place(now, element, fields)
        });
        self.decref(old);
        made.map(|(_, item)| item)
    }

    /// A removal of any kind.
    fn remove(&mut self, now: Time, key: &Key<'_>, removal: &Removal) -> Reply {
        if removal.leave == Leave::Nothing {
            return self.delete(now, key, removal.condition);
        }
        match self.rewrite(now, key, |item| left(removal, item)) {
            Ok(_) => Reply::Removed,
            Err(refusal) => refusal,
        }
    }

    fn delete(&mut self, now: Time, key: &Key<'_>, condition: Condition) -> Reply {
        let Some(element) = self.find(key) else {
            return Reply::NotFound;
        };
        let live = self.is_live(element, now);
        if live && let Err(refusal) = permit(condition, &self.memory().item(element, now)) {
            return refusal;
        }
        // A dead item is taken out as well: its memory comes back at once.
        self.unlink(element);
        if live {
            Reply::Removed
        } else {
            Reply::NotFound
        }
    }

    /// incr and decr.
    fn delta(&mut self, now: Time, key: &Key<'_>, delta: &Delta) -> Reply {
        let mut digits = number::Digits::default();
        let Some(element) = self.find_live(now, key) else {
            let Some((initial, expiry)) = delta.vivify else {
                return Reply::NotFound;
            };
            let fields = Fields {
                flags: 0,
                expiry,
                sequence: 0,
                cas: delta.new_cas,
                marks: 0,
            };
            let reply = self.put_value(now, key, digits.write(initial), fields);
            return match self.count_stored(reply) {
                Reply::Stored(item) => Reply::Number(initial, item),
                refusal => refusal,
            };
        };
        let item = self.memory().item(element, now);
        if let Err(refusal) = permit(delta.condition, &item) {
            return refusal;
        }
        let Some(number) = self.number_in(element, &item) else {
            return Reply::NotNumeric;
        };
        let number = apply(number, delta);
        let digits = digits.write(number);
        if let Some(item) = self.write_number(now, element, &item, digits, delta) {
            return Reply::Number(number, item);
        }
        let rewritten = self.rewrite(now, key, |item| {
            Ok(Rewrite {
                expiry: delta.touch.unwrap_or(item.expiry),
                new_cas: delta.new_cas,
                stale: item.stale,
                won: item.won_before,
                ..Rewrite::of(item, digits, false, b"")
            })
        });
        match rewritten {
            Ok(item) => Reply::Number(number, item),
            Err(refusal) => refusal,
        }
    }

    /// Writes a number over the one that is there, if its digits take as many lines and nobody reads it.
    fn write_number(
        &mut self,
        now: Time,
        element: Element,
        item: &Item,
        digits: &[u8],
        delta: &Delta,
    ) -> Option<Item> {
        let memory = self.memory();
        let key_len = memory.key_len(element);
        let (before, after) = (key_len + item.value_len, key_len + digits.len());
        let fits = lines_for(before) == lines_for(after) && after <= self.space.room(element);
        if !fits || memory.readers(element) > 0 {
            return None;
        }
        let fields = Fields {
            flags: item.flags,
            expiry: delta.touch.unwrap_or(item.expiry),
            sequence: self.next_sequence(),
            cas: delta.new_cas,
            marks: self.memory().marks(element) & (mark::STALE | mark::WON | mark::FETCHED),
        };
        self.note_expiry(fields.expiry);
        let memory = self.memory();
        memory.write(element, key_len, digits);
        memory.set_fields(element, digits.len(), &fields);
        let item = memory.item(element, now);
        self.counts.item_bytes = self.counts.item_bytes + after as u64 - before as u64;
        self.hit(now, element);
        Some(item)
    }

    /// The number in an element.
    fn number_in(&self, element: Element, item: &Item) -> Option<u64> {
        let mut buffer = [MaybeUninit::new(0); number::DIGITS_MAX];
        let text = buffer.get_mut(..item.value_len)?;
        let memory = self.memory();
        memory.read(element, memory.key_len(element), text);
        // SAFETY: the buffer started initialised, and `read` only writes.
        number::parse(unsafe { text.assume_init_ref() })
    }
}
