//! Takes the bytes of a long value as they arrive, and stores it when its whole request has.

use std::borrow::Cow;

use nuthatch_commands::answers::resp::{STORE, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::partial::PartialValue;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_engine::{Condition, Expiry, Reply, Store, StoreMode};
use nuthatch_resp::{
    ChannelCommand, Command, Element, Error, Lifetime, Many, Parsed, ServerCommand, Set, SetAnswer,
    StoreCondition, ValueCommand, element, parse,
};

use crate::phase::{Phase, State};
use crate::reader::RequestReader;
use crate::spot::{Found, count_refused};
use crate::upload::{Target, Upload};
use crate::{answered, channels, compare, dump, refusal, scripts, set, spot, values};

/// Passes on the bytes that have arrived, and stores when all have.
pub fn go_on(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'_>,
) -> Flow {
    let State::Upload(upload) = &mut phase.state else {
        return Flow::Next;
    };
    let here = reader.left();
    let of_value = here.len().min(upload.missing());
    if upload.write(&here[..of_value]).is_err() {
        let rest = upload.rest.behind(upload.missing());
        phase.writer(turn).error(&Error::OUT_OF_MEMORY);
        phase.state = State::Drop(rest);
        return Flow::Next;
    }
    reader.used += of_value;
    if upload.missing() > 0 {
        return Flow::Starved;
    }
    let behind = reader.left();
    let passed = match upload.rest.pass(behind) {
        Ok(passed) => passed,
        Err(error) => {
            phase.writer(turn).error(&error);
            turn.closing = true;
            return Flow::Next;
        }
    };
    reader.used += passed;
    upload.passed += passed;
    if upload.rest.is_too_long(upload.passed) {
        let rest = upload.rest;
        phase.writer(turn).error(&Error::ARGUMENTS_TOO_LONG);
        phase.state = State::Drop(rest);
        return Flow::Next;
    }
    upload.emptied.extend_from_slice(&behind[..passed]);
    if !upload.rest.is_over() {
        return Flow::Starved;
    }
    if let State::Upload(upload) = std::mem::take(&mut phase.state) {
        finish(cx, turn, phase, *upload);
        cx.charge(turn);
    }
    Flow::Next
}

/// The whole request has arrived. The batch has no request of this connection: the value began behind a barrier, and no
/// request was parsed since.
fn finish(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, upload: Upload) {
    let Upload {
        target,
        emptied,
        progress,
        line,
        ..
    } = upload;
    if let Some(mut progress) = progress {
        if let (Target::Item(value), Element::Item { key, .. }) =
            (target, element(Many::Mset, &emptied, &cx.limits))
        {
            let stored = commit(cx, key, value, &Store::set(&[]));
            progress.has_stored(stored.map(|_| ()));
        }
        phase.state = State::Many(progress);
        return;
    }
    let command = match parse(&emptied, &cx.limits) {
        Parsed::Command { command, .. } => command,
        // Its options contradict each other.
        Parsed::Refused(refusal) => {
            refusal::refuse(cx, turn, phase, &refusal);
            return;
        }
        other => {
            debug_assert!(false, "a whole request is {other:?}");
            return;
        }
    };
    match (command, target) {
        (
            Command::Value(ValueCommand::SetRange { key, offset, .. }),
            Target::Buffer { bytes, .. },
        ) => {
            values::set_range(cx, turn, phase, key, offset, Cow::Owned(bytes));
        }
        (Command::Value(ValueCommand::Eval(eval)), Target::Buffer { bytes, .. }) => {
            let place = eval.arguments.position(line);
            let long = place.map(|place| (place, &bytes[..]));
            scripts::eval(cx, turn, phase, &eval, long);
        }
        (Command::Value(ValueCommand::Restore(restore)), Target::Buffer { bytes, .. }) => {
            let outcome = dump::restore(cx, &restore, &bytes);
            answered::status(turn, phase, outcome);
        }
        (
            Command::Server(ServerCommand::Channel(ChannelCommand::Publish(message))),
            Target::Buffer { bytes, .. },
        ) => channels::publish(cx, turn, phase, &message, &bytes),
        (Command::Value(ValueCommand::Append { key, .. }), Target::Item(value)) => {
            let store = Store {
                mode: StoreMode::Append,
                vivify: Some(Expiry::Never),
                ..Store::set(&[])
            };
            match commit(cx, key, value, &store) {
                Ok(Reply::Stored(item)) => phase.writer(turn).integer(item.value_len as i64),
                Ok(_) => phase.writer(turn).error(&Error::BUSY),
                Err(error) => phase.writer(turn).error(&error),
            }
        }
        (Command::Value(ValueCommand::Set(set)), Target::Item(value)) => {
            store(cx, turn, phase, &set, value);
        }
        (other, _) => debug_assert!(false, "{other:?} has no value to be announced"),
    }
}

/// Stores a value that has arrived. Not if its database was swapped or flushed meanwhile: its item would go to another one.
fn commit(
    cx: &mut Context<'_, '_>,
    key: &[u8],
    value: PartialValue,
    store: &Store<'_>,
) -> Result<Reply, Error<'static>> {
    if value.namespace() != cx.namespace {
        return Err(Error::DATABASE_CHANGED);
    }
    let reply = cx.commit(key, value, store, STORE);
    match reply {
        reply if reply.is_failure() => Err(failure(&reply)),
        _ => Ok(reply),
    }
}

