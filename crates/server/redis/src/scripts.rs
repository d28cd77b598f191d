//! EVAL, EVALSHA and SCRIPT. A script decides about one key: it runs on the state of the key's item, and the item becomes
//! what the script made of it, unless another client was faster. Then the script runs again.

use std::sync::Arc;

use bumpalo::Bump;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_resp::{Error, Eval, ScriptName, Scripts, Version, Writer};
use nuthatch_script::{Failure, Name, Script, Value, integer};
use nuthatch_state::scripting::Stopped;

use crate::lua;
use crate::named::Named;
use crate::phase::Phase;
use crate::slot::Slot;
use crate::spot::{ATTEMPTS, Content, read};

/// EVAL and EVALSHA. `long` is the argument that arrived piece by piece, if there is one, and its place.
pub fn eval(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    eval: &Eval<'_>,
    long: Option<(usize, &[u8])>,
) {
    let script = Named::of(cx, eval.script);
    let done = match () {
        () if eval.read_only && !cx.shared.config.lua => Err(Error::NotHere(match eval.script {
            ScriptName::Text(_) => "eval_ro",
            ScriptName::Sha1(_) => "evalsha_ro",
        })),
        () if eval.read_only || is_of_lua(cx, &script) => Err(Error::SCRIPT_UNKNOWN),
        () => carry_out(cx, turn, phase.version, eval, &script, long),
    };
    let done = match done {
        Err(Error::SCRIPT_UNKNOWN | Error::SCRIPT_TOO_LONG | Error::NO_SCRIPT)
            if cx.shared.config.lua =>
        {
            lua::eval(cx, turn, phase, eval, &script, long)
        }
        done => done,
    };
    if let Err(error) = done {
        phase.writer(turn).error(&error);
    }
}

/// True if Lua is known to have run a text, which need not be read as another script then.
fn is_of_lua(cx: &Context<'_, '_>, script: &Named<'_>) -> bool {
    cx.shared.config.lua
        && script.name.is_some_and(|name| {
            cx.shared.scripting.library.has(name) && !cx.shared.scripts.has(name)
        })
}

/// Errors: nothing has changed, and nothing was answered.
fn carry_out(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    version: Version,
    eval: &Eval<'_>,
    script: &Named<'_>,
    long: Option<(usize, &[u8])>,
) -> Result<(), Error<'static>> {
    let script = find(cx, script)?;
    let key = eval.key.ok_or(Error::SCRIPT_UNKNOWN)?;
    let mut arguments: Vec<&[u8]> = eval.arguments.collect();
    if let Some((at, bytes)) = long {
        arguments[at] = bytes;
    }
    for _ in 0..ATTEMPTS {
        let found = read(cx, key).map(|found| (found.item, found.value));
        let (item, content) = found.unzip();
        let (arena, mut copy) = (Bump::new(), Vec::new());
        let work = &mut cx.work;
        let whole = content.as_ref().map(|it| it.whole(&mut copy, work));
        let value = whole.transpose()?;
        let (present, now) = (cx.present(), cx.now);
        let clock = &cx.shared.clock;
        let mut slot = Slot::new(item.zip(value), &arena, present, now, clock, cx.limits);
        let ran = script.run(key, &arguments, &arena, &mut slot);
        cx.work.add(Work::of_commands(ran.steps));
        let answer = answer_of(ran.value)?;
        // What has changed is answered. So the answer, for which there may be no memory, comes first.
        let mark = turn.output.mark();
        let mut answers = Answers {
            turn,
            version,
            in_engine: value.filter(|_| matches!(content, Some(Content::Pinned(_)))),
            hole: None,
        };
        let done = answers.answer(&answer).and_then(|()| slot.commit(cx, key));
        let hole = answers.hole;
        if done != Ok(true) {
            turn.output.cut(mark);
        }
        if done? {
            if let (Some(at), Some(Content::Pinned(value))) = (hole, content) {
                turn.output.pin_at(at, value);
            }
            return Ok(());
        }
    }
    Err(Error::BUSY)
}

/// What a script answers: its value, or the error that it ends with.
type Answer<'a> = Result<Value<'a>, Vec<u8>>;

/// Errors: nothing of the script may take effect.
fn answer_of(value: Result<Value<'_>, Failure>) -> Result<Answer<'_>, Error<'static>> {
    match value {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Error(text)) => Ok(Err(text)),
        Err(Failure::Unknown) => Err(Error::SCRIPT_UNKNOWN),
        Err(Failure::TooLong) => Err(Error::SCRIPT_TOO_LONG),
        Err(Failure::OutOfMemory) => Err(Error::OUT_OF_MEMORY),
    }
}

