//! Executes a batch: passes it to the engine and writes the answers.

use nuthatch_base::sync::mutex::MutexGuard;
use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{AnyHandle, Engine, Handle, Inspect, Key, Op, Removal, Reply, Request, Time};
use nuthatch_protocol::encode;
use nuthatch_resp::Error;
use nuthatch_state::changes::{self, Changes, Naming};
use nuthatch_state::key_events::Event;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::watch::line::Lines;
use nuthatch_state::telemetry::watch::replies::WatchedReplies;
use nuthatch_state::worker::SharedWorker;

use crate::answering::Answering;
use crate::answers::ReplyFormat;
use crate::batch::Batch;
use crate::counting::Counts;
use crate::turn::Turn;

/// Waits until no other worker has the engine to itself. `None` if that is a script of Lua which runs for long.
#[inline]
fn lock<'w>(shared: &ServerState, worker: &'w SharedWorker) -> Option<Option<MutexGuard<'w, ()>>> {
    match shared.config.lua {
        true => worker.lock.take_unless(|| shared.is_busy()),
        false => Some(worker.lock.take()),
    }
}

/// Answers BUSY to the requests of a batch. Protocols that have no such answer end the connection.
#[cold]
fn refuse(turns: &mut [Turn], batch: &Batch<'_>) {
    for pending in &batch.pending {
        let turn = &mut turns[pending.turn as usize];
        match pending.format {
            ReplyFormat::Resp(format) => format.refuse(turn.output.text(), &Error::SCRIPT_BUSY),
            ReplyFormat::Memcached(_) if !turn.closing => {
                turn.output.text().extend_from_slice(encode::SCRIPT_BUSY);
                turn.closing = true;
            }
            _ => turn.closing = true,
        }
    }
}

/// Executes a batch on the engine, and answers it. Watchers are told, if there are any: by the numbers of all turns'
/// connections.
#[inline]
pub fn execute(
    shared: &ServerState,
    worker: &SharedWorker,
    handle: &mut AnyHandle,
    turns: &mut [Turn],
    batch: &Batch<'_>,
    now: Time,
    numbers: impl FnOnce(&[Turn]) -> Vec<usize>,
) {
    let Some(_lock) = lock(shared, worker) else {
        return refuse(turns, batch);
    };
    let hub = &shared.telemetry.watchers;
    // Behind the lock: who begins to track waits for it.
    let is_watched = shared.is_watched();
    let numbers = match is_watched {
        true => numbers(turns),
        false => Vec::new(),
    };
    let footprint = |key_len, value_len| shared.engine.footprint(key_len, value_len);
    let hasher = shared.engine.hasher();
    let counts = Counts {
        counters: &worker.counters,
        prefixes: shared.telemetry.prefixes.recorder(&worker.prefixes, hasher),
    };
    let mut answering = Answering::new(turns, batch, counts, (now, &shared.clock), &footprint);
    if !is_watched {
        handle.execute(now, &batch.requests, &mut answering);
    } else {
        let mut watched = WatchedReplies {
            inner: &mut answering,
            lines: Lines::new(hub),
            changes: Changes::new(shared, Naming::ByOperation),
            requests: &batch.requests,
            connection: &|index| numbers[batch.pending[index].turn as usize],
            removal: &|index| batch.pending[index].format.removal(),
            footprint: &footprint,
            now,
            value_len: None,
            item: None,
        };
        watched.execute(handle);
        watched.publish(hub, |answering, index, count| answering.told(index, count));
    }
    for index in answering.failed_sets {
        forget(shared, handle, batch.requests[index].key, now);
    }
}

/// Removes a key's item: a set of the key failed, and readers must not take the old value for the new one. Clients that
/// track the key are told, and that the item was evicted: no client has removed it. Returns how many were told, as work.
/// The caller holds its worker's lock.
pub fn forget(shared: &ServerState, handle: &mut AnyHandle, key: Key<'_>, now: Time) -> usize {
    let request = Request {
        key,
        op: Op::Remove(Removal::default()),
    };
    let mut last = LastReply(Reply::Miss);
    handle.execute(now, &[request], &mut last);
    let told = changes::tell(&shared.tracking, &request, None);
    let events = &shared.key_events;
    match last.0 == Reply::Removed && events.is_used() {
        true => told + events.tell(&shared.databases, Event::Evicted, key.bytes()),
        false => told,
    }
}
