//! The thread that works behind the scenes: lets the engine sweep expired items, move memory and
//! grow the index, and returns the memory of buffers that were many.

use std::sync::Arc;
use std::time::Duration;

use nuthatch::{Engine, Handle};

use crate::shared::Shared;
use crate::system;

/// Items looked at in a step: about as many as leave no worker waiting noticeably.
const BUDGET: usize = 2048;

/// Between steps while there is more to do: with the budget, a bound on the work a second.
const PAUSE_BUSY: Duration = Duration::from_millis(1);

/// Between steps when there was nothing left to do.
const PAUSE_IDLE: Duration = Duration::from_millis(100);

/// Maintains until the server stops.
pub(crate) fn run<E: Engine>(shared: &Arc<Shared<E>>) {
    let mut handle = shared.engine.handle();
    while !shared.shutdown.is_requested() {
        let more = handle.maintain(shared.clock.now(), BUDGET);
        if shared.account.is_worth_a_trim() {
            system::trim_memory();
        }
        shared
            .shutdown
            .sleep(if more { PAUSE_BUSY } else { PAUSE_IDLE });
    }
}
