//! Stores whose value is too long to await in a buffer: the engine reserves an item, and the value's bytes go there as
//! they arrive. The key keeps its old value until the last byte has arrived.

use nuthatch_engine::Reply;
use nuthatch_protocol::binary::{Head, Parsed, Store, StoreVerb, parse};

use super::phase::{Incoming, NO_LIMITS, Phase};
use super::requests;
use crate::answers::binary::{answer_store, counted_store};
use crate::context::Context;
use crate::counting::{self, Counted, Kind};
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// Begins a store. `request` is the head, extras and key.
pub fn begin(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    head: Head,
    store: &Store<'_>,
    request: &[u8],
    value_len: usize,
) -> Flow {
    turn.spend(Work::COMMAND);
    turn.position += request.len();
    *phase = match cx.reserve(store.key, value_len) {
        Ok(value) => Phase::Value(Box::new(Incoming {
            value,
            head,
            request: request.into(),
        })),
        Err(reply) => {
            cx.notify_refused(store.key, &requests::store_op(cx, store), &reply);
            let refused = counting::Request::replied(store.key, value_len, &reply);
            cx.count(Counted::with_prefix(Kind::Refused), refused);
            answer(cx, turn, head, store, &reply);
            Phase::Swallow(value_len as u64)
        }
    };
    Flow::Next
}

/// Passes the bytes that have arrived to the engine, and stores the item when all have.
pub fn go_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, input: &[u8]) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    if !turn.receive(&mut incoming.value, input) {
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
        let op = requests::store_op(cx, &store);
        let counted = counted_store(requests::is_cas(&op));
        let reply = cx.commit(store.key, value, &op, counted);
        answer(cx, turn, head, &store, &reply);
    }
    Flow::Next
}

/// Answers a store. If a value could not be replaced, removes the old one.
fn answer(cx: &mut Context<'_, '_>, turn: &mut Turn, head: Head, store: &Store<'_>, reply: &Reply) {
    let failed = matches!(reply, Reply::TooLarge | Reply::OutOfMemory);
    if failed && store.verb == StoreVerb::Set {
        cx.forget(store.key);
    }
    let (_, quiet) = head.opcode.loud();
    answer_store(turn.output.text(), head, quiet, reply);
}
