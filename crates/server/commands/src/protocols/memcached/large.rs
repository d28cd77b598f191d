//! Stores whose value is too long to await in a buffer: the engine reserves an item, and the value's bytes go there as
//! they arrive. The key keeps its old value until the last byte has arrived.

use nuthatch_protocol::{Error, KEY_ROOM, Parsed, Store, decode_key, encode, parse};

use super::key::key_bytes;
use super::phase::{Incoming, Phase};
use super::store::{is_plain_set, store_op, store_style};
use crate::answers::memcached::{
    MetaAnswer, answer_meta, answer_store, count_of_meta, count_of_store, failure,
};
use crate::answers::meta::{AnsweredVerb, MetaTicket};
use crate::slice::{Flow, Slice};
use crate::stage::Stage;
use crate::work::Work;

const BLOCK_END: &[u8] = b"\r\n";

/// Begins a store. `line` is the command's line.
pub fn begin<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    line: &'a [u8],
    store: &Store<'a>,
    value_len: usize,
) -> Flow {
    if slice.in_batch > 0 {
        // If there is no room, the old value is removed: this must not happen before earlier requests that may see it.
        return Flow::Barrier;
    }
    slice.spend(Work::COMMAND);
    slice.position += line.len();
    let base64 = store.meta.is_some_and(|flags| flags.base64);
    let bytes = key_bytes(stage, store.key, base64).unwrap_or(&store.key[..1]);
    match stage.reserve(bytes, value_len) {
        Ok(value) => {
            *phase = Phase::Value(Box::new(Incoming {
                value,
                line: line.into(),
                end_seen: 0,
                end_good: true,
            }));
        }
        Err(reply) => {
            stage.tell_refused(bytes, &store_op(stage, store), &reply);
            let replaces = match &store.meta {
                Some(flags) => is_plain_set(flags),
                None => store.verb == nuthatch_protocol::StoreVerb::Set,
            };
            if replaces {
                stage.forget(bytes);
            }
            if !store.noreply {
                encode::error(slice.output.text(), failure(&reply));
            }
            *phase = Phase::Swallow((value_len + BLOCK_END.len()) as u64);
        }
    }
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
    let is_whole = slice.receive(&mut incoming.value, input);
    let here = &input[slice.position..];
    let of_end = here.len().min(BLOCK_END.len() - incoming.end_seen);
    let expected = &BLOCK_END[incoming.end_seen..][..of_end];
    incoming.end_good &= &here[..of_end] == expected;
    incoming.end_seen += of_end;
    slice.position += of_end;
    if !is_whole || incoming.end_seen < BLOCK_END.len() {
        return Flow::Starved;
    }
    if let Phase::Value(incoming) = std::mem::replace(phase, Phase::Commands) {
        finish(stage, slice, *incoming);
    }
    Flow::Next
}

/// All bytes have arrived. The batch has no request of this connection: the value began behind a barrier, and no
/// request was parsed since.
fn finish(stage: &mut Stage<'_, '_>, slice: &mut Slice, incoming: Incoming) {
    // The line was parsed once already, with the same result.
    let Parsed::Body {
        store, value_len, ..
    } = parse(&incoming.line, &stage.limits)
    else {
        return;
    };
    if !incoming.end_good {
        if !store.noreply {
            encode::error(slice.output.text(), Error::BAD_DATA_CHUNK);
        }
        return;
    }
    let op = store_op(stage, &store);
    let mut room = [0; KEY_ROOM];
    let Some(flags) = &store.meta else {
        let counted = count_of_store(store_style(store.verb));
        let reply = stage.commit(store.key, incoming.value, &op, counted);
        return answer_store(slice.output.text(), store.noreply, &reply);
    };
    let key = match flags.base64 {
        true => decode_key(store.key, &mut room).unwrap_or_default(),
        false => store.key,
    };
    let ticket = MetaTicket {
        verb: AnsweredVerb::Store {
            plain_set: is_plain_set(flags),
        },
        key: store.key,
        flags: *flags,
    };
    let reply = stage.commit(key, incoming.value, &op, count_of_meta(&ticket));
    answer_meta(
        slice.output.text(),
        MetaAnswer {
            ticket: &ticket,
            now: stage.now,
            offered: value_len,
        },
        &reply,
    );
}
