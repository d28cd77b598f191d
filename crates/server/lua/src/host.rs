//! The functions that the library written in Lua (`library.lua`) has of this crate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use mlua::{ChunkMode, Function, IntoLuaMulti, Lua, MultiValue, Result, String, Table, Value};
use nuthatch_script::Name;

use crate::json;
use crate::meter::Meter;
use crate::pattern::{self, Capture, Fault};
use crate::random::Random;

/// The name of a script in messages, as Redis has it.
pub const CHUNK: &str = "@user_script";

/// What a search does with a pattern: it takes one without special bytes as the bytes that it is, or any; it
/// looks for the pattern without an anchor; it leaves unfinished
/// captures to the caller.
const FIND: u8 = 0;
const PLAIN: u8 = 1;
const EACH: u8 = 2;
const LAZY: u8 = 3;

/// The most bytes of a line that a script logs, as in Redis.
const LINE_MAX: usize = 1024;

/// Bytes that are copied while such a line is made.
const LINE_COST: usize = 64 << 10;

/// Bytes that are copied while Lua compiles one.
pub const COST_OF_COMPILED: usize = 16;

/// What the functions share with the interpreter.
#[derive(Clone)]
pub struct Shared {
    pub meter: Rc<Meter>,
    pub random: Rc<Random>,
    /// The version of the protocol in whose values commands answer.
    pub resp: Rc<Cell<u8>>,
}

/// The version that scripts find in `redis.REDIS_VERSION`, and as a number.
pub type Version<'a> = (&'a str, u32);

/// A table of the functions. `globals` are those of the scripts' functions, once they are known.
pub fn functions(
    lua: &Lua,
    shared: &Shared,
    version: Version<'_>,
    globals: &Table,
) -> Result<Table> {
    let host = lua.create_table()?;
    host.set("run", lua.create_table()?)?;
    host.set("null", Value::NULL)?;
    host.set(
        "version",
        lua.create_sequence_from([
            Value::String(lua.create_string(version.0)?),
            Value::Number(version.1.into()),
        ])?,
    )?;
    texts(lua, shared, &host)?;
    state(lua, shared, globals, &host)?;
    Ok(host)
}

/// Those that work on texts.
fn texts(lua: &Lua, shared: &Shared, host: &Table) -> Result<()> {
    let meter = Rc::clone(&shared.meter);
    host.set(
        "search",
        lua.create_function(
            move |lua, (subject, pattern, init, how): (String, String, f64, u8)| {
                search(lua, &meter, &subject, &pattern, init, how)
            },
        )?,
    )?;
    let meter = Rc::clone(&shared.meter);
    host.set(
        "sha1hex",
        lua.create_function(move |lua, text: String| {
            take_bytes(lua, &meter, text.as_bytes().len())?;
            lua.create_string(Name::of(&text.as_bytes()).to_string())
        })?,
    )?;
    let meter = Rc::clone(&shared.meter);
    host.set(
        "quote",
        lua.create_function(move |lua, text: String| {
            take_bytes(lua, &meter, text.as_bytes().len())?;
            lua.create_string(json::quoted(&text.as_bytes()))
        })?,
    )?;
    let meter = Rc::clone(&shared.meter);
    host.set(
        "decode",
        lua.create_function(move |lua, text: String| {
            take_bytes(lua, &meter, 16 * text.as_bytes().len())?;
            match json::decoded(lua, &text.as_bytes())? {
                Ok(value) => (true, value).into_lua_multi(lua),
                Err(words) => (false, words).into_lua_multi(lua),
            }
        })?,
    )?;
    let meter = Rc::clone(&shared.meter);
    host.set(
        "takes",
        lua.create_function(move |lua, bytes: f64| {
            take_bytes(lua, &meter, bytes as usize)?;
            Ok(true)
        })?,
    )
}

/// Those that look at the state, or change it.
fn state(lua: &Lua, shared: &Shared, globals: &Table, host: &Table) -> Result<()> {
    let (meter, globals) = (Rc::clone(&shared.meter), globals.clone());
    host.set(
        "compile",
        lua.create_function(move |lua, (text, name): (String, String)| {
            take_bytes(lua, &meter, COST_OF_COMPILED * text.as_bytes().len())?;
            let globals: Table = globals.get(1)?;
            // As in Lua itself, a name ends at its first NUL.
            let name = name.to_string_lossy();
            let name = name.split('\0').next().unwrap_or_default();
            match compile(lua, &text.as_bytes(), name, &globals) {
                Ok(function) => function.into_lua_multi(lua),
                Err(words) => (Value::Nil, words).into_lua_multi(lua),
            }
        })?,
    )?;
    host.set(
        "memory",
        lua.create_function(|lua, ()| Ok(lua.used_memory() as f64 / 1024.0))?,
    )?;
    let begin = Instant::now();
    host.set(
        "clock",
        lua.create_function(move |_, ()| Ok(begin.elapsed().as_secs_f64()))?,
    )?;
    let random = Rc::clone(&shared.random);
    host.set(
        "random",
        lua.create_function(move |_, ()| Ok(random.draw()))?,
    )?;
    let random = Rc::clone(&shared.random);
    host.set(
        "seed",
        lua.create_function(move |_, seed: f64| {
            random.seed(seed as i64 as i32);
            Ok(())
        })?,
    )?;
    let resp = Rc::clone(&shared.resp);
    host.set(
        "setresp",
        lua.create_function(move |_, version: u8| {
            resp.set(version);
            Ok(())
        })?,
    )?;
    let meter = Rc::clone(&shared.meter);
    host.set(
        "log",
        lua.create_function(move |lua, (level, words): (u8, String)| {
            take_bytes(lua, &meter, LINE_COST)?;
            log(level, &line(&words.as_bytes()));
            Ok(())
        })?,
    )?;
    host.set(
        "methods",
        lua.create_function(|lua, methods: Table| {
            let of_texts = lua.create_table()?;
            of_texts.set("__index", methods)?;
            of_texts.set("__metatable", false)?;
            lua.set_type_metatable::<String>(Some(of_texts));
            Ok(())
        })?,
    )
}

