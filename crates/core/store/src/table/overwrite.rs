//! Overwriting: a value is written over the present one, if it takes the same room.
//!
//! In a log a replaced item is a gap until its page is cleaned. Most stores replace an item by one of its size: these
//! append nothing and leave no gap. The item stays in its page, and so in its queue.
//!
//! Readers without a lock read again, as while a [number](mod@super::delta) changes. A cleaning that has copied the
//! value by then sees another sequence under the lock, and copies again ([`Store::finish_move`]). A value that is being
//! read in place is not overwritten.
//!
//! [`Store::finish_move`]: crate::store::Store::finish_move

use nuthatch_base::sync::shim::{Ordering, fence};

use super::{COPY_LOCKED_MAX, LockedItem, Lookup, PerThread, Table};
use crate::count::Count;
use crate::item::{Header, Shape, plain_item};
use crate::memory::arena::WORD;
use crate::store::Placement;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::Store;
use nuthatch_engine::semantics::allows;

/// The longest value that is written under a lock: the bound of the wait of a displaced item's readers, too.
const OVERWRITE_MAX: usize = COPY_LOCKED_MAX / 2;

/// A store over the key's item. `None` if the value takes other memory; then nothing has changed.
#[inline]
pub(super) fn overwrite<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    store: &Store<'_>,
) -> Option<Reply> {
    match table.wants_replaced() {
        false => overwrite_and_notify(table, local, lookup, store, None),
        true => overwrite_notified(table, local, lookup, store),
    }
}

/// The same where a listener is to be told: a function of its own, so that the common case carries none of its state.
#[cold]
#[inline(never)]
fn overwrite_notified<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    store: &Store<'_>,
) -> Option<Reply> {
    // A value of the same room is longer by less than a word.
    let room = Vec::with_capacity(lookup.key.bytes().len() + store.value.len() + WORD);
    overwrite_and_notify(table, local, lookup, store, Some(room))
}

/// `room`: for a copy of the old value, if the listener is to be told of it; allocated before the lock is taken.
#[inline(always)]
fn overwrite_and_notify<T: Table>(
    table: &T,
    local: &mut T::Local,
    lookup: &Lookup<'_>,
    store: &Store<'_>,
    room: Option<Vec<u8>>,
) -> Option<Reply> {
    if !T::Placement::OVERWRITES || store.value.len() > OVERWRITE_MAX || !table.may_hold(lookup) {
        return None;
    }
    let items = table.store();
    let held = table.hold(local, lookup)?;
    let (old, address) = (*held.header(), held.address());
    let shape = Shape {
        value_len: store.value.len(),
        ..table.shape_of(&old)
    };
    let fits = !old.is_large()
        && items.is_same_room(shape.head_bytes(), table.shape_of(&old).head_bytes())
        && shape.total_bytes() <= table.item_size_max()
        && (shape.wide || !Shape::needs_wide(store.flags, store.new_cas));
    if !fits || items.is_pinned(address, &old) {
        held.release();
        return None;
    }
    let stale = match allows(store, Some(&old)) {
        Ok(stale) => stale,
        Err(refusal) => {
            held.release();
            return Some(refusal);
        }
    };
    table.timestamps().note_expiry(store.expiry);
    let fields = table.stored(local, lookup.now, store, Some(&old), stale);
    if table.is_made_of_flushed(store, &old) {
        // The path that finds the item dead answers the store.
        held.release();
        return None;
    }
    let replaced = room.and_then(|room| table.copy_replaced(lookup.now, &held, room));
    items.write_value(address, &shape, 0, store.value);
    T::Placement::note_overwritten(items, address);
    // Release fence: pairs with the Acquire fence in `copy_constant`. A thread that copies without the lock and has
    // read the new sequence copies no byte of the old value. It pairs with the one in `Pages::is_still`, too: a cleaning
    // that has read the new sequence judges the item by its present uses.
    fence(Ordering::Release);
    let header = Header::new(&shape, &fields);
    header.store(&items.arena, address);
    T::Placement::note_expiry(items, address, fields.expiry);
    drop(held);
    if let Some(replaced) = replaced {
        table.keep_removed(local, replaced);
    }
    local.counters().item_swapped(items, &old, &header);
    local.counters().one(Count::Stored);
    Some(Reply::Stored(plain_item(&header)))
}
