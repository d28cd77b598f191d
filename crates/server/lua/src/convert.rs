//! A script's value to its answer, as Redis converts it.

use mlua::{String, Table, Value as LuaValue};
use nuthatch_script::integer;

use crate::value::Value;

/// How deep lists of an answer may lie in each other.
const DEPTH_MAX: usize = 64;

/// What an answer may hold at most.
#[derive(Debug)]
pub struct Room {
    /// Values.
    pub values: usize,
    /// Bytes of all texts.
    pub bytes: usize,
}

/// Why a value is no answer.
#[derive(Debug)]
pub enum Fault {
    /// It is too large, or holds itself.
    TooLarge,
    /// Lua refused to read it.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Fault {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// A value of Lua as an answer. Booleans are their own with the third version of the protocol only.
pub fn from_lua(value: &LuaValue, resp: u8, room: &mut Room, depth: usize) -> Result<Value, Fault> {
    room.values = room.values.checked_sub(1).ok_or(Fault::TooLarge)?;
    Ok(match value {
        LuaValue::String(it) => Value::Text(bytes(it, room)?),
        LuaValue::Number(it) => Value::Integer(integer(*it)),
        LuaValue::Integer(it) => Value::Integer(*it),
        LuaValue::Boolean(it) if resp >= 3 => Value::Bool(*it),
        LuaValue::Boolean(true) => Value::Integer(1),
        LuaValue::Table(_) if depth >= DEPTH_MAX => return Err(Fault::TooLarge),
        LuaValue::Table(it) => table(it, resp, room, depth + 1)?,
        _ => Value::Nil,
    })
}

fn table(table: &Table, resp: u8, room: &mut Room, depth: usize) -> Result<Value, Fault> {
    if let LuaValue::String(words) = table.raw_get("err")? {
        return Ok(Value::Error(bytes(&words, room)?));
    }
    if let LuaValue::String(words) = table.raw_get("ok")? {
        return Ok(Value::Status(bytes(&words, room)?));
    }
    if let LuaValue::Number(number) = table.raw_get("double")? {
        return Ok(Value::Double(number));
    }
    if let LuaValue::String(digits) = table.raw_get("big_number")? {
        return Ok(Value::BigNumber(bytes(&digits, room)?));
    }
    if let LuaValue::Table(verbatim) = table.raw_get("verbatim_string")?
        && let LuaValue::String(format) = verbatim.raw_get("format")?
        && let LuaValue::String(text) = verbatim.raw_get("string")?
    {
        let mut name = [b' '; 3];
        let format = format.as_bytes();
        let letters = format.iter().take_while(|&&byte| byte != 0);
        name.iter_mut()
            .zip(letters)
            .for_each(|(to, from)| *to = *from);
        let text = bytes(&text, room)?;
        return Ok(Value::Verbatim { format: name, text });
    }
    if let LuaValue::Table(map) = table.raw_get("map")? {
        let pairs = map.pairs::<LuaValue, LuaValue>().map(|pair| {
            let (name, item) = pair?;
            Ok((
                from_lua(&name, resp, room, depth)?,
                from_lua(&item, resp, room, depth)?,
            ))
        });
        return pairs.collect::<Result<_, Fault>>().map(Value::Map);
    }
    if let LuaValue::Table(set) = table.raw_get("set")? {
        let items = set.pairs::<LuaValue, LuaValue>();
        let items = items.map(|pair| from_lua(&pair?.0, resp, room, depth));
        return items.collect::<Result<_, Fault>>().map(Value::Set);
    }
    let mut list = Vec::new();
    for at in 1.. {
        match table.raw_get(at)? {
            // A list ends before its first nil.
            LuaValue::Nil => break,
            item => list.push(from_lua(&item, resp, room, depth)?),
        }
    }
    Ok(Value::List(list))
}

fn bytes(text: &String, room: &mut Room) -> Result<Vec<u8>, Fault> {
    let text = text.as_bytes();
    room.bytes = room.bytes.checked_sub(text.len()).ok_or(Fault::TooLarge)?;
    Ok(text.to_vec())
}

/// The words for an answer that is too large.
pub const TOO_LARGE: &str = "ERR the script's answer is too large, or holds itself";
