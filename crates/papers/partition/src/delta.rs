//! incr and decr, as a partition's owner carries them out.

use std::mem::MaybeUninit;

use nuthatch_base::sync::clock::Time;

use super::element::{Element, Fields, mark};
use super::operate::Rewritten;
use super::space::lines_for;
use super::table::Partition;
use nuthatch_engine::number;
use nuthatch_engine::reply::{Item, Reply};
use nuthatch_engine::request::{Delta, Key};
use nuthatch_engine::semantics::{Rewrite, apply, permit};

/// The result of an addition to a number in place.
enum Added {
    /// The answer.
    Done(Reply),
    /// Nothing was changed: this number needs another element, because it takes more lines or a reader has the old one.
    Longer(u64),
}

impl Partition {
    /// incr and decr.
    pub(super) fn delta(&mut self, now: Time, key: &Key<'_>, delta: &Delta) -> Reply {
        let added = self.with_live(now, key, |partition, element| {
            partition.add_in_place(now, element, delta)
        });
        let number = match added {
            Some(Added::Done(reply)) => return reply,
            Some(Added::Longer(number)) => number,
            None => return self.vivify_number(now, key, delta),
        };
        let mut digits = number::Digits::default();
        let digits = digits.write(number);
        let rewritten = self.rewrite(now, key, None, |item| {
            Ok(Rewrite {
                expiry: delta.touch.unwrap_or(item.expiry),
                new_cas: delta.new_cas,
                stale: item.stale,
                won: item.won_before,
                ..Rewrite::of(item, digits, false, b"")
            })
        });
        match rewritten {
            Ok(Rewritten::Item(item)) => Reply::Number(number, item),
            Ok(Rewritten::Draft(_)) => unreachable!("nothing of the value is kept"),
            // A reader has ended the item's life meanwhile, by a touch.
            Err(Reply::NotFound) => self.vivify_number(now, key, delta),
            Err(refusal) => refusal,
        }
    }

    /// Stores the initial number for a key that has none.
    fn vivify_number(&mut self, now: Time, key: &Key<'_>, delta: &Delta) -> Reply {
        let Some((initial, expiry)) = delta.vivify else {
            return Reply::NotFound;
        };
        let mut digits = number::Digits::default();
        let fields = Fields {
            flags: 0,
            expiry,
            sequence: 0,
            cas: delta.new_cas,
            state_bits: 0,
        };
        let reply = self.put_value(now, key, digits.write(initial), |_, _| Ok(fields));
        match self.count_stored(reply) {
            Reply::Stored(item) => Reply::Created(initial, item),
            refusal => refusal,
        }
    }

    /// Adds to the number in a live element whose bucket is held: in place if possible.
    fn add_in_place(&mut self, now: Time, element: Element, delta: &Delta) -> Added {
        let item = self.memory().item(element, now);
        if let Err(refusal) = permit(delta.condition, &item) {
            return Added::Done(refusal);
        }
        let Some(number) = self.number_in(element, &item) else {
            return Added::Done(Reply::NotNumeric);
        };
        let number = apply(number, delta);
        let mut digits = number::Digits::default();
        let digits = digits.write(number);
        match self.write_number(now, element, &item, digits, delta) {
            Some(item) => Added::Done(Reply::Number(number, item)),
            None => Added::Longer(number),
        }
    }

    /// Writes a number over the present one, if its digits take as many lines and no reader has the element.
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
            state_bits: self.memory().state_bits(element)
                & (mark::STALE | mark::WON | mark::FETCHED),
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
        let memory = self.memory();
        let key_len = memory.key_len(element);
        let mut buffer = [MaybeUninit::new(0); number::DIGITS_MAX];
        let Some(text) = buffer.get_mut(..item.value_len) else {
            let is_short = item.value_len <= number::LEN_MAX;
            return is_short
                .then(|| number::parse(&memory.to_vec(element, key_len, item.value_len)))
                .flatten();
        };
        memory.read(element, key_len, text);
        // SAFETY: the buffer started initialised, and `read` only writes.
        number::parse(unsafe { text.assume_init_ref() })
    }
}
