//! EVAL and its like in Lua (`--lua`), for scripts that `scripts` does not know. A script has the engine to itself, as a
//! transaction with watched keys has, and its worker serves nobody else meanwhile.

use std::cell::Cell;
use std::io::Write;
use std::sync::Arc;

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::batch::BatchBuffers;
use nuthatch_commands::context::Context;
use nuthatch_commands::output::Output;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_engine::AnyValue;
use nuthatch_lua::{Allowance, Answer, Failure, Host, Interpreter, Limits, Source, Value};
use nuthatch_resp::{Error, Eval, Version, Writer, in_script};
use nuthatch_script::Name;

use crate::busy;
use crate::lua_call::LuaCall;
use crate::named::Named;
use crate::phase::{Phase, State};
use crate::reply;

thread_local! {
    /// The worker's state of Lua, made at its first script, when none runs.
    static LUA: Cell<Option<Box<Interpreter>>> = const { Cell::new(None) };
}

/// So many steps take as long as a command about one key.
const STEPS_OF_COMMAND: u64 = 100;

/// The version that scripts ask for: Redis' with the newest commands that this server has.
const VERSION: (&str, u32) = ("8.0.0", 0x0008_0000);

/// Begins a script, which runs in the next step. Errors: nothing was answered.
pub fn eval(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    eval: &Eval<'_>,
    script: &Named<'_>,
    long: Option<(usize, &[u8])>,
) -> Result<(), Error<'static>> {
    let mut lua = interpreter(cx)?;
    let source = source(cx, &mut lua, script);
    LUA.set(Some(lua));
    let source = match source {
        Ok(source) => source,
        Err(failure) => {
            phase.writer(turn).error(&error_of(&failure));
            return Ok(());
        }
    };
    let words = eval.key.into_iter().chain(eval.arguments);
    let mut words: Vec<Vec<u8>> = words.map(<[u8]>::to_vec).collect();
    if let Some((at, bytes)) = long {
        words[at + usize::from(eval.key.is_some())] = bytes.to_vec();
    }
    phase.state = State::Lua(Box::new(LuaCall {
        read_only: eval.read_only || source.flags.no_writes,
        keys: eval.keys.min(words.len()),
        source,
        words,
    }));
    Ok(())
}

/// Executes a request of a script. Errors: the answer is too long, or was not waited for.
pub type CarryOut = fn(
    &mut Context<'_, '_>,
    &mut Call,
    &[u8],
    Allowance,
) -> Result<Output<AnyValue>, Error<'static>>;

/// What the commands of a script share.
pub struct Call {
    /// The state of the script's own connection, so to speak: the database that it has selected.
    pub phase: Phase,
    pub buffers: BatchBuffers,
    pub limits: nuthatch_state::buffers::TurnLimits,
    /// Steps that the command took.
    pub steps: u64,
}

impl Call {
    /// Notes what a command took so far. Errors: it may not go on.
    pub fn goes_on(
        &mut self,
        cx: &Context<'_, '_>,
        turn: &Turn,
        allowed: Allowance,
    ) -> Result<(), Error<'static>> {
        self.steps = u64::from(u32::MAX - turn.commands_left) * STEPS_OF_COMMAND;
        if turn.output.len() > allowed.bytes {
            return Err(Error::SCRIPT_ANSWER);
        }
        // Only walks are long, and they change nothing.
        if let State::Walk(_) = self.phase.state {
            if self.steps > allowed.steps {
                return Err(Error::SCRIPT_STEPS);
            }
            let running = &cx.shared.scripting.running;
            if running.is_stopped() {
                return Err(Error::SCRIPT_KILLED);
            }
            if running.is_closed() {
                return Err(Error::SCRIPT_CLOSED);
            }
        }
        Ok(())
    }
}

/// Runs a script.
pub fn run(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &Phase,
    call: &LuaCall,
    carry_out: CarryOut,
) -> Result<(), Error<'static>> {
    let mut lua = interpreter(cx)?;
    let words: Vec<&[u8]> = call.words.iter().map(Vec::as_slice).collect();
    let (keys, arguments) = words.split_at(call.keys);
    let isolation = match busy::isolate(cx) {
        Ok(isolation) => isolation,
        Err(error) => {
            LUA.set(Some(lua));
            return Err(error);
        }
    };
    let running = cx.shared.scripting.running.begin();
    let mut server = Server {
        read_only: call.read_only,
        carry_out,
        call: Call {
            phase: Phase::default(),
            buffers: BatchBuffers::default(),
            limits: turn.limits,
            steps: 0,
        },
        cx: &mut *cx,
    };
    server.call.phase.begin_script(phase);
    let ran = lua.run(&call.source, keys, arguments, &mut server);
    drop(running);
    drop(isolation);
    let steps = (ran.steps / STEPS_OF_COMMAND) as usize;
    cx.work.add(Work::of_commands(steps));
    answer(turn, phase.version, lua, ran.value)
}

/// SCRIPT LOAD of a script that is Lua's. Errors: Lua does not take it, or there is no room.
pub fn load(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase, name: Name, text: &[u8]) {
    let loaded = interpreter(cx).map(|mut lua| {
        let made = read(&mut lua, name, text);
        LUA.set(Some(lua));
        made
    });
    let mut writer = phase.writer(turn);
    match loaded {
        Err(error) => writer.error(&error),
        Ok(Err(failure)) => writer.error(&error_of(&failure)),
        Ok(Ok(source)) if !cx.shared.scripting.library.keep(&source, true) => {
            writer.error(&Error::SCRIPTS_TOO_MANY);
        }
        Ok(Ok(source)) => writer.bulk(source.name.to_string().as_bytes()),
    }
}

