//! Numbers: incr and decr.
//!
//! A number is written over the old one, under the lock, if its digits fit its memory; late readers read again.
//! Otherwise a new item takes the place of the old one.

use std::mem::MaybeUninit;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::shim::{Ordering, fence};

use super::{LockedItem, Lookup, PerThread, Step, Table};
use crate::item::fresh::Fresh;
use crate::item::{Fields, Header, Shape, plain_item};
use crate::memory::bytes;
use crate::store::Placement;
use nuthatch_engine::number;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Delta, Store, StoreMode};
use nuthatch_engine::semantics::{apply, permit};

/// incr and decr.
pub fn delta<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    delta: &Delta,
) -> Reply {
    // Another turn takes two changes by other threads to this very key, one in each of the two steps. It waits for no
    // thread.
    loop {
        let reply = delta_existing(table, local, lookup, delta);
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
        match table.put(local, lookup, &add) {
            Reply::Stored(item) => return Reply::Created(initial, item),
            // Another client was faster: count on from its number.
            Reply::NotStored => continue,
            refusal => return refusal,
        }
    }
}

/// Changes the number that is there, or refuses.
#[inline]
fn delta_existing<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    delta: &Delta,
) -> Reply {
    match table.wants_replaced() {
        false => change_and_notify(table, local, lookup, delta, None),
        true => change_notified(table, local, lookup, delta),
    }
}

/// The same where a listener is to be told: a function of its own, so that the common case carries none of its state.
#[cold]
#[inline(never)]
fn change_notified<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    delta: &Delta,
) -> Reply {
    let room = Vec::with_capacity(lookup.key.bytes().len() + number::DIGITS_MAX);
    change_and_notify(table, local, lookup, delta, Some(room))
}

/// `room`: for a copy of the old number, if the listener is to be told of it; allocated before the lock is taken.
#[inline(always)]
fn change_and_notify<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    delta: &Delta,
    mut room: Option<Vec<u8>>,
) -> Reply {
    let attempt = |local: &mut T::Local, spare: &mut Option<Fresh>| {
        let Some(held) = table.hold(local, lookup) else {
            return Step::Done(Reply::NotFound);
        };
        let old = *held.header();
        let number = permit(delta.condition, &old).and_then(|()| number_in(table, &held));
        let number = match number {
            Ok(number) => apply(number, delta),
            Err(refusal) => {
                held.release();
                return Step::Done(refusal);
            }
        };
        let mut digits = number::Digits::default();
        let digits = digits.write(number);
        let shape = table.shape_of(&old);
        let changed = shape_with(&shape, digits);
        let fits = table
            .store()
            .is_same_room(changed.head_bytes(), shape.head_bytes());
        let mut fresh = None;
        if !fits || (!shape.wide && delta.new_cas.is_some()) {
            let wide = Shape::needs_wide(old.flags(), delta.new_cas);
            let wanted = table.shape(shape.key_len, digits.len(), wide);
            fresh = spare.take_if(|fresh| fresh.shape == wanted);
            if fresh.is_none() {
                held.release();
                return Step::Wants(wanted);
            }
        }
        let Some(sequence) = table.sequence_from(local, lookup.now, &old) else {
            held.release();
            *spare = fresh;
            return Step::Again;
        };
        let fields = fields_after(table, &old, delta, sequence);
        let header = match fresh {
            None => overwrite(table, local, lookup.now, held, digits, &fields, room.take()),
            Some(fresh) => {
                table
                    .store()
                    .write_value(fresh.address, &fresh.shape, 0, digits);
                table.store().carry(held.address(), &old, &fresh);
                table.replace(local, lookup.now, held, fresh, &fields, false)
            }
        };
        Step::Done(Reply::Number(number, plain_item(&header)))
    };
    let (Ok(reply) | Err(reply)) = table.with_memory(local, lookup, attempt);
    reply
}

/// The shape of an item with another number.
fn shape_with(shape: &Shape, digits: &[u8]) -> Shape {
    Shape {
        value_len: digits.len(),
        ..*shape
    }
}

/// Writes a number over the one in a locked item, and unlocks it. `room`: for a copy of the old one.
#[inline(always)]
fn overwrite<T: Table>(
    table: &T,
    local: &mut T::Local,
    now: Time,
    held: T::LockedItem<'_>,
    digits: &[u8],
    fields: &Fields,
    room: Option<Vec<u8>>,
) -> Header {
    let (store, old) = (table.store(), *held.header());
    let shape = shape_with(&table.shape_of(&old), digits);
    let replaced = room.and_then(|room| table.copy_replaced(now, &held, room));
    store.write_value(held.address(), &shape, 0, digits);
    table.used(&held);
    // Release fence: pairs with the Acquire fence in `Pages::is_still`. A cleaning that has read the new sequence judges
    // the item by its present uses.
    fence(Ordering::Release);
    let header = Header::new(&shape, fields);
    header.store(&store.arena, held.address());
    if fields.expiry != old.expiry() {
        T::Placement::note_expiry(store, held.address(), fields.expiry);
    }
    drop(held);
    if let Some(replaced) = replaced {
        table.keep_removed(local, replaced);
    }
    local.counters().item_swapped(store, &old, &header);
    header
}

/// The fields of a changed number: flags and marks stay.
fn fields_after<T: Table>(table: &T, old: &Header, delta: &Delta, sequence: u64) -> Fields {
    let expiry = delta.touch.unwrap_or(old.expiry());
    table.timestamps().note_expiry(expiry);
    Fields {
        expiry,
        sequence,
        cas: delta.new_cas,
        ..old.fields()
    }
}

/// The number in an item, or why there is none.
fn number_in<T: Table>(table: &T, held: &T::LockedItem<'_>) -> Result<u64, Reply> {
    let shape = table.shape_of(held.header());
    let mut short = [MaybeUninit::new(0); number::DIGITS_MAX];
    let mut longer = Vec::new();
    let text = match short.get_mut(..shape.value_len) {
        Some(text) => text,
        None if shape.value_len > number::LEN_MAX => return Err(Reply::NotNumeric),
        None => {
            longer.resize(shape.value_len, MaybeUninit::new(0));
            &mut longer
        }
    };
    table.store().read_value(held.address(), &shape, 0, text);
    // SAFETY: both buffers started initialised, and `read_value` only writes.
    number::parse(unsafe { bytes::assume_init(text) }).ok_or(Reply::NotNumeric)
}
