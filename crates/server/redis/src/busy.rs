//! What waits while another worker's script of Lua runs. Nobody sleeps behind a script that runs for long: its worker still
//! has to hear SCRIPT KILL. A request that has not begun is answered BUSY, and one that has begun goes on in a later turn.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_resp::Error;
use nuthatch_state::isolation::{Isolation, STEP};

/// For a command that waits for all workers. Errors: another worker's script runs for long.
pub fn check(cx: &Context<'_, '_>) -> Result<(), Error<'static>> {
    match cx.is_script_in_the_way() {
        true => Err(Error::SCRIPT_BUSY),
        false => Ok(()),
    }
}

/// Waits until this worker has the engine to itself, unless it has that already. Errors: another worker's script runs for long,
/// which may have begun since somebody looked.
pub fn isolate<'w>(cx: &Context<'w, '_>) -> Result<Option<Isolation<'w>>, Error<'static>> {
    let (workers, own) = (&cx.shared.workers, &cx.worker.lock);
    if !cx.shared.config.lua {
        return Ok(Isolation::wait_if_shared(workers, own));
    }
    Isolation::wait_unless(workers, own, || cx.shared.is_busy()).ok_or(Error::SCRIPT_BUSY)
}

/// Ends the turn of a request that has begun, if another worker's script runs for long. True if it has.
#[inline]
pub fn puts_off(cx: &Context<'_, '_>, turn: &mut Turn) -> bool {
    let waits = cx.is_script_in_the_way();
    if waits {
        put_off(turn);
    }
    waits
}

/// Ends the turn, which comes again at once.
pub fn put_off(turn: &mut Turn) {
    std::thread::sleep(STEP);
    turn.commands_left = 0;
}
