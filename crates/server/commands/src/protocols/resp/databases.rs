//! Commands about databases: SELECT, SWAPDB, MOVE, FLUSHDB, FLUSHALL. A change of what a database is happens while the
//! worker has the engine to itself.

use nuthatch_engine::namespace::{DATABASES, Namespace};
use nuthatch_engine::{Condition, Item, Op, Removal, Reply, Store, StoreMode};
use nuthatch_protocol::resp::{DatabaseCommand, Error};
use nuthatch_settings::administration::Action;
use nuthatch_state::databases::Emptied;
use nuthatch_state::isolation::Isolation;

use super::phase::Phase;
use super::spot::{ATTEMPTS, Content, Found, ask, find, look};
use crate::answers::resp::failure;
use crate::context::Context;
use crate::counting::Kind;
use crate::partial::PartialValue;
use crate::work::Work;

/// The database with this number.
fn numbered(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|&it| it < DATABASES)
}

/// A command that is answered with OK.
pub fn command(
    cx: &mut Context<'_, '_>,
    phase: &mut Phase,
    command: DatabaseCommand,
) -> Result<(), Error<'static>> {
    match command {
        DatabaseCommand::Select(number) => select(cx, phase, number),
        DatabaseCommand::Swap(one, other) => swap(cx, one, other),
        DatabaseCommand::Flush => flush(cx, phase.database),
        DatabaseCommand::FlushAll => flush_all(cx),
    }
}

/// SELECT.
fn select(cx: &mut Context<'_, '_>, phase: &mut Phase, number: i64) -> Result<(), Error<'static>> {
    let database = numbered(number).ok_or(Error::DATABASE)?;
    phase.database = database as u8;
    cx.info.set_database(phase.database);
    Ok(())
}

/// SWAPDB.
fn swap(cx: &Context<'_, '_>, one: i64, other: i64) -> Result<(), Error<'static>> {
    let (Some(one), Some(other)) = (numbered(one), numbered(other)) else {
        return Err(Error::DATABASE);
    };
    let _isolation = Isolation::wait_if_shared(&cx.shared.workers, &cx.worker.lock);
    cx.shared.databases.swap(one, other);
    Ok(())
}

/// FLUSHALL.
fn flush_all(cx: &Context<'_, '_>) -> Result<(), Error<'static>> {
    cx.counters.cmd_flush.bump();
    if !cx.may(Action::Flush) {
        return Err(Error::FLUSH_FORBIDDEN);
    }
    cx.flush(cx.now);
    Ok(())
}

/// FLUSHDB.
fn flush(cx: &Context<'_, '_>, database: u8) -> Result<(), Error<'static>> {
    cx.counters.cmd_flush.bump();
    if !cx.may(Action::Flush) {
        return Err(Error::FLUSH_FORBIDDEN);
    }
    let _isolation = Isolation::wait_if_shared(&cx.shared.workers, &cx.worker.lock);
    match cx.shared.databases.empty(database.into()) {
        Emptied::Done => {}
        Emptied::ByFlush => cx.flush(cx.now),
        Emptied::NoGeneration => return Err(Error::NO_GENERATION),
    }
    Ok(())
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
    for _ in 0..ATTEMPTS {
        let Some(found) = find(cx, key) else {
            return Ok(false);
        };
        cx.work.add(Work::of_bytes(found.item.value_len));
        let there = cx.shared.databases.namespace(database);
        // A long value is copied before other workers have to wait.
        let long = match &found.value {
            Content::Copied(_) => None,
            Content::Pinned(_) => Some(within(cx, there, |cx| copy(cx, key, &found))?),
        };
        let _isolation = Isolation::wait_if_shared(&cx.shared.workers, &cx.worker.lock);
        let is_still = |item: &Item| (item.cas, item.expiry) == (found.item.cas, found.item.expiry);
        if there != cx.shared.databases.namespace(database)
            || !look(cx, key).as_ref().is_some_and(is_still)
        {
            continue;
        }
        if !within(cx, there, |cx| add(cx, key, &found, long))? {
            return Ok(false);
        }
        let removal = Removal {
            condition: Condition::Cas(found.item.cas),
            ..Removal::default()
        };
        ask(cx, key, Op::Remove(removal), Kind::Nothing);
        return Ok(true);
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
fn copy(
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

/// Stores an item with the value, the expiry and the flags of another, unless the key has one.
fn add(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    found: &Found,
    long: Option<PartialValue>,
) -> Result<bool, Error<'static>> {
    let value = match (&found.value, &long) {
        (Content::Copied(value), None) => value,
        _ => &[][..],
    };
    let store = Store {
        mode: StoreMode::Add,
        flags: found.item.flags,
        expiry: found.item.expiry,
        ..Store::set(value)
    };
    let reply = match long {
        Some(long) => cx.commit(key, long, &store, Kind::Nothing),
        None => ask(cx, key, Op::Store(store), Kind::Nothing),
    };
    match reply {
        Reply::Stored(_) => Ok(true),
        Reply::TooLarge | Reply::OutOfMemory => Err(failure(&reply)),
        _ => Ok(false),
    }
}
