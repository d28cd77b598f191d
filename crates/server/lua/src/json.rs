//! What cjson needs that is not written in Lua: texts in quotes, and JSON to values.

use mlua::{Lua, Value};
use serde_json::Value as Json;

/// The longest text that is decoded.
const LEN_MAX: usize = 1 << 20;

/// A text as JSON has it. Bytes that are no UTF-8 stay as they are, as with cjson.
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'/' => out.extend([b'\\', byte]),
            b'\x08' => out.extend(b"\\b"),
            b'\x0c' => out.extend(b"\\f"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..0x20 | 0x7f => out.extend(format!("\\u{byte:04x}").into_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

/// The value that JSON describes, or why it is none.
pub fn decoded(lua: &Lua, text: &[u8]) -> mlua::Result<Result<Value, String>> {
    // What is read of it lies in no memory that Lua counts.
    if text.len() > LEN_MAX {
        return Ok(Err(format!("a JSON of more than {LEN_MAX} bytes")));
    }
    match serde_json::from_slice::<Json>(text) {
        Ok(json) => value(lua, json).map(Ok),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// serde_json has bounded the depth.
fn value(lua: &Lua, json: Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::NULL,
        Json::Bool(it) => Value::Boolean(it),
        Json::Number(it) => Value::Number(it.as_f64().unwrap_or(f64::NAN)),
        Json::String(it) => Value::String(lua.create_string(it)?),
        Json::Array(list) => {
            let table = lua.create_table_with_capacity(list.len(), 0)?;
            for (at, item) in (1..).zip(list) {
                table.raw_set(at, value(lua, item)?)?;
            }
            Value::Table(table)
        }
        Json::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (name, item) in map {
                table.raw_set(name, value(lua, item)?)?;
            }
            Value::Table(table)
        }
    })
}