/// Stores a SET with its options. There is only one reservation, so there is no retry: if the answer depends on the old
/// value, a change by another client meanwhile is an error.
fn store(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    set: &Set<'_>,
    value: PartialValue,
) {
    let old = match (set.answer, set.when) {
        (SetAnswer::Old, _) | (_, StoreCondition::Compared(_)) => spot::read(cx, set.key),
        _ => None,
    };
    let value_len = value.value_len();
    let refuse = |cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase, old| {
        count_refused(cx, set.key, value_len);
        answer(turn, phase, set, old, false);
    };
    let Some(when) = decided(set.when, old.as_ref()) else {
        return refuse(cx, turn, phase, old);
    };
    let looked = match (set.lifetime, &old) {
        (Lifetime::Keep, None) => match spot::look_surely(cx, set.key) {
            Ok(item) => item,
            Err(error) => return phase.writer(turn).error(&error),
        },
        (_, old) => old.as_ref().map(|found| found.item),
    };
    // What is told or kept of an item was seen: one that was not seen is not replaced.
    let tells_old = set.answer == SetAnswer::Old;
    let relies = tells_old || set.lifetime == Lifetime::Keep;
    let when = match (when, looked) {
        // It came between the two looks.
        (_, Some(_)) if tells_old && old.is_none() => {
            return phase.writer(turn).error(&Error::BUSY);
        }
        (StoreCondition::Absent, Some(_)) => return refuse(cx, turn, phase, old),
        (StoreCondition::Present, None) if relies => return refuse(cx, turn, phase, old),
        (StoreCondition::Always, None) if relies => StoreCondition::Absent,
        (when, _) => when,
    };
    let simple = Set {
        when,
        lifetime: match set.lifetime {
            Lifetime::Keep => Lifetime::Forever,
            other => other,
        },
        answer: SetAnswer::Status,
        ..*set
    };
    let Some((mut store, _)) = set::store(cx, &simple) else {
        return;
    };
    if let (Lifetime::Keep, Some(item)) = (set.lifetime, looked) {
        store.expiry = item.expiry;
    }
    if let (Some(item), StoreCondition::Always | StoreCondition::Present) = (looked, when) {
        store.condition = Condition::Cas(item.cas);
    }
    match cx.named(set::naming(set.lifetime), |cx| {
        commit(cx, set.key, value, &store)
    }) {
        Ok(Reply::Stored(_)) => answer(turn, phase, set, old, true),
        // Null, instead of the old value, would say that there was none.
        Ok(Reply::NotStored) if when == set.when && !tells_old => {
            answer(turn, phase, set, old, false);
        }
        Ok(_) => phase.writer(turn).error(&Error::BUSY),
        Err(error) => phase.writer(turn).error(&error),
    }
}

/// The condition that is left when the value that is there was looked at. `None` if it must not be replaced.
fn decided<'a>(when: StoreCondition<'a>, old: Option<&Found>) -> Option<StoreCondition<'a>> {
    let StoreCondition::Compared(comparison) = when else {
        return Some(when);
    };
    let state = match old {
        Some(_) => StoreCondition::Present,
        None => StoreCondition::Absent,
    };
    compare::holds(&comparison, old.map(|found| &found.value)).then_some(state)
}

/// Answers a SET that stored, or did not.
fn answer(turn: &mut Turn, phase: &Phase, set: &Set<'_>, old: Option<Found>, stored: bool) {
    let mut writer = phase.writer(turn);
    match (set.answer, old) {
        (SetAnswer::Old, Some(old)) => old.value.answer(turn, phase.version, |len| 0..len),
        (SetAnswer::Old, None) => writer.null(),
        (SetAnswer::Number, _) => writer.flag(stored),
        (SetAnswer::Status, _) if stored => writer.ok(),
        (SetAnswer::Status, _) => writer.null(),
    }
}
