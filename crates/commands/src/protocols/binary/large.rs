//! Stores whose value is too long to await in a buffer: the engine reserves an item, and its bytes
//! go there as they come. The key keeps its old value until the last one has come.

use nuthatch_engine::{Handle, Reply};
use nuthatch_protocol::binary::{Head, Parsed, Store, StoreVerb, parse};
use nuthatch_telemetry::prefixes::Event;
use nuthatch_telemetry::sizes::Lens;

use super::answers::answer_store;
use super::{Incoming, NO_LIMITS, Phase, requests};
use crate::protocols;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};

/// Begins with the request's head, extras and key: its first bytes.
pub fn begin(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    head: Head,
    store: &Store<'_>,
    request: &[u8],
    value_len: usize,
) -> Flow {
    slice.commands_left -= 1;
    slice.position += request.len();
    let key = stage.key(store.key);
    *phase = match stage.handle.reserve(stage.now, key, value_len) {
        Ok(reservation) => Phase::Value(Box::new(Incoming {
            reservation,
            head,
            request: request.into(),
        })),
        Err(reply) => {
            stage.tell_refused(store.key, &requests::store_op(stage, store), &reply);
            answer(stage, slice, head, store, value_len, &reply);
            Phase::Swallow(value_len as u64)
        }
    };
    Flow::Next
}

/// Hands on what has come, and stores when all has.
pub fn go_on(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &[u8],
) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    if !protocols::receive(&mut incoming.reservation, slice, input) {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Requests) {
        let Incoming {
            reservation,
            head,
            request,
        } = *incoming;
        // It was understood once; it says the same again.
        let Parsed::Body {
            store, value_len, ..
        } = parse(&request, &NO_LIMITS)
        else {
            return Flow::Next;
        };
        let op = requests::store_op(stage, &store);
        let reply = stage.commit(store.key, reservation, &op);
        answer(stage, slice, head, &store, value_len, &reply);
    }
    Flow::Next
}

/// Answers a store, and has no old value survive that was to be replaced and could not be.
fn answer(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    head: Head,
    store: &Store<'_>,
    value_len: usize,
    reply: &Reply,
) {
    stage.counters.count_set(Lens {
        key: store.key.len(),
        value: value_len,
    });
    stage.counters.count_failure(reply);
    stage.record(store.key, Event::Set);
    let failed = matches!(reply, Reply::TooLarge | Reply::OutOfMemory);
    if failed && store.verb == StoreVerb::Set {
        stage.forget(store.key);
    }
    let (_, quiet) = head.opcode.loud();
    answer_store(slice.output.text(), head, quiet, reply);
}
