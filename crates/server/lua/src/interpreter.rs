//! A state of Lua in which one script runs after the other. Nothing of a script is left for the next.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{
    BorrowedBytes, Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value as LuaValue,
};
use nuthatch_script::{Name, as_argument};

use crate::answer;
use crate::convert::{self, Fault, Room, from_lua};
use crate::course::Course;
use crate::host::{self, Shared, Version};
use crate::library::Source;
use crate::meter::{End, Meter};
use crate::random::Random;
use crate::value::Value;

/// The library that scripts see, in Lua.
const LIBRARY: &str = include_str!("library.lua");

/// Functions that are kept compiled.
const COMPILED_MAX: usize = 500;

/// Steps of a call, beside what its command costs.
const STEPS_OF_CALL: u64 = 100;

/// Lua begins to collect garbage when so many percent of what was live are used, and does so many percent of the usual work
/// at a time: its own numbers suit texts of some bytes, and leave long ones until the memory is full.
const GC_PAUSE: i32 = 150;
const GC_STEPS: i32 = 20_000;

/// Values of an answer.
const VALUES_MAX: usize = 1 << 20;

/// What scripts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory of a state.
    pub memory: usize,
    /// Steps of a script: instructions, and what is as much work.
    pub steps: u64,
}

/// What a command of a script may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes of its answer.
    pub bytes: usize,
    /// Steps that the script has left.
    pub steps: u64,
}

/// What came of a command of a script.
#[derive(Debug)]
pub struct Answer {
    /// Its answer, in the bytes of Redis' protocol.
    pub bytes: Vec<u8>,
    /// Steps that it took, beside those of every command and of every byte of its words and its answer.
    pub steps: u64,
}

/// The server, as a script sees it.
pub trait Host {
    /// Carries out a command, and answers in this version of the protocol. What needs more than it is allowed is answered
    /// with an error, or with the steps that it took.
    fn call(&mut self, words: &[&[u8]], resp: u8, allowed: Allowance) -> Answer;
}

/// Why a script has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is no script, or ended with an error, in the words of an answer.
    Error(Vec<u8>),
    /// Its steps were used up.
    TooLong,
    /// It was stopped.
    Stopped,
    /// The server stops.
    Closed,
    /// There was no memory for it, or for its answer.
    OutOfMemory,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// Its answer.
    pub value: Result<Value, Failure>,
    /// Steps that it took.
    pub steps: u64,
}

/// A state.
pub struct Interpreter {
    lua: Lua,
    limits: Limits,
    shared: Shared,
    /// What scripts find by their names.
    builtins: Table,
    /// The same, as they see it.
    globals: Table,
    /// What the library calls, while a script runs.
    run: Table,
    pcall: Function,
    compiled: HashMap<Name, Function>,
}