/// Keeps a script that needs no Lua, but may need it for other keys. False: there is no room.
pub fn keep(cx: &Context<'_, '_>, name: Name, text: &[u8]) -> bool {
    let source = Source::named(name, text).map(Arc::new);
    source.is_ok_and(|source| cx.shared.scripting.library.keep(&source, true))
}

/// The worker's state. If the script panics it is dropped.
fn interpreter(cx: &Context<'_, '_>) -> Result<Box<Interpreter>, Error<'static>> {
    let live = cx.shared.live.load();
    let limits = Limits {
        memory: (live.lua_memory.get() as usize) << 20,
        steps: u64::from(live.lua_steps.get()) * 1_000_000,
    };
    if let Some(lua) = LUA.take().filter(|lua| lua.limits() == limits) {
        return Ok(lua);
    }
    let course = cx.shared.scripting.running.course();
    let made = Interpreter::new(limits, VERSION, course);
    made.map(Box::new).map_err(|_| Error::OUT_OF_MEMORY)
}

/// The script that a request names.
fn source(
    cx: &Context<'_, '_>,
    lua: &mut Interpreter,
    script: &Named<'_>,
) -> Result<Arc<Source>, Failure> {
    let library = &cx.shared.scripting.library;
    if let Some(source) = script.name.and_then(|name| library.find(name)) {
        return Ok(source);
    }
    let (Some(name), Some(text)) = (script.name, script.text) else {
        return Err(failure_of(&Error::NO_SCRIPT));
    };
    let source = read(lua, name, text)?;
    // Without room its client sends the text again.
    library.keep(&source, false);
    Ok(source)
}

/// Reads a text, which Lua takes as a script.
fn read(lua: &mut Interpreter, name: Name, text: &[u8]) -> Result<Arc<Source>, Failure> {
    let source = Source::named(name, text).map_err(|words| Failure::Error(words.into_bytes()))?;
    lua.check(&source)?;
    Ok(Arc::new(source))
}

fn failure_of(error: &Error<'_>) -> Failure {
    Failure::Error(words_of(error))
}

/// The words of an error.
fn words_of(error: &Error<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    Writer::new(&mut text, Version::Resp2).error(error);
    let words = text.strip_prefix(b"-").unwrap_or(&text);
    words.trim_ascii_end().to_vec()
}

fn error_of(failure: &Failure) -> Error<'_> {
    match failure {
        Failure::Error(words) => Error::Script(words),
        Failure::TooLong => Error::SCRIPT_STEPS,
        Failure::Stopped => Error::SCRIPT_KILLED,
        Failure::Closed => Error::SCRIPT_CLOSED,
        Failure::OutOfMemory => Error::SCRIPT_MEMORY,
    }
}

/// Answers what a script has returned, and keeps the state for the next script.
fn answer(
    turn: &mut Turn,
    version: Version,
    lua: Box<Interpreter>,
    value: Result<Value, Failure>,
) -> Result<(), Error<'static>> {
    if !lua.is_spent() {
        LUA.set(Some(lua));
    }
    match value {
        Err(failure) => Writer::new(turn.output.text(), version).error(&error_of(&failure)),
        Ok(value) => {
            let has_room = turn.makes_room(reply::len(&value));
            has_room.then_some(()).ok_or(Error::OUT_OF_MEMORY)?;
            reply::write(&mut Writer::new(turn.output.text(), version), &value);
        }
    }
    Ok(())
}

/// The server, as a script sees it.
struct Server<'s, 'w, 'a> {
    cx: &'s mut Context<'w, 'a>,
    call: Call,
    carry_out: CarryOut,
    read_only: bool,
}

impl Host for Server<'_, '_, '_> {
    fn call(&mut self, words: &[&[u8]], resp: u8, allowed: Allowance) -> Answer {
        self.call.phase.version = match resp {
            3 => Version::Resp3,
            _ => Version::Resp2,
        };
        self.call.steps = 0;
        let bytes = self.answer(words, allowed).unwrap_or_else(|error| {
            let mut answer = Vec::new();
            Writer::new(&mut answer, self.call.phase.version).error(&error);
            answer
        });
        Answer {
            bytes,
            steps: self.call.steps,
        }
    }
}

impl Server<'_, '_, '_> {
    fn answer(&mut self, words: &[&[u8]], allowed: Allowance) -> Result<Vec<u8>, Error<'static>> {
        match in_script(words)? {
            true if self.read_only => return Err(Error::SCRIPT_READS_ONLY),
            true if !self.cx.shared.scripting.running.writes() => return Err(Error::SCRIPT_KILLED),
            _ => {}
        }
        let request = request(words)?;
        bytes_of((self.carry_out)(
            self.cx,
            &mut self.call,
            &request,
            allowed,
        )?)
    }
}

/// A buffer of so many bytes. Errors: there is no memory for it.
fn room(len: usize) -> Result<Vec<u8>, Error<'static>> {
    let mut room = Vec::new();
    let made = spare(|| room.try_reserve_exact(len));
    made.map(|()| room).map_err(|_| Error::OUT_OF_MEMORY)
}

/// A command's words as a request.
fn request(words: &[&[u8]]) -> Result<Vec<u8>, Error<'static>> {
    // The length of a word has 20 digits at most.
    const MARKS: usize = 32;
    let len: usize = words.iter().map(|word| word.len() + MARKS).sum();
    let mut request = room(MARKS + len)?;
    // Memory takes all.
    let _ = write!(request, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(request, "${}\r\n", word.len());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    Ok(request)
}

/// All of an answer.
fn bytes_of(mut output: Output<AnyValue>) -> Result<Vec<u8>, Error<'static>> {
    let mut bytes = room(output.len())?;
    // Memory takes all.
    let _ = output.write_to(&mut bytes, &mut 0);
    Ok(bytes)
}
