//! Short answers: OK, 1 or 0, or an error.

use nuthatch_commands::turn::Turn;
use nuthatch_resp::Error;

use crate::phase::Phase;

/// Answers 1 or 0, or the error.
pub fn flag(turn: &mut Turn, phase: &Phase, outcome: Result<bool, Error<'static>>) {
    let mut writer = phase.writer(turn);
    match outcome {
        Ok(flag) => writer.flag(flag),
        Err(error) => writer.error(&error),
    }
}

/// Answers OK, or the error.
pub fn status(turn: &mut Turn, phase: &Phase, outcome: Result<(), Error<'_>>) {
    let mut writer = phase.writer(turn);
    match outcome {
        Ok(()) => writer.ok(),
        Err(error) => writer.error(&error),
    }
}
