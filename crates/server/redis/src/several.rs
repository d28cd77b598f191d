//! MSETNX and MSETEX: they store all their pairs, or none.

use std::borrow::Cow;
use std::collections::HashMap;

use nuthatch_commands::answers::resp::{STORE, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::Kind;
use nuthatch_commands::work::Work;
use nuthatch_engine::{Expiry, Op, Removal, Reply, Store};
use nuthatch_resp::{Error, Lifetime, SetAll, StoreCondition};
use nuthatch_state::changes::Naming;
use nuthatch_state::isolation::Isolation;
use nuthatch_state::key_events::Event;

use crate::spot::{Change, CountAs, Decision, Found, ask, change, count_refused, look};

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
        StoreCondition::Absent | StoreCondition::Present => {
            Isolation::wait_if_shared(&cx.shared.workers, &cx.worker.lock)
        }
        StoreCondition::Always | StoreCondition::Compared(_) => None,
    };
    if !may_store(cx, set.when, &pairs) {
        count_all_refused(cx, &pairs);
        return Ok(false);
    }
    for (at, [key, value]) in pairs.iter().enumerate() {
        if let Err(error) = store(cx, set, key, value) {
            if set.when == StoreCondition::Absent {
                take_back(cx, &pairs[..at]);
            }
            count_all_refused(cx, &pairs[at + 1..]);
            return Err(error);
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

fn store(
    cx: &mut Context<'_, '_>,
    set: &SetAll<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<(), Error<'static>> {
    // Whatever the condition: it was met, and a key that one of these stores has evicted is set all the same.
    let mut store = Store::set(value);
    store.expiry = match set.lifetime {
        Lifetime::Forever => Expiry::Never,
        Lifetime::Until(moment) => cx.expiry_at(moment),
        Lifetime::Keep => return store_and_keep_lifetime(cx, key, value),
    };
    match ask(cx, key, Op::Store(store), STORE) {
        Reply::Stored(_) => Ok(()),
        reply => Err(failure(&reply)),
    }
}

fn store_and_keep_lifetime(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    value: &[u8],
) -> Result<(), Error<'static>> {
    let decide = |found: Option<Found>| {
        Ok(Decision::Become(Change {
            value: Cow::Borrowed(value),
            expiry: found.map_or(Expiry::Never, |found| found.item.expiry),
            flags: 0,
            delta: None,
            answer: (),
        }))
    };
    // A lifetime that is kept is not told.
    cx.named(Naming::As(Event::Set), |cx| {
        change(cx, key, CountAs::Store, decide)
    })
}

/// Removes what was stored where none was, before the engine refused a pair.
fn take_back(cx: &mut Context<'_, '_>, stored: &[Pair<'_>]) {
    for [key, _] in stored {
        ask(cx, key, Op::Remove(Removal::default()), Kind::Nothing);
    }
}

fn count_all_refused(cx: &Context<'_, '_>, pairs: &[Pair<'_>]) {
    for [key, value] in pairs {
        count_refused(cx, key, value);
    }
}
