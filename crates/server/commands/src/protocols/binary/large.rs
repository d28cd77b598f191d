//! Stores whose value is too long to await in a buffer: the engine reserves an item, and the value's bytes go there as
//! they arrive. The key keeps its old value until the last byte has arrived.

use nuthatch_engine::Reply;
use nuthatch_protocol::binary::{Head, Parsed, Store, StoreVerb, parse};

use super::phase::{Incoming, NO_LIMITS, Phase};
use super::requests;
use crate::answers::binary::{STORE, answer_store};
use crate::counting::{self, Counted, Kind};
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

/// Begins a store. `request` is the head, extras and key.
pub fn begin(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    head: Head,
    store: &Store<'_>,
    request: &[u8],
    value_len: usize,
) -> Flow {
    slice.spend(Work::COMMAND);
    slice.position += request.len();
    *phase = match stage.reserve(store.key, value_len) {
        Ok(value) => Phase::Value(Box::new(Incoming {
            value,
            head,
            request: request.into(),
        })),
        Err(reply) => {
            stage.tell_refused(store.key, &requests::store_op(stage, store), &reply);
            let refused = counting::Request::replied(store.key, value_len, &reply);
            stage.count(Counted::with_prefix(Kind::Refused), refused);
            answer(stage, slice, head, store, &reply);
            Phase::Swallow(value_len as u64)
        }
    };
    Flow::Next
}

/// Passes the bytes that have arrived to the engine, and stores the item when all have.
pub fn go_on(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &[u8],
) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    if !slice.receive(&mut incoming.value, input) {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Requests) {
        let Incoming {
            value,
            head,
            request,
        } = *incoming;
        // The request was parsed once already, with the same result.
        let Parsed::Body { store, .. } = parse(&request, &NO_LIMITS) else {
            return Flow::Next;
        };
        let op = requests::store_op(stage, &store);
        let reply = stage.commit(store.key, value, &op, STORE);
        answer(stage, slice, head, &store, &reply);
    }
    Flow::Next
}

/// Answers a store. If a value could not be replaced, removes the old one.
fn answer(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    head: Head,
    store: &Store<'_>,
    reply: &Reply,
) {
    let failed = matches!(reply, Reply::TooLarge | Reply::OutOfMemory);
    if failed && store.verb == StoreVerb::Set {
        stage.forget(store.key);
    }
    let (_, quiet) = head.opcode.loud();
    answer_store(slice.output.text(), head, quiet, reply);
}