impl Interpreter {
    /// A state with these limits. `course` is that of the script that runs.
    pub fn new(limits: Limits, version: Version<'_>, course: Arc<Course>) -> mlua::Result<Self> {
        // A panic is not an error of a script, which it could catch.
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, options)?;
        let shared = Shared {
            meter: Meter::new(course, limits.memory),
            random: Rc::new(Random::default()),
            resp: Rc::new(Cell::new(2)),
        };
        let known = lua.create_table()?;
        let host = host::functions(&lua, &shared, version, &known)?;
        let (base, own) = (lua.globals(), lua.create_table()?);
        for name in ["string", "table", "math"] {
            own.set(name, base.get::<Table>(name)?)?;
        }
        let library = lua.load(LIBRARY).set_name("=library").into_function()?;
        let run = host.get("run")?;
        let (builtins, globals, pcall) =
            library.call::<(Table, Table, Function)>((base, own, host))?;
        known.set(1, &globals)?;
        lua.set_memory_limit(limits.memory)?;
        lua.gc_inc(GC_PAUSE, GC_STEPS, 0);
        let compiled = HashMap::new();
        Ok(Self {
            lua,
            limits,
            shared,
            builtins,
            globals,
            run,
            pcall,
            compiled,
        })
    }

    /// The limits that it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Compiles a script, to keep it. Errors: the words of an answer.
    pub fn check(&mut self, source: &Source) -> Result<(), Failure> {
        self.compiled(source).map(|_| ())
    }

    /// Runs a script.
    pub fn run(
        &mut self,
        source: &Source,
        keys: &[&[u8]],
        arguments: &[&[u8]],
        host: &mut dyn Host,
    ) -> Ran {
        let value = self.compiled(source).and_then(|function| {
            let ran = self.carry_out(&function, keys, arguments, host);
            ran.unwrap_or_else(|error| Err(failure(&error)))
        });
        let value = match self.shared.meter.end() {
            Some(End::TooLong) => Err(Failure::TooLong),
            Some(End::Stopped) => Err(Failure::Stopped),
            Some(End::Closed) => Err(Failure::Closed),
            None => value,
        };
        let steps = self.limits.steps - self.shared.meter.left();
        self.clean();
        Ran { value, steps }
    }

    fn compiled(&mut self, source: &Source) -> Result<Function, Failure> {
        self.begin();
        if let Some(function) = self.compiled.get(&source.name) {
            return Ok(function.clone());
        }
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.clear();
        }
        let text = source.code();
        // If that is too much, the run ends by it.
        let _ = self
            .shared
            .meter
            .take_bytes(&self.lua, host::COST_OF_COMPILED * text.len());
        let made = host::compile(&self.lua, text, host::CHUNK, &self.globals);
        let function = made.map_err(|words| {
            let words = format!("ERR Error compiling script (new function): {words}");
            Failure::Error(words.into_bytes())
        })?;
        self.compiled.insert(source.name, function.clone());
        Ok(function)
    }

    /// All is as it is at the begin of every script.
    fn begin(&self) {
        self.shared.random.reset();
        self.shared.resp.set(2);
        // Without memory for the hook there is none for the script.
        let _ = self.shared.meter.begin(&self.lua, self.limits.steps);
    }

    fn carry_out(
        &self,
        function: &Function,
        keys: &[&[u8]],
        arguments: &[&[u8]],
        host: &mut dyn Host,
    ) -> mlua::Result<Result<Value, Failure>> {
        let lua = &self.lua;
        self.builtins.raw_set("KEYS", list(lua, keys)?)?;
        self.builtins.raw_set("ARGV", list(lua, arguments)?)?;
        let host = RefCell::new(host);
        lua.scope(|scope| {
            let call = scope.create_function(|lua, words: MultiValue| {
                let mut host = host.borrow_mut();
                self.call(lua, &words, &mut **host)
            })?;
            self.run.raw_set("call", call)?;
            let (fine, value) = self.pcall.call::<(bool, LuaValue)>(function)?;
            Ok(match fine {
                true => self.answer(&value),
                false => Err(self.ended(&value)),
            })
        })
    }

    /// A command of a script: its answer, and whether it is an error.
    fn call(
        &self,
        lua: &Lua,
        words: &MultiValue,
        host: &mut dyn Host,
    ) -> mlua::Result<(LuaValue, bool)> {
        let refused = |words: &str| Ok((answer::named(lua, "err", words)?, true));
        self.takes(lua, STEPS_OF_CALL + words.len() as u64)?;
        let Some(words) = words.iter().map(Word::of).collect::<Option<Vec<_>>>() else {
            return refused(NO_TEXTS);
        };
        let words: Vec<&[u8]> = words.iter().map(Word::bytes).collect();
        if words.is_empty() {
            return refused(NO_WORDS);
        }
        // One text may be many of the words: together they may be far longer than what Lua holds.
        let bytes: usize = words.iter().map(|word| word.len()).sum();
        if bytes > self.limits.memory {
            return refused(TOO_LONG);
        }
        self.takes_bytes(lua, bytes)?;
        let allowed = Allowance {
            bytes: self.limits.memory,
            steps: self.shared.meter.left(),
        };
        let answer = host.call(&words, self.shared.resp.get(), allowed);
        self.takes(lua, answer.steps)?;
        self.takes_bytes(lua, answer.bytes.len())?;
        match answer::to_lua(lua, &answer.bytes)? {
            Some(value) => Ok((value, answer::is_error(&answer.bytes))),
            None => refused(NOT_WHOLE),
        }
    }

    fn takes(&self, lua: &Lua, steps: u64) -> mlua::Result<()> {
        let goes_on = self.shared.meter.take(lua, steps);
        goes_on.then_some(()).ok_or_else(Meter::error)
    }

    fn takes_bytes(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        let goes_on = self.shared.meter.take_bytes(lua, bytes);
        goes_on.then_some(()).ok_or_else(Meter::error)
    }

    fn answer(&self, value: &LuaValue) -> Result<Value, Failure> {
        let mut room = Room {
            values: VALUES_MAX,
            bytes: self.limits.memory,
        };
        let resp = self.shared.resp.get();
        from_lua(value, resp, &mut room, 0).map_err(|fault| match fault {
            Fault::TooLarge => Failure::Error(convert::TOO_LARGE.into()),
            Fault::Lua(error) => failure(&error),
        })
    }

    /// The error with which a script ended.
    fn ended(&self, value: &LuaValue) -> Failure {
        let words = match value {
            LuaValue::String(words) if words.as_bytes() == "not enough memory" => {
                return Failure::OutOfMemory;
            }
            LuaValue::Error(error) => return failure(error),
            LuaValue::Table(table) => table.raw_get("err").ok().and_then(|it| self.words(&it)),
            LuaValue::Nil => Some(b"ERR nil".into()),
            LuaValue::Boolean(it) => Some(format!("ERR {it}").into_bytes()),
            other => self.words(other).map(|it| [b"ERR ", &*it].concat()),
        };
        Failure::Error(words.unwrap_or_else(|| b"ERR unknown error".into()))
    }

    /// A text, or a number as Lua writes it.
    fn words(&self, value: &LuaValue) -> Option<Vec<u8>> {
        let words = self.lua.coerce_string(value.clone()).ok().flatten()?;
        Some(words.as_bytes().to_vec())
    }

    /// Drops what the script has left.
    fn clean(&mut self) {
        for name in ["KEYS", "ARGV"] {
            let _ = self.builtins.raw_set(name, LuaValue::Nil);
        }
        self.shared.meter.collect(&self.lua, self.limits.memory / 4);
    }

    /// True if little memory is left for the next script: then a new state is better. Lua keeps buffers in which it joined
    /// long texts.
    pub fn is_spent(&self) -> bool {
        self.lua.used_memory() > self.limits.memory / 2
    }
}