/// What a script logs, as a part of one line: it can neither begin another one nor control a terminal.
fn line(words: &[u8]) -> std::string::String {
    let words = std::string::String::from_utf8_lossy(&words[..words.len().min(LINE_MAX)]);
    let mut line = std::string::String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '"' | '\'' => line.push(letter),
            _ => line.extend(letter.escape_debug()),
        }
    }
    line
}

fn log(level: u8, words: &str) {
    match level {
        0 => tracing::debug!("a script: {words}"),
        1 | 2 => tracing::info!("a script: {words}"),
        _ => tracing::warn!("a script: {words}"),
    }
}

/// Reads a text as a function with these globals. Compiled code is refused: Lua does not check it.
pub fn compile(
    lua: &Lua,
    text: &[u8],
    name: &str,
    globals: &Table,
) -> std::result::Result<Function, std::string::String> {
    let chunk = lua.load(text).set_name(name).set_mode(ChunkMode::Text);
    let function = chunk.set_environment(globals.clone()).into_function();
    function.map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message,
        mlua::Error::MemoryError(_) => "not enough memory".into(),
        other => other.to_string(),
    })
}

fn take_bytes(lua: &Lua, meter: &Rc<Meter>, bytes: usize) -> Result<()> {
    match meter.take_bytes(lua, bytes) {
        true => Ok(()),
        false => Err(Meter::error()),
    }
}

/// Where a pattern begins and ends, counted from 1, and its captures; nothing if it is not there.
fn search(
    lua: &Lua,
    meter: &Rc<Meter>,
    subject: &String,
    pattern: &String,
    init: f64,
    how: u8,
) -> Result<MultiValue> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let init = begin(init, subject.len());
    if how == PLAIN || how == FIND && pattern::is_plain(&pattern) {
        take_bytes(lua, meter, subject.len() - init)?;
        let found = find(&subject[init..], &pattern).map(|at| at + init);
        return match found {
            Some(at) => (at + 1, at + pattern.len()).into_lua_multi(lua),
            None => Value::Nil.into_lua_multi(lua),
        };
    }
    let all = meter.left();
    let mut left = all;
    let found = pattern::search(&subject, &pattern, init, how != EACH, &mut left);
    if !meter.take(lua, all - left) {
        return Err(Meter::error());
    }
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Value::Nil.into_lua_multi(lua),
        Err(Fault::Malformed(words)) => return (false, words).into_lua_multi(lua),
        Err(Fault::TooLong) => return Err(Meter::error()),
    };
    let mut values = MultiValue::with_capacity(2 + found.captures.len());
    values.push_back(Value::Number((found.start + 1) as f64));
    values.push_back(Value::Number(found.end as f64));
    for capture in found.captures {
        values.push_back(match capture {
            Capture::Text(from, to) => Value::String(lua.create_string(&subject[from..to])?),
            Capture::Open if how == LAZY => Value::Boolean(false),
            Capture::Open => return (false, "unfinished capture").into_lua_multi(lua),
            Capture::Position(at) => Value::Number((at + 1) as f64),
        });
    }
    Ok(values)
}

/// The place from which is searched. Negative ones count from the end.
fn begin(init: f64, len: usize) -> usize {
    match init as i64 {
        at @ ..0 => (len as i64).saturating_add(at).max(0) as usize,
        at => (at.max(1) - 1).min(len as i64) as usize,
    }
}

/// Where a text is in another.
fn find(subject: &[u8], wanted: &[u8]) -> Option<usize> {
    match wanted.is_empty() {
        true => Some(0),
        false => memchr::memmem::find(subject, wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_script_stays_one() {
        let words = b"{\"a\": 'b'}\r\n\x1b[2J\xff\xc3\xa9\xe2\x80\xae";
        let shown = "{\"a\": 'b'}\\r\\n\\u{1b}[2J\u{fffd}\u{e9}\\u{202e}";
        assert_eq!(line(words), shown);
        assert_eq!(line(&[b'x'; 5000]).len(), LINE_MAX);
    }
}
