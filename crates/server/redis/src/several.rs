//! MSETNX and MSETEX: they store all their pairs, or none.

use std::collections::HashMap;

use nuthatch_commands::answers::resp::{STORE, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::{self, Kind};
use nuthatch_commands::work::Work;
use nuthatch_engine::{Condition, Expiry, Op, Removal, Reply, Store, StoreMode};
use nuthatch_resp::{Error, Lifetime, SetAll, StoreCondition};
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

use crate::busy;
use crate::spot::{ATTEMPTS, ask, count_refused, look_surely};

/// A key and its value.
type Pair<'a> = [&'a [u8]; 2];

/// True if all pairs were stored. If that depends on the keys that are there, the worker has the engine to itself from
/// the first look to the last store.
pub fn set(cx: &mut Context<'_, '_>, set: &SetAll<'_>) -> Result<bool, Error<'static>> {
    let words: Vec<&[u8]> = set.pairs.collect();
    let (pairs, _) = words.as_chunks::<2>();
    for [key, _] in pairs {
        cx.check_key(key)?;
    }
    // Each key is looked at and stored, all in one step.
    cx.work.add(Work::of_commands(2 * pairs.len()));
    let pairs = last_of_each(pairs);
    let _isolation = match set.when {
        StoreCondition::Absent | StoreCondition::Present => busy::isolate(cx)?,
        StoreCondition::Always | StoreCondition::Compared(_) => None,
    };
    if !may_store(cx, set.when, &pairs)? {
        count_all_refused(cx, &pairs);
        return Ok(false);
    }
    for (at, [key, value]) in pairs.iter().enumerate() {
        let stored = store(cx, set, key, value);
        if stored != Ok(true) {
            if set.when == StoreCondition::Absent {
                take_back(cx, &pairs[..at]);
            }
            count_all_refused(cx, &pairs[at + 1..]);
            return stored;
        }
    }
    Ok(true)
}

/// If a key is named twice, its last value counts. A request may have thousands of pairs, so a map finds duplicates,
/// without comparing each pair with each.
fn last_of_each<'a>(pairs: &[Pair<'a>]) -> Vec<Pair<'a>> {
    let last: HashMap<&[u8], usize> = (0..).zip(pairs).map(|(at, [key, _])| (*key, at)).collect();
    let pairs = (0..).zip(pairs).filter(|(at, [key, _])| last[key] == *at);
    pairs.map(|(_, pair)| *pair).collect()
}

fn may_store(
    cx: &mut Context<'_, '_>,
    when: StoreCondition<'_>,
    pairs: &[Pair<'_>],
) -> Result<bool, Error<'static>> {
    let is_to_be_there = match when {
        StoreCondition::Absent => false,
        StoreCondition::Present => true,
        // These commands compare no values.
        StoreCondition::Always | StoreCondition::Compared(_) => return Ok(true),
    };
    for [key, _] in pairs {
        if look_surely(cx, key)?.is_some() != is_to_be_there {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if it was stored: it is not where it must be new, and somebody else has stored one, who is not kept out (in an engine that
/// asks other servers).
fn store(
    cx: &mut Context<'_, '_>,
    set: &SetAll<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<bool, Error<'static>> {
    let mut store = Store::set(value);
    store.expiry = match (set.lifetime, set.when) {
        (Lifetime::Until(moment), _) => cx.expiry_at(moment),
        (Lifetime::Forever, _) | (Lifetime::Keep, StoreCondition::Absent) => Expiry::Never,
        (Lifetime::Keep, _) => return store_and_keep_lifetime(cx, key, value),
    };
    // No other condition: it was met, and a key that one of these stores has evicted is set all the same.
    if set.when == StoreCondition::Absent {
        store.mode = StoreMode::Add;
    }
    match ask(cx, key, Op::Store(store), STORE) {
        Reply::Stored(_) => Ok(true),
        reply if reply.is_failure() => Err(failure(&reply)),
        _ => Ok(false),
    }
}

fn store_and_keep_lifetime(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    value: &[u8],
) -> Result<bool, Error<'static>> {
    for _ in 0..ATTEMPTS {
        let mut store = Store::set(value);
        match look_surely(cx, key)? {
            Some(item) => {
                store.expiry = item.expiry;
                store.condition = Condition::Cas(item.cas);
            }
            None => store.mode = StoreMode::Add,
        }
        let kind = Kind::Change(counting::Change::Store);
        let reply = cx.named(Naming::As(Event::Set), |cx| {
            ask(cx, key, Op::Store(store), kind)
        });
        match reply {
            Reply::Stored(_) => return Ok(true),
            reply if reply.is_failure() => return Err(failure(&reply)),
            // Another client was faster.
            _ => {}
        }
    }
    Err(Error::BUSY)
}

/// Removes what was stored where none was, before the engine refused a pair.
fn take_back(cx: &mut Context<'_, '_>, stored: &[Pair<'_>]) {
    for [key, _] in stored {
        ask(cx, key, Op::Remove(Removal::default()), Kind::Nothing);
    }
}

fn count_all_refused(cx: &Context<'_, '_>, pairs: &[Pair<'_>]) {
    for [key, value] in pairs {
        count_refused(cx, key, value.len());
    }
}
