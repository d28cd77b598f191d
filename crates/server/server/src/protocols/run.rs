//! Runs a turn: parses its input request by request, until it stops.

use std::os::fd::RawFd;

use nuthatch_commands::context::Context;
use nuthatch_commands::output::Output;
use nuthatch_commands::turn::{Flow, Stop, Turn};
use nuthatch_engine::AnyValue;

use super::{Phase, step};

/// Parses as much of `input` as the turn may, and returns why it stopped.
pub fn run<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Stop {
    if is_ended_by_script(cx, turn, phase) {
        return Stop::Closing;
    }
    loop {
        if let Some(stop) = step_of_turn(cx, turn, phase, input) {
            return stop;
        }
    }
}

/// True if a script of Lua runs for long: whoever cannot be told BUSY is told so, and goes. To wait for the script would put the
/// worker to sleep, and nobody would hear SCRIPT KILL. Until it has run for long its end is waited for here: a value that is
/// complete by now is stored without a look at the script.
#[inline]
fn is_ended_by_script(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase) -> bool {
    let is_ended = !phase.may_be_redis() && cx.is_script_in_the_way();
    if is_ended {
        phase.say_busy(turn.output.text());
        turn.closing = true;
    }
    is_ended
}

/// One step of [`run`]: a command, or a piece of one. Returns why the turn stops, if it does.
#[inline(always)]
fn step_of_turn<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Option<Stop> {
    if turn.closing {
        return Some(Stop::Closing);
    }
    if turn.output.len() >= turn.limits.output_cap {
        return Some(if turn.in_batch > 0 {
            Stop::Batch
        } else {
            Stop::Full
        });
    }
    if cx.batch_is_full(turn) {
        return Some(Stop::Batch);
    }
    if turn.commands_left == 0 {
        return Some(Stop::Yielded);
    }
    match step(cx, turn, phase, input) {
        Flow::Next => None,
        Flow::Barrier => Some(Stop::Batch),
        Flow::Starved => Some(Stop::Starved),
        Flow::Called => Some(Stop::Called),
    }
}

/// [`run`], with a line in the log for each request.
#[cold]
pub fn run_logged<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
    fd: RawFd,
) -> Stop {
    tracing::trace!("{fd}: {} bytes of input", input.len() - turn.position);
    if is_ended_by_script(cx, turn, phase) {
        return Stop::Closing;
    }
    loop {
        let from = turn.position;
        let begins = phase.is_at_request();
        let stop = step_of_turn(cx, turn, phase, input);
        // A request that waits for a batch or for more input is not consumed: it is parsed again, and logged then.
        if begins && turn.position > from {
            phase.log_request(&input[from..], fd);
        }
        if let Some(stop) = stop {
            return stop;
        }
    }
}

/// Logs the replies in a turn's output from `from` on.
#[cold]
pub fn answered(phase: &Phase, output: &Output<AnyValue>, from: usize, fd: RawFd) {
    let end = output.end();
    if end > from {
        tracing::trace!("{fd}: {} bytes of replies, large values apart", end - from);
    }
    phase.log_answers(output, from, fd);
}
