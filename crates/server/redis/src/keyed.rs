//! Commands that compare a value, or take one to another key: DELIFEQ, DELEX, DIGEST, MSETNX, MSETEX, RENAME, COPY, MOVE,
//! DUMP, RESTORE.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_resp::{Error, ValueCommand};

use crate::answered::{flag, status};
use crate::phase::{Phase, State};
use crate::transfer::Transfer;
use crate::{compare, dump, several};

/// Executes `command`, which is one of these.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ValueCommand<'_>,
) {
    match command {
        ValueCommand::SetAll(set) => {
            let outcome = several::set(cx, &set);
            flag(turn, phase, outcome);
        }
        ValueCommand::DelIf { key, when } => {
            let outcome = compare::remove(cx, key, when);
            flag(turn, phase, outcome);
        }
        ValueCommand::Digest { key } => compare::digest(cx, turn, phase, key),
        ValueCommand::Rename {
            key,
            to,
            only_absent,
        } => {
            let rename = Transfer::rename(phase.database.into(), key, to, only_absent);
            carry(cx, turn, phase, Ok(rename));
        }
        ValueCommand::Copy(copying) => {
            let copy = Transfer::copy(&cx.shared.config, phase.database.into(), &copying);
            carry(cx, turn, phase, copy);
        }
        ValueCommand::Dump { key } => dump::dump(cx, turn, phase, key),
        ValueCommand::Restore(restore) => {
            let outcome = dump::restore(cx, &restore, restore.dump);
            status(turn, phase, outcome);
        }
        ValueCommand::Move { key, database } => {
            let to_there =
                Transfer::to_database(&cx.shared.config, phase.database.into(), key, database);
            carry(cx, turn, phase, to_there);
        }
        other => debug_assert!(false, "{other:?} is executed elsewhere"),
    }
}

/// Takes the first step of an item's way: most need no other.
fn carry(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    transfer: Result<Transfer, Error<'static>>,
) {
    match transfer {
        Ok(transfer) => carry_on(cx, turn, phase, Box::new(transfer)),
        Err(error) => phase.writer(turn).error(&error),
    }
}

/// Takes a step of an item's way.
pub fn carry_on(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    mut transfer: Box<Transfer>,
) {
    let outcome = match transfer.step(cx) {
        Ok(None) => {
            phase.state = State::Transfer(transfer);
            return;
        }
        Ok(Some(carried)) => Ok(carried),
        Err(error) => Err(error),
    };
    match transfer.answer(outcome) {
        (true, outcome) => status(turn, phase, outcome.map(|_| ())),
        (false, outcome) => flag(turn, phase, outcome),
    }
}
