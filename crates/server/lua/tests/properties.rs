//! Any text as a script, and any pattern beside Lua's own matcher.

mod invariants;

use mlua::{Lua, MultiValue, Value as LuaValue};
use nuthatch_lua::{Allowance, Answer, Host, Interpreter, Limits, Source, Value};
use proptest::prelude::*;

/// Words that programs are made of.
const WORDS: &[&str] = &[
    "local x = ",
    "x",
    "KEYS[1]",
    "ARGV[1]",
    "redis.call(",
    "redis.pcall(",
    "'get'",
    "'a'",
    ", ",
    ")",
    "(",
    "{",
    "}",
    " ",
    "if ",
    " then ",
    " end ",
    "for i = 1, 9 do ",
    "while true do ",
    "function() ",
    "return ",
    " .. ",
    " + ",
    " == ",
    "#",
    "string.rep(",
    "string.gsub(",
    "table.insert(",
    "pcall(",
    "setmetatable(",
    "1",
    "1e9",
    "nil",
    "_G",
    "math.random(",
];

/// Parts of patterns.
const PIECES: &[&str] = &[
    "a", "b", ".", "%a", "%d", "%s", "%w", "%A", "%p", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]]",
    "[^]", "(", ")", "()", "%1", "%bab", "%f[a]", "%f[%W]", "*", "+", "-", "?", "^", "$", "%%",
    "]", "\0", "%z",
];

fn made_of(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(pieces), 0..most)
        .prop_map(|pieces| pieces.concat())
}

struct Nobody;

impl Host for Nobody {
    fn call(&mut self, _: &[&[u8]], _resp: u8, _: Allowance) -> Answer {
        Answer {
            bytes: b"_\r\n".to_vec(),
            steps: 0,
        }
    }
}

/// Calls a function of texts in all ways, and tells what it returned.
const CALLS: &str = "
    local out = {}
    local function note(...)
      for at = 1, select('#', ...) do out[#out + 1] = tostring((select(at, ...))):gsub('^[%w_]+:%d+: ', '') end
      out[#out + 1] = '|'
    end
    local s, p, init = ARGV[1], ARGV[2], tonumber(ARGV[3])
    note(pcall(string.find, s, p, init))
    note(pcall(string.find, s, p, init, true))
    note(pcall(string.match, s, p, init))
    note(pcall(string.gsub, s, p, '<%0>', 3))
    note(pcall(string.gsub, s, p, '%1'))
    note(pcall(string.gsub, s, p, {a = 'x', b = 2, [1] = false}))
    note(pcall(string.gsub, s, p, function(...) return select('#', ...) .. tostring((...)) end))
    note(pcall(function() for a, b in string.gmatch(s, p) do note(a, b) end end))
    return table.concat(out, ',')";

/// What Lua itself finds.
fn theirs(subject: &str, pattern: &str, init: i32) -> Vec<u8> {
    let lua = Lua::new();
    let arguments =
        lua.create_sequence_from([subject.to_owned(), pattern.to_owned(), init.to_string()]);
    lua.globals().set("ARGV", arguments.unwrap()).unwrap();
    let said: MultiValue = lua.load(CALLS).set_name("@script").eval().unwrap();
    match said.into_iter().next() {
        Some(LuaValue::String(text)) => text.as_bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}

fn ours(subject: &str, pattern: &str, init: i32) -> Vec<u8> {
    let limits = Limits {
        memory: 4 << 20,
        steps: 10_000_000,
    };
    let mut lua = Interpreter::new(limits, ("8.0.0", 0), Default::default()).unwrap();
    let source = Source::read(CALLS.as_bytes()).unwrap();
    let init = init.to_string();
    let words = [subject.as_bytes(), pattern.as_bytes(), init.as_bytes()];
    match lua.run(&source, &[], &words, &mut Nobody).value {
        Ok(Value::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn patterns_find_what_lua_finds(
        subject in "[ab1 _%\\x00.]{0,9}",
        pattern in made_of(PIECES, 7),
        init in -4..9,
    ) {
        let (ours, theirs) = (ours(&subject, &pattern, init), theirs(&subject, &pattern, init));
        prop_assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs));
    }

    #[test]
    fn any_program_ends(text in made_of(WORDS, 30)) {
        invariants::check(text.as_bytes());
    }

    #[test]
    fn any_text_ends(text in proptest::collection::vec(any::<u8>(), 0..50)) {
        invariants::check(&text);
    }
}
