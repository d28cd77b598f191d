//! Commands that compare a key's value, or answer its digest: DELIFEQ, DELEX, DIGEST, and the conditions of SET.

use nuthatch_commands::context::Context;
use nuthatch_commands::counting::Kind;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::{Op, Removal, Reply};
use nuthatch_resp::{Comparison, Error, Pattern};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::phase::Phase;
use crate::spot::{Content, ask, count_get, read, take_if};

/// True if a key with this value, or without one, fulfils the condition. To read the value was counted as work before.
pub fn holds(condition: &Comparison<'_>, value: Option<&Content>) -> bool {
    let is_equal = value.is_some_and(|value| match condition.with {
        Pattern::Value(bytes) => is_equal(value, bytes),
        Pattern::Digest(number) => digest_of(value) == number,
    });
    is_equal == condition.equal
}

/// The same for a value in one piece.
pub fn holds_of(condition: &Comparison<'_>, value: Option<&[u8]>) -> bool {
    let is_equal = value.is_some_and(|value| match condition.with {
        Pattern::Value(bytes) => value == bytes,
        Pattern::Digest(number) => xxh3_64(value) == number,
    });
    is_equal == condition.equal
}

fn is_equal(value: &Content, mut bytes: &[u8]) -> bool {
    value.len() == bytes.len()
        && value.pieces(0..value.len()).all(|piece| {
            let (front, behind) = bytes.split_at(piece.len());
            bytes = behind;
            front == piece
        })
}

/// The digest of a value: XXH3 of 64 bits, without a seed, as Redis has it.
fn digest_of(value: &Content) -> u64 {
    let mut hash = Xxh3Default::new();
    value
        .pieces(0..value.len())
        .for_each(|piece| hash.update(piece));
    hash.digest()
}

/// DIGEST.
pub fn digest(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, key: &[u8]) {
    let found = read(cx, key);
    count_get(cx, key, found.as_ref());
    let mut writer = phase.writer(turn);
    match found {
        Some(found) => writer.bulk(format!("{:016x}", digest_of(&found.value)).as_bytes()),
        None => writer.null(),
    }
}

/// DELIFEQ, DELEX: true if the key was there and is removed.
pub fn remove(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    when: Option<Comparison<'_>>,
) -> Result<bool, Error<'static>> {
    let Some(when) = when else {
        let reply = ask(cx, key, Op::Remove(Removal::default()), Kind::Delete);
        return Ok(reply == Reply::Removed);
    };
    let taken = take_if(cx, key, |found| holds(&when, Some(&found.value)))?;
    cx.counters.count_delete(taken.is_some());
    Ok(taken.is_some())
}