/// Writes answers in Redis' form.
struct Answers<'s> {
    turn: &'s mut Turn,
    version: Version,
    /// The bytes of a value that stays in the engine, until they are answered.
    in_engine: Option<&'s [u8]>,
    /// Where in the output they belong.
    hole: Option<usize>,
}

impl Answers<'_> {
    fn answer(&mut self, answer: &Answer<'_>) -> Result<(), Error<'static>> {
        match answer {
            Ok(value) => self.value(value),
            Err(text) => self.error(text),
        }
    }

    /// Errors: there is no memory for the answer.
    fn value(&mut self, value: &Value<'_>) -> Result<(), Error<'static>> {
        self.make_room(0)?;
        let mut writer = Writer::new(self.turn.output.text(), self.version);
        match value {
            Value::Nil | Value::Bool(false) => writer.null(),
            Value::Bool(true) => writer.integer(1),
            Value::Number(number) => writer.integer(integer(*number)),
            Value::Text(text) => self.text(text)?,
            Value::Status(text) => writer.status_of(text),
            Value::Error(text) => self.error(text)?,
            Value::List(values) => {
                // A list ends before its first nil.
                let values = values
                    .split(|value| *value == Value::Nil)
                    .next()
                    .unwrap_or_default();
                writer.array(values.len());
                for value in values {
                    self.value(value)?;
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Error<'static>> {
        let is_there = |it: &[u8]| std::ptr::eq(it, text);
        if self.in_engine.take_if(|it| is_there(it)).is_some() {
            Writer::new(self.turn.output.text(), self.version).bulk_header(text.len());
            self.hole = Some(self.turn.output.end());
            self.turn.output.text().extend_from_slice(b"\r\n");
            return Ok(());
        }
        self.make_room(text.len())?;
        Writer::new(self.turn.output.text(), self.version).bulk(text);
        Ok(())
    }

    fn error(&mut self, text: &[u8]) -> Result<(), Error<'static>> {
        self.make_room(text.len())?;
        Writer::new(self.turn.output.text(), self.version).error(&Error::Script(text));
        Ok(())
    }

    fn make_room(&mut self, len: usize) -> Result<(), Error<'static>> {
        let has_room = self.turn.makes_room(len);
        has_room.then_some(()).ok_or(Error::OUT_OF_MEMORY)
    }
}

/// The script that a request names. A text is kept.
fn find(cx: &Context<'_, '_>, script: &Named<'_>) -> Result<Arc<Script>, Error<'static>> {
    let scripts = &cx.shared.scripts;
    match (script.name, script.text) {
        (Some(name), Some(text)) => scripts.load(name, text).ok_or(Error::SCRIPT_UNKNOWN),
        (None, Some(_)) => Err(Error::SCRIPT_UNKNOWN),
        (Some(name), None) => scripts.find(name).ok_or(Error::NO_SCRIPT),
        (None, None) => Err(Error::NO_SCRIPT),
    }
}

/// SCRIPT LOAD.
fn load(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, text: &[u8]) {
    let script = Named::by_text(cx, text);
    let has_lua = cx.shared.config.lua;
    match (find(cx, &script), script.name) {
        // Whether it can be carried out depends on the keys of a call: if not, Lua has to know it.
        (Ok(_), Some(name)) => match has_lua && !lua::keep(cx, name, text) {
            true => phase.writer(turn).error(&Error::SCRIPTS_TOO_MANY),
            false => phase.writer(turn).bulk(name.to_string().as_bytes()),
        },
        (Err(_), Some(name)) if has_lua => lua::load(cx, turn, phase, name, text),
        _ => phase.writer(turn).error(&Error::SCRIPT_UNKNOWN),
    }
}

/// SCRIPT.
pub fn command(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, scripts: Scripts<'_>) {
    let known = &cx.shared.scripting.library;
    let mut writer = phase.writer(turn);
    match scripts {
        Scripts::Exists(names) => {
            cx.work.add(Work::of_commands(names.len()));
            writer.array(names.len());
            for name in names {
                let name = Name::read(name);
                writer
                    .flag(name.is_some_and(|name| cx.shared.scripts.has(name) || known.has(name)));
            }
        }
        Scripts::Load(text) => load(cx, turn, phase, text),
        Scripts::Flush => {
            cx.shared.scripts.clear();
            known.clear();
            writer.ok();
        }
        Scripts::Kill => match cx.shared.scripting.running.stop() {
            Stopped::Yes => writer.ok(),
            Stopped::NotRunning => writer.error(&Error::NOT_BUSY),
            Stopped::HasWritten => writer.error(&Error::UNKILLABLE),
        },
    }
}
