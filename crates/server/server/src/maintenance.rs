//! The maintenance thread: it lets the engine sweep expired items, move memory and grow the index, and it returns freed
//! memory of connections' buffers to the system ([`Trims`]).

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_base::memory::reserve;
use nuthatch_engine::counters::Counter;
use nuthatch_engine::request::PREFIX_LEN_MAX;
use nuthatch_engine::{AnyHandle, Engine, Handle, Time, note_sleep};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::system;
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::watch::Kind;

use crate::leftovers::Leftovers;
use crate::worker::DRAIN;

/// Items that a step looks at: few enough that no worker waits noticeably.
const BUDGET: usize = 2048;

/// The pause between steps while there is more to do. With the budget it bounds the work per second.
const PAUSE_BUSY: Duration = Duration::from_millis(1);

/// The pause between steps when there was nothing left to do.
const PAUSE_IDLE: Duration = Duration::from_millis(100);

/// If the buffers changed by fewer bytes than this since the last step, they count as steady.
const CALM: usize = 64 << 10;

/// The pause between two looks at the process' memory.
const PAUSE_LOOKS: Duration = Duration::from_millis(100);

/// The process' memory may be that of the engine, a twentieth more, and this much before freed memory goes back to the
/// system at once: 16 MiB less than docs/operations.md promises.
const RESIDENT_BESIDE: u64 = 16 << 20;

/// The growth since the last trim that is worth another.
const GROWTH_MIN: u64 = 2 << 20;

/// Maintains until the server stops.
pub(crate) fn run(shared: &Arc<ServerState>) {
    // Dropped by a return only, as a worker: see `Worker::run`.
    let mut handle = ManuallyDrop::new(shared.engine.handle());
    let mut trims = Trims::default();
    let mut index = None;
    let mut refusals = Refusals::default();
    let mut leftovers = Leftovers::default();
    while !shared.shutdown.is_requested() {
        // Who is told is told of what the engine has swept.
        let now = shared.clock.now();
        let more = step(shared, &mut handle, &mut leftovers, now);
        publish_growth(shared, &mut index);
        tell_gone(shared, now);
        shared.tell_key_events();
        refusals.log_first(shared);
        trims.look(shared);
        end_want(shared);
        shared
            .shutdown
            .sleep(if more { PAUSE_BUSY } else { PAUSE_IDLE });
    }
    // A worker whose script runs sees nothing of the stop.
    shared.scripting.running.close(DRAIN);
    drop(ManuallyDrop::into_inner(handle));
}

/// Takes a step, unless the server pauses: items must not move during a pause. True if there is more to do at once.
fn step(
    shared: &ServerState,
    handle: &mut AnyHandle,
    leftovers: &mut Leftovers,
    now: Time,
) -> bool {
    let Some(_step) = shared.pause.step_behind_the_scenes() else {
        return false;
    };
    shared.telemetry.maintenance_steps.bump();
    note_sleep();
    let more = handle.maintain(now, BUDGET);
    leftovers.step(shared, handle) || more
}

/// Tells the clients that track keys of those that have expired, and of a delayed flush that has come.
fn tell_gone(shared: &ServerState, now: Time) {
    if shared.last_flush.take_due(now) {
        shared.note_flush();
    }
    shared.tracking.sweep(now.0.into());
}

/// Takes back the reserve of memory that was opened when the system refused some. Meanwhile connections may hold less.
fn end_want(shared: &ServerState) {
    shared.heed_want();
    if shared.accounts.buffers.is_in_want() {
        system::trim_memory();
        if reserve::refill() {
            shared.accounts.buffers.want_is_over();
            tracing::info!("the system gives memory again");
        }
    }
}

/// When freed memory goes back to the system. Each worker's thread has a heap of its own in the allocator, and what one
/// has freed does not serve another. So without trims the process would hold what the buffers of each worker held at
/// their most, one after the other, and the account bounds their sum only.
#[derive(Default)]
struct Trims {
    /// Less is held than a while ago.
    due: bool,
    held_before: usize,
    looked: Option<Instant>,
    /// The process' memory after the last trim, or the least since.
    resident: u64,
}

impl Trims {
    fn look(&mut self, shared: &ServerState) {
        self.due |= shared.accounts.buffers.is_worth_a_trim();
        let held = shared.accounts.buffers.held();
        // While clients connect and close, a later trim returns more memory.
        if self.due && held.abs_diff(self.held_before) < CALM {
            self.due = false;
            system::trim_memory();
        }
        self.held_before = held;
        if self.looked.is_none_or(|at| at.elapsed() >= PAUSE_LOOKS) {
            self.looked = Some(Instant::now());
            let limit = shared.engine.stats().memory_limit;
            let resident = system::resident_bytes().unwrap_or_default();
            if self.is_too_much(resident, limit) {
                system::trim_memory();
                self.resident = system::resident_bytes().unwrap_or(resident);
            }
        }
    }

    /// True if a trim is due because of the process' memory. A process that has much memory for another reason is not
    /// trimmed again until it has grown.
    fn is_too_much(&mut self, resident: u64, engine: u64) -> bool {
        self.resident = self.resident.min(resident);
        // An engine without a limit says the largest number.
        let promised = engine.saturating_add(engine / 20 + RESIDENT_BESIDE);
        resident > promised && resident > self.resident + GROWTH_MIN
    }
}

/// The kinds of refusals that the log has. A client's error handler may swallow a refusal, and then its key is missing for
/// ever: so the first of a kind is logged, and the others are counted.
#[derive(Default)]
struct Refusals {
    keys: bool,
    values: bool,
}

impl Refusals {
    fn log_first(&mut self, shared: &ServerState) {
        let is_counted = |counter: fn(&WorkerCounters) -> &Counter| {
            let mut counters = shared
                .workers
                .iter()
                .map(|worker| counter(&worker.counters));
            counters.any(|counter| counter.get() > 0)
        };
        if !self.keys && is_counted(|counters| &counters.key_too_long) {
            self.keys = true;
            let most = shared.engine.key_len_max() - PREFIX_LEN_MAX;
            tracing::warn!(
                "a Redis client's key of more than {most} bytes was refused; further ones are counted \
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
fn publish_growth(shared: &ServerState, before: &mut Option<(bool, u64)>) {
    if !shared.telemetry.watchers.wanted().has(Kind::System) {
        *before = None;
        return;
    }
    let stats = shared.engine.stats();
    let found = (stats.index_growing, stats.index_slots);
    if before.is_some_and(|before| before != found) {
        let state = if found.0 { "growing" } else { "steady" };
        shared
            .telemetry
            .notify_watchers(format_args!("type=index state={state} slots={}", found.1));
    }
    *before = Some(found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_goes_back_when_the_process_has_grown_to_much() {
        const MB: u64 = 1 << 20;
        let mut trims = Trims::default();
        assert!(!trims.is_too_much(115 * MB, 100 * MB));
        assert!(trims.is_too_much(122 * MB, 100 * MB));
        // The trim gave nothing back.
        trims.resident = 122 * MB;
        assert!(!trims.is_too_much(124 * MB, 100 * MB));
        assert!(trims.is_too_much(125 * MB, 100 * MB));
        // It shrank meanwhile.
        assert!(!trims.is_too_much(121 * MB + 1, 100 * MB));
        assert!(trims.is_too_much(124 * MB, 100 * MB));
        // A larger limit allows more.
        assert!(!trims.is_too_much(140 * MB, 200 * MB));
    }
}
