//! Runs a slice: parses its input request by request, until it stops.

use std::os::fd::RawFd;

use nuthatch_engine::AnyValue;

use super::{Phase, step};
use crate::output::Output;
use crate::slice::{Flow, Slice, Stop};
use crate::stage::Stage;

/// Parses as much of `input` as the slice may, and returns why it stopped.
pub fn run<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Stop {
    loop {
        if let Some(stop) = step_of_slice(stage, slice, phase, input) {
            return stop;
        }
    }
}

/// One step of [`run`]: a command, or a piece of one. Returns why the slice stops, if it does.
#[inline(always)]
fn step_of_slice<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Option<Stop> {
    if slice.closing {
        return Some(Stop::Closing);
    }
    if slice.output.len() >= slice.terms.output_cap {
        return Some(if slice.in_batch > 0 {
            Stop::Batch
        } else {
            Stop::Full
        });
    }
    if stage.batch_is_full(slice) {
        return Some(Stop::Batch);
    }
    if slice.commands_left == 0 {
        return Some(Stop::Yielded);
    }
    match step(stage, slice, phase, input) {
        Flow::Next => None,
        Flow::Barrier => Some(Stop::Batch),
        Flow::Starved => Some(Stop::Starved),
        Flow::Called => Some(Stop::Called),
    }
}

/// [`run`], with a line in the log for each request.
#[cold]
pub fn run_logged<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
    fd: RawFd,
) -> Stop {
    tracing::trace!("{fd}: {} bytes of input", input.len() - slice.position);
    loop {
        let from = slice.position;
        let begins = phase.is_at_request();
        let stop = step_of_slice(stage, slice, phase, input);
        // A request that waits for a batch or for more input is not consumed: it is parsed again, and logged then.
        if begins && slice.position > from {
            phase.log_request(&input[from..], fd);
        }
        if let Some(stop) = stop {
            return stop;
        }
    }
}

/// Logs the replies in a slice's output from `from` on.
#[cold]
pub fn answered(phase: &Phase, output: &Output<AnyValue>, from: usize, fd: RawFd) {
    let end = output.end();
    if end > from {
        tracing::trace!("{fd}: {} bytes of replies, large values apart", end - from);
    }
    phase.log_answers(output, from, fd);
}
