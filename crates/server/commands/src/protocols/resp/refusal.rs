//! Requests that cannot be executed as they are: refused ones, and lines that were typed by hand.

use nuthatch_protocol::resp::{Error, Refusal, rewrite};

use super::phase::Phase;
use crate::slice::Slice;
use crate::stage::Stage;

/// Refuses a request, and returns how many bytes of it are used up.
#[cold]
pub fn refuse(
    stage: &Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    refusal: &Refusal<'_>,
) -> usize {
    stage.count_refusal(&refusal.error);
    // A browser that another site's page directs to this port sends these: nothing that it sends is executed.
    if let Error::Unknown { name, .. } = refusal.error
        && (name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:"))
    {
        slice.closing = true;
        return refusal.consumed;
    }
    if refusal.error == Error::Arity("exec") {
        phase.forget_transaction();
    }
    phase.writer(slice).error(&refusal.error);
    slice.closing |= refusal.close;
    phase.drop_rest(refusal.rest);
    refusal.consumed
}

/// Queues a line that was typed by hand as a request. False if it is no request.
#[cold]
pub fn typed(slice: &mut Slice, phase: &mut Phase, line: &[u8]) -> bool {
    let mut request = Vec::new();
    let rewritten = rewrite(line, &mut request);
    let queued = rewritten.and_then(|()| {
        let queued = phase.session().replay.push(&request);
        queued.map_err(|_| Error::OUT_OF_MEMORY)
    });
    match queued {
        Ok(()) => true,
        Err(error) => {
            phase.writer(slice).error(&error);
            slice.closing = true;
            false
        }
    }
}
