//! The maintenance thread: it lets the engine sweep expired items, move memory and grow the index, and it returns freed
//! memory of connections' buffers to the system.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_context::shared::Shared;
use nuthatch_context::system;
use nuthatch_engine::counters::Counter;
use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{Engine, Handle, note_sleep};
use nuthatch_telemetry::counters::WorkerCounters;
use nuthatch_telemetry::watch::Kind;

/// Items that a step looks at: few enough that no worker waits noticeably.
const BUDGET: usize = 2048;

/// The pause between steps while there is more to do. With the budget it bounds the work per second.
const PAUSE_BUSY: Duration = Duration::from_millis(1);

/// The pause between steps when there was nothing left to do.
const PAUSE_IDLE: Duration = Duration::from_millis(100);

/// If the buffers changed by fewer bytes than this since the last step, they count as steady.
const CALM: usize = 64 << 10;

/// Maintains until the server stops.
pub(crate) fn run(shared: &Arc<Shared>) {
    // Dropped by a return only, as a worker: see `Worker::run`.
    let mut handle = ManuallyDrop::new(shared.engine.handle());
    let (mut trim_due, mut held_before) = (false, 0);
    let mut index = None;
    let mut refusals = Refusals::default();
    while !shared.shutdown.is_requested() {
        let more = step(shared, &mut *handle);
        tell_growth(shared, &mut index);
        refusals.tell(shared);
        trim_due |= shared.account.is_worth_a_trim();
        let held = shared.account.held();
        // While clients connect and close, a later trim returns more memory.
        if trim_due && held.abs_diff(held_before) < CALM {
            trim_due = false;
            system::trim_memory();
        }
        held_before = held;
        shared
            .shutdown
            .sleep(if more { PAUSE_BUSY } else { PAUSE_IDLE });
    }
    drop(ManuallyDrop::into_inner(handle));
}

/// Takes a step, unless the server pauses: items must not move during a pause. True if there is more to do at once.
fn step<H: Handle>(shared: &Shared, handle: &mut H) -> bool {
    let Some(_step) = shared.pause.step_behind_the_scenes() else {
        return false;
    };
    shared.maintained.bump();
    note_sleep();
    handle.maintain(shared.clock.now(), BUDGET)
}

/// The kinds of refusals that the log has. A client's error handler may swallow a refusal, and then its key is missing for
/// ever: so the first of a kind is logged, and the others are counted.
#[derive(Default)]
struct Refusals {
    keys: bool,
    values: bool,
}

impl Refusals {
    fn tell(&mut self, shared: &Shared) {
        let is_counted = |counter: fn(&WorkerCounters) -> &Counter| {
            let mut counters = shared.inboxes.iter().map(|inbox| counter(&inbox.counters));
            counters.any(|counter| counter.get() > 0)
        };
        if !self.keys && is_counted(|counters| &counters.key_too_long) {
            self.keys = true;
            tracing::warn!(
                "a Redis client's key of more than {KEY_LEN_MAX} bytes was refused; further ones are counted \
                 (key_too_long in stats and INFO)"
            );
        }
        if !self.values && is_counted(|counters| &counters.store_too_large) {
            self.values = true;
            let most = shared.engine.item_size_max();
            tracing::warn!(
                "a value was refused, since an item has {most} bytes at most (-I); further ones are counted \
                 (store_too_large in stats and INFO)"
            );
        }
    }
}

/// Tells watchers if the index has begun to grow, or has grown, since the last call.
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
