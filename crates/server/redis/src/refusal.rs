//! Requests that cannot be executed as they are: refused ones, and lines that were typed by hand.

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_resp::{Error, Refusal, rewrite, rewritten_max};

use crate::phase::Phase;

/// Refuses a request, and returns how many bytes of it are used up.
#[cold]
pub fn refuse(
    cx: &Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    refusal: &Refusal<'_>,
) -> usize {
    cx.count_refusal(&refusal.error);
    // A browser that another site's page directs to this port sends these: nothing that it sends is executed.
    if let Error::Unknown { name, .. } = refusal.error
        && (name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:"))
    {
        turn.closing = true;
        return refusal.consumed;
    }
    if refusal.error == Error::Arity("exec") {
        phase.forget_transaction();
    }
    phase.writer(turn).error(&refusal.error);
    turn.closing |= refusal.close;
    phase.drop_rest(refusal.rest);
    refusal.consumed
}

/// Queues a line that was typed by hand as a request. False if it is no request.
#[cold]
pub fn typed(turn: &mut Turn, phase: &mut Phase, line: &[u8]) -> bool {
    match queue_line(phase, line) {
        Ok(()) => true,
        Err(error) => {
            phase.writer(turn).error(&error);
            turn.closing = true;
            false
        }
    }
}

fn queue_line(phase: &mut Phase, line: &[u8]) -> Result<(), Error<'static>> {
    let no_memory = |_| Error::OUT_OF_MEMORY;
    let mut request = Vec::new();
    spare(|| request.try_reserve(rewritten_max(line.len()))).map_err(no_memory)?;
    rewrite(line, &mut request)?;
    let replay = &mut phase.session().replay;
    replay.push(&request).map_err(no_memory)
}
