//! Commands that compare a value, or take one to another key: DELIFEQ, DELEX, DIGEST, MSETNX, MSETEX, RENAME, COPY, MOVE,
//! DUMP, RESTORE.

use nuthatch_resp::ValueCommand;

use super::answered::{flag, status};
use super::phase::Phase;
use super::{compare, dump, several, transfer};
use crate::context::Context;
use crate::turn::Turn;

/// Executes `command`, which is one of these.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &Phase,
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
            let outcome = transfer::rename(cx, phase, key, to, only_absent);
            match only_absent {
                true => flag(turn, phase, outcome),
                false => status(turn, phase, outcome.map(|_| ())),
            }
        }
        ValueCommand::Copy(copying) => {
            let outcome = transfer::copy(cx, phase, &copying);
            flag(turn, phase, outcome);
        }
        ValueCommand::Dump { key } => dump::dump(cx, turn, phase, key),
        ValueCommand::Restore(restore) => {
            let outcome = dump::restore(cx, &restore, restore.dump);
            status(turn, phase, outcome);
        }
        ValueCommand::Move { key, database } => {
            let outcome = transfer::move_key(cx, phase, key, database);
            flag(turn, phase, outcome);
        }
        other => debug_assert!(false, "{other:?} is executed elsewhere"),
    }
}
