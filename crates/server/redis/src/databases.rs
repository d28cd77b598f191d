//! Commands about databases: SELECT, SWAPDB, FLUSHDB, FLUSHALL. A change of what a database is happens while the
//! worker has the engine to itself.

use nuthatch_commands::context::Context;
use nuthatch_commands::work::Work;
use nuthatch_resp::{DatabaseCommand, Error};
use nuthatch_settings::administration::Action;
use nuthatch_state::databases::Emptied;

use crate::busy;
use crate::phase::Phase;
use crate::transfer::numbered;

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
    let database = numbered(&cx.shared.config, number).ok_or(Error::DATABASE)?;
    phase.database = database as u8;
    if !cx.in_script {
        cx.info.set_database(phase.database);
    }
    Ok(())
}

/// SWAPDB.
fn swap(cx: &mut Context<'_, '_>, one: i64, other: i64) -> Result<(), Error<'static>> {
    let config = &cx.shared.config;
    let (Some(one), Some(other)) = (numbered(config, one), numbered(config, other)) else {
        return Err(Error::DATABASE);
    };
    if one == other {
        return Ok(());
    }
    let _isolation = busy::isolate(cx)?;
    cx.shared.databases.swap(one, other);
    let told = cx.shared.note_flush();
    cx.work.add(Work::of_places(told));
    Ok(())
}

/// FLUSHALL.
fn flush_all(cx: &mut Context<'_, '_>) -> Result<(), Error<'static>> {
    cx.counters.cmd_flush.bump();
    if !cx.may(Action::Flush) {
        return Err(Error::FLUSH_FORBIDDEN);
    }
    busy::check(cx)?;
    flush_everything(cx)
}

fn flush_everything(cx: &mut Context<'_, '_>) -> Result<(), Error<'static>> {
    cx.flush(cx.now).map_err(|_| Error::FLUSH_INCOMPLETE)
}

/// FLUSHDB.
fn flush(cx: &mut Context<'_, '_>, database: u8) -> Result<(), Error<'static>> {
    cx.counters.cmd_flush.bump();
    if !cx.may(Action::Flush) {
        return Err(Error::FLUSH_FORBIDDEN);
    }
    if cx.shared.config.has_one_database {
        busy::check(cx)?;
        return flush_everything(cx);
    }
    // No other worker waits for a change of nothing.
    if cx.shared.databases.is_unused(database.into()) {
        return Ok(());
    }
    let _isolation = busy::isolate(cx)?;
    match cx.shared.databases.empty(database.into()) {
        Emptied::Done => {
            let told = cx.shared.note_flush();
            cx.work.add(Work::of_places(told));
        }
        Emptied::ByFlush => return flush_everything(cx),
        Emptied::NoGeneration => return Err(Error::NO_GENERATION),
    }
    Ok(())
}
