//! Stores whose value is too long to await in a buffer: the engine reserves an item, and the value's bytes go there as
//! they arrive. The key keeps its old value until the last byte has arrived.

use nuthatch_protocol::{Error, KEY_ROOM, Parsed, Store, decode_key, encode, parse};

use super::immediate::count_bad_chunk;
use super::key::key_bytes;
use super::phase::{Incoming, Phase};
use super::store::{is_plain_set, store_kind, store_op};
use crate::answers::memcached::{
    MetaAnswer, answer_meta, answer_store, count_of_meta, count_of_store, failure,
};
use crate::answers::meta::{AnsweredVerb, MetaFormat};
use crate::context::Context;
use crate::turn::{Flow, Turn};
use crate::work::Work;

const BLOCK_END: &[u8] = b"\r\n";

/// Begins a store. `line` is the command's line.
pub fn begin<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    line: &'a [u8],
    store: &Store<'a>,
    value_len: usize,
) -> Flow {
    if turn.in_batch > 0 {
        // If there is no room, the old value is removed: this must not happen before earlier requests that may see it.
        return Flow::Barrier;
    }
    turn.spend(Work::COMMAND);
    turn.position += line.len();
    let base64 = store.meta.is_some_and(|flags| flags.base64);
    let bytes = key_bytes(cx, store.key, base64).unwrap_or(&store.key[..1]);
    match cx.reserve(bytes, value_len) {
        Ok(value) => {
            *phase = Phase::Value(Box::new(Incoming {
                value,
                line: line.into(),
                end_seen: 0,
                end_good: true,
            }));
        }
        Err(reply) => {
            cx.notify_refused(bytes, &store_op(cx, store), &reply);
            let replaces = match &store.meta {
                Some(flags) => is_plain_set(flags),
                None => store.verb == nuthatch_protocol::StoreVerb::Set,
            };
            if replaces {
                cx.forget(bytes);
            }
            if !store.noreply {
                encode::error(turn.output.text(), failure(&reply));
            }
            *phase = Phase::Swallow((value_len + BLOCK_END.len()) as u64);
        }
    }
    Flow::Next
}

/// Passes the bytes that have arrived to the engine, and stores the item when all have.
pub fn go_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, input: &[u8]) -> Flow {
    let Phase::Value(incoming) = phase else {
        return Flow::Next;
    };
    let is_whole = turn.receive(&mut incoming.value, input);
    let here = &input[turn.position..];
    let of_end = here.len().min(BLOCK_END.len() - incoming.end_seen);
    let expected = &BLOCK_END[incoming.end_seen..][..of_end];
    incoming.end_good &= &here[..of_end] == expected;
    incoming.end_seen += of_end;
    turn.position += of_end;
    if !is_whole || incoming.end_seen < BLOCK_END.len() {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Commands) {
        finish(cx, turn, *incoming);
    }
    Flow::Next
}

/// All bytes have arrived. The batch has no request of this connection: the value began behind a barrier, and no
/// request was parsed since.
fn finish(cx: &mut Context<'_, '_>, turn: &mut Turn, incoming: Incoming) {
    // The line was parsed once already, with the same result.
    let Parsed::Body {
        store, value_len, ..
    } = parse(&incoming.line, &cx.limits)
    else {
        return;
    };
    if !incoming.end_good {
        count_bad_chunk(cx, &store, value_len);
        if !store.noreply {
            encode::error(turn.output.text(), Error::BAD_DATA_CHUNK);
        }
        return;
    }
    let op = store_op(cx, &store);
    let mut room = [0; KEY_ROOM];
    let Some(flags) = &store.meta else {
        let counted = count_of_store(store_kind(store.verb));
        let reply = cx.commit(store.key, incoming.value, &op, counted);
        return answer_store(turn.output.text(), store.noreply, &reply);
    };
    let key = match flags.base64 {
        true => decode_key(store.key, &mut room).unwrap_or_default(),
        false => store.key,
    };
    let format = MetaFormat {
        verb: AnsweredVerb::Store {
            plain_set: is_plain_set(flags),
        },
        key: store.key,
        flags: *flags,
    };
    let reply = cx.commit(key, incoming.value, &op, count_of_meta(&format));
    answer_meta(
        turn.output.text(),
        MetaAnswer {
            format: &format,
            now: cx.now,
            offered: value_len,
        },
        &reply,
    );
}
