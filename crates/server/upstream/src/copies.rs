//! Copies of servers' items, in the near cache.

use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{
    Condition, Expiry, Handle, Item, Key, Op, Removal, Reply, Request, Store, StoreMode, Time,
};

/// Removes a key's copy.
pub fn remove(near: &mut impl Handle, now: Time, key: Key<'_>) {
    let op = Op::Remove(Removal::default());
    near.execute(now, &[Request { key, op }], &mut LastReply(Reply::Miss));
}

/// Stores a copy of an item, to be used until `end` at most. What others are to renew, and what has ended, has no copy. Nor
/// has an item without a number: a reader could not change it under a condition.
///
/// Returns whether it was stored.
pub fn store(
    near: &mut impl Handle,
    now: Time,
    key: Key<'_>,
    item: &Item,
    value: &[u8],
    end: Time,
) -> bool {
    let end = match item.expiry {
        Expiry::Never => end,
        Expiry::At(own) => own.min(end),
    };
    if item.stale || item.won || item.won_before || item.cas == 0 || end <= now {
        return false;
    }
    let op = Op::Store(Store {
        mode: StoreMode::Set,
        value,
        flags: item.flags,
        expiry: Expiry::At(end),
        condition: Condition::None,
        new_cas: Some(item.cas),
        vivify: None,
    });
    let mut last = LastReply(Reply::Miss);
    near.execute(now, &[Request { key, op }], &mut last);
    matches!(last.0, Reply::Stored(_))
}
