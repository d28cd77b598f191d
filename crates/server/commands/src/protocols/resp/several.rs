//! MSETNX and MSETEX: they store all their pairs, or none.

use std::collections::HashMap;

use nuthatch_engine::{Condition, Expiry, Op, Removal, Reply, Store, StoreMode};
use nuthatch_protocol::resp::{Error, Lifetime, SetAll, StoreCondition};

use super::spot::{ask, count_refused, look};
use crate::answers::resp::{STORE, failure};
use crate::context::Context;
use crate::counting::Kind;
use crate::work::Work;

/// A key and its value.
type Pair<'a> = [&'a [u8]; 2];

/// True if all pairs were stored. If another client sets a key meanwhile that must not be there, the store of that key
/// fails, and the keys that were set before it are removed again.
pub fn set(cx: &mut Context<'_, '_>, set: &SetAll<'_>) -> Result<bool, Error<'static>> {
    let words: Vec<&[u8]> = set.pairs.collect();
    let (pairs, _) = words.as_chunks::<2>();
    for [key, _] in pairs {
        cx.check_key(key)?;
    }
    // Each key is looked at and stored, all in one step.
    cx.work.add(Work::of_commands(2 * pairs.len()));
    let pairs = last_of_each(pairs);
    if !may_store(cx, set.when, &pairs) {
        count_all_refused(cx, &pairs);
        return Ok(false);
    }
    let mut stored: Vec<(&[u8], u64)> = Vec::new();
    for (at, [key, value]) in pairs.iter().enumerate() {
        let reply = store(cx, set, key, value);
        match reply {
            Reply::Stored(item) => stored.push((key, item.cas)),
            reply => {
                if set.when == StoreCondition::Absent {
                    take_back(cx, &stored);
                }
                count_all_refused(cx, &pairs[at + 1..]);
                return match reply {
                    Reply::NotStored => Ok(false),
                    reply => Err(failure(&reply)),
                };
            }
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

fn may_store(cx: &mut Context<'_, '_>, when: StoreCondition<'_>, pairs: &[Pair<'_>]) -> bool {
    let is_there = |[key, _]: &Pair<'_>| look(cx, key).is_some();
    match when {
        StoreCondition::Absent => !pairs.iter().any(is_there),
        StoreCondition::Present => pairs.iter().all(is_there),
        // These commands compare no values.
        StoreCondition::Always | StoreCondition::Compared(_) => true,
    }
}

fn store(cx: &mut Context<'_, '_>, set: &SetAll<'_>, key: &[u8], value: &[u8]) -> Reply {
    let mut store = Store::set(value);
    store.mode = match set.when {
        StoreCondition::Absent => StoreMode::Add,
        StoreCondition::Present => StoreMode::Replace,
        StoreCondition::Always | StoreCondition::Compared(_) => StoreMode::Set,
    };
    store.expiry = match set.lifetime {
        Lifetime::Forever => Expiry::Never,
        Lifetime::Until(moment) => cx.expiry_at(moment),
        Lifetime::Keep => look(cx, key).map_or(Expiry::Never, |item| item.expiry),
    };
    ask(cx, key, Op::Store(store), STORE)
}

/// Removes what was stored, unless another client has changed it.
fn take_back(cx: &mut Context<'_, '_>, stored: &[(&[u8], u64)]) {
    for (key, cas) in stored {
        let removal = Removal {
            condition: Condition::Cas(*cas),
            ..Removal::default()
        };
        ask(cx, key, Op::Remove(removal), Kind::Nothing);
    }
}

fn count_all_refused(cx: &Context<'_, '_>, pairs: &[Pair<'_>]) {
    for [key, value] in pairs {
        count_refused(cx, key, value);
    }
}
