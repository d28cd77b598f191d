//! Answers of commands, in the bytes of Redis' protocol, as Lua's values: as Redis converts them. Each text is copied once,
//! into memory that Lua counts.

use mlua::{Lua, Result, Value};

/// How deep lists of an answer may lie in each other.
const DEPTH_MAX: usize = 64;

/// True if an answer is an error.
pub fn is_error(answer: &[u8]) -> bool {
    answer.first() == Some(&b'-')
}

/// The value of an answer. `None` if it is not whole.
pub fn to_lua(lua: &Lua, answer: &[u8]) -> Result<Option<Value>> {
    let mut reader = Reader {
        lua,
        left: answer,
        depth: 0,
    };
    reader.value()
}

/// A table with one entry.
pub fn named(lua: &Lua, name: &str, value: impl mlua::IntoLua) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

struct Reader<'l, 'a> {
    lua: &'l Lua,
    left: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'_, 'a> {
    fn value(&mut self) -> Result<Option<Value>> {
        let Some((kind, rest)) = self.line().and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        let text = || self.lua.create_string(rest);
        let number = || std::str::from_utf8(rest).ok()?.parse::<f64>().ok();
        Ok(Some(match kind {
            b'+' => named(self.lua, "ok", text()?)?,
            b'-' => named(self.lua, "err", text()?)?,
            b'_' => Value::Nil,
            b'#' => Value::Boolean(rest == b"t"),
            b':' | b',' => match number() {
                None => return Ok(None),
                Some(number) if *kind == b',' => named(self.lua, "double", number)?,
                Some(number) => Value::Number(number),
            },
            _ => match number() {
                None => return Ok(None),
                // The null of the second version.
                Some(..0.0) => Value::Boolean(false),
                Some(count) => return self.several(*kind, count as usize),
            },
        }))
    }

    /// A text of so many bytes, or so many values.
    fn several(&mut self, kind: u8, count: usize) -> Result<Option<Value>> {
        if matches!(kind, b'$' | b'=' | b'(') {
            let text = self.left.split_off(..count);
            let end = self.left.split_off(..2);
            let Some((text, _)) = text.zip(end) else {
                return Ok(None);
            };
            return self.lua.create_string(text).map(Value::String).map(Some);
        }
        // A value has three bytes at least.
        if self.depth >= DEPTH_MAX || count > self.left.len() / 3 {
            return Ok(None);
        }
        self.depth += 1;
        let made = match kind {
            b'*' | b'>' => self.list(count),
            b'~' => self.set(count),
            b'%' => self.map(count),
            _ => Ok(None),
        };
        self.depth -= 1;
        made
    }

    fn list(&mut self, count: usize) -> Result<Option<Value>> {
        let table = self.lua.create_table_with_capacity(count, 0)?;
        for at in 1..=count {
            let Some(item) = self.value()? else {
                return Ok(None);
            };
            table.raw_set(at, item)?;
        }
        Ok(Some(Value::Table(table)))
    }

    fn set(&mut self, count: usize) -> Result<Option<Value>> {
        let table = self.lua.create_table_with_capacity(0, count)?;
        for _ in 0..count {
            let Some(item) = self.value()? else {
                return Ok(None);
            };
            table.raw_set(item, true)?;
        }
        named(self.lua, "set", table).map(Some)
    }

    fn map(&mut self, count: usize) -> Result<Option<Value>> {
        let table = self.lua.create_table_with_capacity(0, count)?;
        for _ in 0..count {
            let Some(name) = self.value()? else {
                return Ok(None);
            };
            let Some(item) = self.value()? else {
                return Ok(None);
            };
            table.raw_set(name, item)?;
        }
        named(self.lua, "map", table).map(Some)
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\r', self.left)?;
        let line = self.left.split_off(..end)?;
        self.left.split_off(..2)?;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value in Lua's words.
    fn shown(answer: &[u8]) -> Option<String> {
        let lua = Lua::new();
        let value = to_lua(&lua, answer).unwrap()?;
        let show = "local show
            function show(v)
              if type(v) ~= 'table' then return tostring(v) end
              local parts = {}
              for at = 1, table.maxn(v) do parts[at] = show(v[at]) end
              for name, it in pairs(v) do
                if type(name) ~= 'number' then parts[#parts + 1] = show(name) .. '=' .. show(it) end
              end
              return '{' .. table.concat(parts, ',') .. '}'
            end
            return show(...)";
        Some(lua.load(show).call(value).unwrap())
    }

    #[test]
    fn a_value_is_what_its_answer_says() {
        for (answer, expected) in [
            ("+OK\r\n", "{ok=OK}"),
            ("-ERR x\r\n", "{err=ERR x}"),
            (":-7\r\n", "-7"),
            (",1.5\r\n", "{double=1.5}"),
            ("_\r\n", "nil"),
            ("#t\r\n", "true"),
            ("$4\r\na\r\nb\r\n", "a\r\nb"),
            ("$-1\r\n", "false"),
            ("*2\r\n$-1\r\n$0\r\n\r\n", "{false,}"),
            ("*3\r\n:1\r\n_\r\n:3\r\n", "{1,nil,3}"),
            ("%1\r\n$1\r\na\r\n*0\r\n", "{map={a={}}}"),
            ("~1\r\n:5\r\n", "{set={true}}"),
        ] {
            let expected = expected.replace("{set={true}}", "{set={nil,nil,nil,nil,true}}");
            assert_eq!(shown(answer.as_bytes()), Some(expected), "{answer}");
            for end in 0..answer.len() {
                assert_eq!(shown(&answer.as_bytes()[..end]), None, "{answer}");
            }
        }
        assert_eq!(shown("*1\r\n".repeat(100).as_bytes()), None);
        assert_eq!(shown(b"*99999999999999999\r\n:1\r\n"), None);
    }
}
