//! What cjson needs that is not written in Lua: texts in quotes, and JSON to values.

use std::cell::RefCell;
use std::fmt;

use mlua::{Lua, Value};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

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

/// The value that JSON describes, or why it is none. It is made while the text is read, so all of it is memory that Lua counts.
/// Errors: Lua has no memory.
pub fn decoded(lua: &Lua, text: &[u8]) -> mlua::Result<Result<Value, String>> {
    let failure = RefCell::default();
    let maker = Maker {
        lua,
        failure: &failure,
    };
    let mut json = serde_json::Deserializer::from_slice(text);
    let made = maker
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value));
    match failure.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(made.map_err(|error| error.to_string())),
    }
}

/// Makes values of Lua of what serde_json reads, which bounds the depth.
#[derive(Clone, Copy)]
struct Maker<'l> {
    lua: &'l Lua,
    /// Why Lua has made no value: serde's error is only words.
    failure: &'l RefCell<Option<mlua::Error>>,
}

impl Maker<'_> {
    /// What Lua has made, or that it has not.
    fn made<T, E: de::Error>(self, made: mlua::Result<T>) -> Result<T, E> {
        made.map_err(|failure| {
            *self.failure.borrow_mut() = Some(failure);
            E::custom("Lua has no memory")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Maker<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Maker<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E: de::Error>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Boolean(it))
    }

    fn visit_u64<E: de::Error>(self, it: u64) -> Result<Value, E> {
        Ok(Value::Number(it as f64))
    }

    fn visit_i64<E: de::Error>(self, it: i64) -> Result<Value, E> {
        Ok(Value::Number(it as f64))
    }

    fn visit_f64<E: de::Error>(self, it: f64) -> Result<Value, E> {
        Ok(Value::Number(it))
    }

    fn visit_str<E: de::Error>(self, it: &str) -> Result<Value, E> {
        self.made(self.lua.create_string(it)).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let table = self.made(self.lua.create_table())?;
        let mut at = 0;
        while let Some(item) = items.next_element_seed(self)? {
            at += 1;
            self.made(table.raw_set(at, item))?;
        }
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let table = self.made(self.lua.create_table())?;
        // A name is a text, and a value of Lua as well.
        while let Some(name) = items.next_key_seed(self)? {
            let item = items.next_value_seed(self)?;
            self.made(table.raw_set(name, item))?;
        }
        Ok(Value::Table(table))
    }
}
