//! Commands that take an item from one key to another, in the same database or in another one: RENAME, RENAMENX, COPY,
//! MOVE. The worker has the engine to itself while it looks at both keys and changes them.

use nuthatch_engine::namespace::{DATABASES, Namespace};
use nuthatch_engine::{Condition, Item, Op, Removal, Reply, Store, StoreMode};
use nuthatch_resp::{Copying, Error};
use nuthatch_state::isolation::Isolation;

use super::phase::Phase;
use super::spot::{ATTEMPTS, Content, Found, ask, find, look};
use crate::answers::resp::failure;
use crate::context::Context;
use crate::counting::Kind;
use crate::partial::PartialValue;
use crate::work::Work;

/// The database with this number.
pub fn numbered(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|&it| it < DATABASES)
}

/// Where an item goes.
struct Aim<'k> {
    key: &'k [u8],
    database: usize,
    /// An item that is there is replaced.
    replace: bool,
    /// The item stays where it was, too.
    copy: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Done,
    /// There is no item.
    Missing,
    /// There is one already where it should go.
    Taken,
}

/// RENAME, RENAMENX: true if the key has its new name.
pub fn rename(
    cx: &mut Context<'_, '_>,
    phase: &Phase,
    key: &[u8],
    to: &[u8],
    only_absent: bool,
) -> Result<bool, Error<'static>> {
    if key == to {
        let is_there = look(cx, key).is_some();
        return is_there.then_some(!only_absent).ok_or(Error::NO_KEY);
    }
    let aim = Aim {
        key: to,
        database: phase.database.into(),
        replace: !only_absent,
        copy: false,
    };
    match carry(cx, phase, key, &aim)? {
        Carried::Done => Ok(true),
        Carried::Taken => Ok(false),
        Carried::Missing => Err(Error::NO_KEY),
    }
}

/// COPY: true if there is a copy now.
pub fn copy(
    cx: &mut Context<'_, '_>,
    phase: &Phase,
    copying: &Copying<'_>,
) -> Result<bool, Error<'static>> {
    let own = usize::from(phase.database);
    let database = match copying.database {
        Some(number) => numbered(number).ok_or(Error::DATABASE)?,
        None => own,
    };
    if database == own && copying.key == copying.to {
        return Err(Error::SAME_OBJECT);
    }
    let aim = Aim {
        key: copying.to,
        database,
        replace: copying.replace,
        copy: true,
    };
    Ok(carry(cx, phase, copying.key, &aim)? == Carried::Done)
}

/// MOVE: true if the key has gone to the other database, where there was none.
pub fn move_key(
    cx: &mut Context<'_, '_>,
    phase: &Phase,
    key: &[u8],
    number: i64,
) -> Result<bool, Error<'static>> {
    let database = numbered(number).ok_or(Error::DATABASE)?;
    if database == usize::from(phase.database) {
        return Err(Error::SAME_OBJECT);
    }
    let aim = Aim {
        key,
        database,
        replace: false,
        copy: false,
    };
    Ok(carry(cx, phase, key, &aim)? == Carried::Done)
}

/// Takes an item of the connection's database where it should go.
fn carry(
    cx: &mut Context<'_, '_>,
    phase: &Phase,
    key: &[u8],
    aim: &Aim<'_>,
) -> Result<Carried, Error<'static>> {
    let databases = &cx.shared.databases;
    // A SWAPDB between the two looks is found under the isolation.
    let namespaces = || [phase.database.into(), aim.database].map(|it| databases.namespace(it));
    for _ in 0..ATTEMPTS {
        let [here, there] = namespaces();
        cx.namespace = here;
        let Some(found) = find(cx, key) else {
            return Ok(Carried::Missing);
        };
        cx.work.add(Work::of_bytes(found.item.value_len));
        // A long value is copied before other workers have to wait.
        let long = match &found.value {
            Content::Copied(_) => None,
            Content::Pinned(_) => Some(within(cx, there, |cx| reserved(cx, aim.key, &found))?),
        };
        let _isolation = Isolation::wait_if_shared(&cx.shared.workers, &cx.worker.lock);
        let is_still = |item: &Item| (item.cas, item.expiry) == (found.item.cas, found.item.expiry);
        if namespaces() != [here, there] || !look(cx, key).as_ref().is_some_and(is_still) {
            continue;
        }
        if !within(cx, there, |cx| put(cx, aim, &found, long))? {
            return Ok(Carried::Taken);
        }
        if !aim.copy {
            let removal = Removal {
                condition: Condition::Cas(found.item.cas),
                ..Removal::default()
            };
            ask(cx, key, Op::Remove(removal), Kind::Nothing);
        }
        return Ok(Carried::Done);
    }
    Err(Error::BUSY)
}

/// Does something in another namespace than the connection's.
fn within<'a, T>(
    cx: &mut Context<'_, 'a>,
    namespace: Namespace,
    body: impl FnOnce(&mut Context<'_, 'a>) -> T,
) -> T {
    let own = std::mem::replace(&mut cx.namespace, namespace);
    let result = body(cx);
    cx.namespace = own;
    result
}

/// A copy of a long value, in an item that is not stored yet.
fn reserved(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    found: &Found,
) -> Result<PartialValue, Error<'static>> {
    let len = found.value.len();
    let new = cx.reserve_beside(key, len, len);
    let mut new = new.map_err(|reply| failure(&reply))?;
    while new.missing() > 0 {
        let at = len - new.missing();
        new.write(found.value.chunk(at..len));
    }
    Ok(new)
}

/// Stores an item with the value, the expiry and the flags of another. False if there is one that must stay.
fn put(
    cx: &mut Context<'_, '_>,
    aim: &Aim<'_>,
    found: &Found,
    long: Option<PartialValue>,
) -> Result<bool, Error<'static>> {
    let value = match (&found.value, &long) {
        (Content::Copied(value), None) => value,
        _ => &[][..],
    };
    let store = Store {
        mode: match aim.replace {
            true => StoreMode::Set,
            false => StoreMode::Add,
        },
        flags: found.item.flags,
        expiry: found.item.expiry,
        ..Store::set(value)
    };
    let reply = match long {
        Some(long) => cx.commit(aim.key, long, &store, Kind::Nothing),
        None => ask(cx, aim.key, Op::Store(store), Kind::Nothing),
    };
    match reply {
        Reply::Stored(_) => Ok(true),
        Reply::TooLarge | Reply::OutOfMemory => Err(failure(&reply)),
        _ => Ok(false),
    }
}
