//! EVAL, EVALSHA and SCRIPT. A script decides about one key: it runs on a copy of the key's item, and the item becomes
//! what the script made of it, unless another client was faster. Then the script runs again.

use std::sync::Arc;

use nuthatch_protocol::resp::{Error, Eval, ScriptName, Scripts, Writer};
use nuthatch_script::{Failure, Script, Value};

use super::Phase;
use super::slot::Slot;
use super::spot::{ATTEMPTS, read};
use crate::slice::Slice;
use crate::stage::Stage;

/// EVAL and EVALSHA. `long` is the argument that arrived piece by piece, if there is one, and its place.
pub fn eval(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &Phase,
    eval: &Eval<'_>,
    long: Option<(usize, &[u8])>,
) {
    let outcome = carried_out(stage, eval, long);
    let mut writer = phase.writer(slice);
    match outcome {
        Ok(Ok(value)) => answer(&mut writer, &value),
        Ok(Err(text)) => writer.error(&Error::Script(&text)),
        Err(error) => writer.error(&error),
    }
}

/// What a script answers: its value, or the error that it ends with.
type Answer = Result<Value, Vec<u8>>;

fn carried_out(
    stage: &mut Stage<'_, '_>,
    eval: &Eval<'_>,
    long: Option<(usize, &[u8])>,
) -> Result<Answer, Error<'static>> {
    let script = script(stage, eval.script)?;
    let key = eval.key.ok_or(Error::SCRIPT_UNKNOWN)?;
    let mut arguments: Vec<&[u8]> = eval.arguments.collect();
    if let Some((at, bytes)) = long {
        arguments[at] = bytes;
    }
    for _ in 0..ATTEMPTS {
        let found = read(stage, key);
        let (present, now) = (stage.present(), stage.now);
        let mut slot = Slot::new(found, present, now, &stage.shared.clock, stage.limits)?;
        let answer = match script.run(key, &arguments, &mut slot) {
            Ok(value) => Ok(value),
            Err(Failure::Error(text)) => Err(text),
            Err(Failure::Unknown) => return Err(Error::SCRIPT_UNKNOWN),
        };
        if slot.commit(stage, key)? {
            return Ok(answer);
        }
    }
    Err(Error::BUSY)
}

/// The script that a request names.
fn script(stage: &Stage<'_, '_>, name: ScriptName<'_>) -> Result<Arc<Script>, Error<'static>> {
    let mut library = stage.shared.scripts.lock();
    match name {
        ScriptName::Text(text) => match library.load(text) {
            Some((_, script)) => Ok(script),
            None => Err(Error::SCRIPT_UNKNOWN),
        },
        ScriptName::Sha1(name) => library.find(name).ok_or(Error::NO_SCRIPT),
    }
}

/// Writes a script's value in Redis' form.
fn answer(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Nil | Value::Bool(false) => writer.null(),
        Value::Bool(true) => writer.integer(1),
        // Without its fraction.
        Value::Number(number) => writer.integer(*number as i64),
        Value::Text(text) => writer.bulk(text),
        Value::Status(text) => {
            let text = String::from_utf8_lossy(text).replace(['\r', '\n'], " ");
            writer.status(&text);
        }
        Value::Error(text) => writer.error(&Error::Script(text)),
        Value::List(values) => {
            // A list ends before its first nil.
            let values = values
                .split(|value| *value == Value::Nil)
                .next()
                .unwrap_or_default();
            writer.array(values.len());
            for value in values {
                answer(writer, value);
            }
        }
    }
}

/// SCRIPT.
pub fn command(stage: &Stage<'_, '_>, slice: &mut Slice, phase: &Phase, scripts: Scripts<'_>) {
    let mut library = stage.shared.scripts.lock();
    let mut writer = phase.writer(slice);
    match scripts {
        Scripts::Exist(names) => {
            writer.array(names.len());
            for name in names {
                writer.flag(library.has(name));
            }
        }
        Scripts::Load(text) => match library.load(text) {
            Some((name, _)) => writer.bulk(name.as_bytes()),
            None => writer.error(&Error::SCRIPT_UNKNOWN),
        },
        Scripts::Flush => {
            library.clear();
            writer.ok();
        }
    }
}
