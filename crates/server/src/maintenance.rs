//! The thread that works behind the scenes: lets the engine sweep expired items, move memory and
//! grow the index, and returns the memory of buffers that were many.

use std::sync::Arc;
use std::time::Duration;

use nuthatch_context::shared::Shared;
use nuthatch_context::system;
use nuthatch_engine::{Engine, Handle};
use nuthatch_telemetry::watch::Kind;

/// Items looked at in a step: about as many as leave no worker waiting noticeably.
const BUDGET: usize = 2048;

/// Between steps while there is more to do: with the budget, a bound on the work a second.
const PAUSE_BUSY: Duration = Duration::from_millis(1);

/// Between steps when there was nothing left to do.
const PAUSE_IDLE: Duration = Duration::from_millis(100);

/// Buffers that changed by less since the last step stand still.
const CALM: usize = 64 << 10;

/// Maintains until the server stops.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut handle = shared.engine.handle();
    let (mut trim_due, mut held_before) = (false, 0);
    let mut index = None;
    while !shared.shutdown.is_requested() {
        let more = step(shared, &mut handle);
        tell_growth(shared, &mut index);
        trim_due |= shared.account.is_worth_a_trim();
        let held = shared.account.held();
        // While clients come and go there is more to get back a moment later.
        if trim_due && held.abs_diff(held_before) < CALM {
            trim_due = false;
            system::trim_memory();
        }
        held_before = held;
        shared
            .shutdown
            .sleep(if more { PAUSE_BUSY } else { PAUSE_IDLE });
    }
}

/// A step, unless the server pauses: items are not to move meanwhile. True if there is more to do at once.
fn step<H: Handle>(shared: &Shared, handle: &mut H) -> bool {
    let Some(_step) = shared.pause.step_behind_the_scenes() else {
        return false;
    };
    shared.maintained.bump();
    handle.maintain(shared.clock.now(), BUDGET)
}

/// Tells those who watch the server that the index grows, or has grown, since this was asked last.
fn tell_growth(shared: &Shared, before: &mut Option<(bool, u64)>) {
    if !shared.watch.wanted().has(Kind::System) {
        *before = None;
        return;
    }
    let stats = shared.engine.stats();
    let found = (stats.index_growing, stats.index_slots);
    if before.is_some_and(|before| before != found) {
        let state = if found.0 { "growing" } else { "steady" };
        shared.tell_watchers(format_args!("type=index state={state} slots={}", found.1));
    }
    *before = Some(found);
}