const NO_WORDS: &str = "ERR Please specify at least one argument for this redis lib call";
const NO_TEXTS: &str = "ERR Lua redis lib command arguments must be strings or integers";
const TOO_LONG: &str = "ERR the arguments of a command are longer than the memory of a script";
const NOT_WHOLE: &str = "ERR the answer of a command is not whole";

fn list(lua: &Lua, texts: &[&[u8]]) -> mlua::Result<Table> {
    let list = lua.create_table_with_capacity(texts.len(), 0)?;
    for (at, text) in (1..).zip(texts) {
        list.raw_set(at, lua.create_string(text)?)?;
    }
    Ok(list)
}

/// A word of a command.
enum Word<'a> {
    /// Where it lies in Lua.
    Text(BorrowedBytes<'a>),
    Number(String),
}

impl<'a> Word<'a> {
    fn of(value: &'a LuaValue) -> Option<Self> {
        match value {
            LuaValue::String(text) => Some(Self::Text(text.as_bytes())),
            LuaValue::Number(number) => Some(Self::Number(as_argument(*number))),
            LuaValue::Integer(number) => Some(Self::Number(number.to_string())),
            _ => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Number(text) => text.as_bytes(),
        }
    }
}

fn failure(error: &mlua::Error) -> Failure {
    match error {
        mlua::Error::MemoryError(_) => Failure::OutOfMemory,
        mlua::Error::CallbackError { cause, .. } => failure(cause),
        other => Failure::Error(
            format!("ERR {other}")
                .replace(['\r', '\n'], " ")
                .into_bytes(),
        ),
    }
}
