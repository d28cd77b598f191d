//! Takes the bytes of a long value as they arrive, and stores it when its whole request has.

use std::borrow::Cow;

use nuthatch_engine::{Condition, Expiry, Reply, Store, StoreMode};
use nuthatch_protocol::resp::{
    Command, Element, Error, Lifetime, Many, Parsed, Set, SetAnswer, StoreCondition, ValueCommand,
    element, parse,
};

use super::phase::{Phase, State};
use super::reader::RequestReader;
use super::upload::{Target, Upload};
use super::{refusal, scripts, set, spot, values};
use crate::answers::resp::{STORE, failure};
use crate::partial::PartialValue;
use crate::slice::{Flow, Slice};
use crate::stage::Stage;

/// Passes on the bytes that have arrived, and stores when all have.
pub fn go_on(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
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
        phase.writer(slice).error(&Error::OUT_OF_MEMORY);
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
            phase.writer(slice).error(&error);
            slice.closing = true;
            return Flow::Next;
        }
    };
    reader.used += passed;
    upload.passed += passed;
    if upload.rest.is_too_long(upload.passed) {
        let rest = upload.rest;
        phase.writer(slice).error(&Error::ARGUMENTS_TOO_LONG);
        phase.state = State::Drop(rest);
        return Flow::Next;
    }
    upload.emptied.extend_from_slice(&behind[..passed]);
    if !upload.rest.is_over() {
        return Flow::Starved;
    }
    if let State::Upload(upload) = std::mem::take(&mut phase.state) {
        finish(stage, slice, phase, *upload);
        stage.charge(slice);
    }
    Flow::Next
}

/// The whole request has arrived. The batch has no request of this connection: the value began behind a barrier, and no
/// request was parsed since.
fn finish(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase, upload: Upload) {
    let Upload {
        target,
        emptied,
        run,
        line,
        ..
    } = upload;
    if let Some(mut run) = run {
        if let (Target::Item(value), Element::Item { key, .. }) =
            (target, element(Many::Mset, &emptied, &stage.limits))
        {
            let stored = commit(stage, key, value, &Store::set(&[]));
            run.has_stored(stored.map(|_| ()));
        }
        phase.state = State::Many(run);
        return;
    }
    let command = match parse(&emptied, &stage.limits) {
        Parsed::Command { command, .. } => command,
        // Its options contradict each other.
        Parsed::Refused(refusal) => {
            refusal::refuse(stage, slice, phase, &refusal);
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
            values::set_range(stage, slice, phase, key, offset, Cow::Owned(bytes));
        }
        (Command::Value(ValueCommand::Eval(eval)), Target::Buffer { bytes, .. }) => {
            let place = eval.arguments.position(line);
            let long = place.map(|place| (place, &bytes[..]));
            scripts::eval(stage, slice, phase.version, &eval, long);
        }
        (Command::Value(ValueCommand::Append { key, .. }), Target::Item(value)) => {
            let store = Store {
                mode: StoreMode::Append,
                vivify: Some(Expiry::Never),
                ..Store::set(&[])
            };
            match commit(stage, key, value, &store) {
                Ok(Reply::Stored(item)) => phase.writer(slice).integer(item.value_len as i64),
                Ok(_) => phase.writer(slice).error(&Error::BUSY),
                Err(error) => phase.writer(slice).error(&error),
            }
        }
        (Command::Value(ValueCommand::Set(set)), Target::Item(value)) => {
            store(stage, slice, phase, &set, value);
        }
        (other, _) => debug_assert!(false, "{other:?} has no value to be announced"),
    }
}

/// Stores a value that has arrived.
fn commit(
    stage: &mut Stage<'_, '_>,
    key: &[u8],
    value: PartialValue,
    store: &Store<'_>,
) -> Result<Reply, Error<'static>> {
    let reply = stage.commit(key, value, store, STORE);
    match reply {
        Reply::TooLarge | Reply::OutOfMemory => Err(failure(&reply)),
        _ => Ok(reply),
    }
}

/// Stores a SET with its options. There is only one reservation, so there is no retry: if the answer depends on the old
/// value, a change by another client meanwhile is an error.
fn store(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    set: &Set<'_>,
    value: PartialValue,
) {
    let old = match set.answer {
        SetAnswer::Old => spot::read(stage, set.key),
        _ => None,
    };
    let simple = Set {
        lifetime: match set.lifetime {
            Lifetime::Keep => Lifetime::Forever,
            other => other,
        },
        answer: SetAnswer::Status,
        ..*set
    };
    let Some((mut store, _)) = set::store(stage, &simple) else {
        return;
    };
    let looked = match (set.lifetime, &old) {
        (Lifetime::Keep, None) => spot::look(stage, set.key),
        (_, old) => old.as_ref().map(|found| found.item),
    };
    if let (Lifetime::Keep, Some(item)) = (set.lifetime, looked) {
        store.expiry = item.expiry;
    }
    if let (Some(item), StoreCondition::Always | StoreCondition::Present) = (looked, set.when) {
        store.condition = Condition::Cas(item.cas);
    }
    let outcome = commit(stage, set.key, value, &store);
    let mut writer = phase.writer(slice);
    let stored = match outcome {
        Ok(Reply::Stored(_)) => true,
        Ok(Reply::NotStored) => false,
        Ok(_) => return writer.error(&Error::BUSY),
        Err(error) => return writer.error(&error),
    };
    match (set.answer, old) {
        (SetAnswer::Old, Some(old)) => old.value.answer(slice, phase.version, |len| 0..len),
        (SetAnswer::Old, None) => writer.null(),
        (SetAnswer::Number, _) => writer.flag(stored),
        (SetAnswer::Status, _) if stored => writer.ok(),
        (SetAnswer::Status, _) => writer.null(),
    }
}
