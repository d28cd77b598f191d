//! Scripts as clients send them, carried out on one key.

use bumpalo::Bump;

use crate::{Failure, Ran, Script, Value, integer};

/// A key with a value, and the commands that these scripts need.
#[derive(Debug, Default, PartialEq)]
struct Slot {
    value: Option<String>,
    millis: Option<i64>,
}

impl Slot {
    fn call(&mut self, words: &[&[u8]]) -> Result<Value<'static>, Failure> {
        let words: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        if words[0].to_lowercase() == "time" {
            return Ok(Value::List(vec![Value::Text(b"1"), Value::Text(b"250000")]));
        }
        let number = |at: usize| words[at].parse::<i64>().unwrap_or_default();
        let there = |is: bool| Value::Number(f64::from(u8::from(is)));
        Ok(match words[0].to_lowercase().as_str() {
            "get" => match &self.value {
                Some(value) => Value::Text(leaked(value)),
                None => Value::Bool(false),
            },
            "del" | "unlink" => there(self.value.take().is_some()),
            "exists" => there(self.value.is_some()),
            "pexpire" | "expire" => {
                let unit = if words[0].to_lowercase() == "expire" {
                    1000
                } else {
                    1
                };
                self.millis = Some(number(2) * unit);
                there(self.value.is_some())
            }
            "pttl" => Value::Number(match (&self.value, self.millis) {
                (None, _) => -2.0,
                (_, None) => -1.0,
                (_, Some(millis)) => millis as f64,
            }),
            "incr" | "incrby" => {
                let old: i64 = self.value.as_deref().unwrap_or("0").parse().map_err(|_| {
                    Failure::Error(b"ERR value is not an integer or out of range".into())
                })?;
                let by = if words.len() > 2 { number(2) } else { 1 };
                self.value = Some((old + by).to_string());
                Value::Number((old + by) as f64)
            }
            "set" | "setex" | "setnx" => {
                let only_new =
                    words[0].to_lowercase() == "setnx" || words.iter().any(|word| *word == "NX");
                if only_new && self.value.is_some() {
                    return Ok(Value::Bool(false));
                }
                self.value = Some(words[if words[0] == "setex" { 3 } else { 2 }].to_string());
                self.millis = words
                    .iter()
                    .position(|word| *word == "PX")
                    .map(|at| number(at + 1));
                Value::Status(b"OK")
            }
            other => panic!("{other}"),
        })
    }
}

/// The tests are short: what they make may stay.
fn leaked(text: &str) -> &'static [u8] {
    text.as_bytes().to_vec().leak()
}

/// A run of a script, and the value and expiry that it leaves.
fn ran(text: &str, value: Option<&str>, arguments: &[&str]) -> (Ran<'static>, Slot) {
    let script = Script::read(text.as_bytes()).unwrap_or_else(|| panic!("no script: {text}"));
    let mut slot = Slot {
        value: value.map(str::to_owned),
        millis: None,
    };
    let arguments: Vec<&[u8]> = arguments.iter().map(|one| leaked(one)).collect();
    let (script, arena) = (
        Box::leak(Box::new(script)),
        Box::leak(Box::new(Bump::new())),
    );
    let mut call = |words: &[&[u8]]| slot.call(words);
    let ran = script.run(b"k", arguments.leak(), arena, &mut call);
    (ran, slot)
}

/// The answer of a script, and the value and expiry that it leaves.
fn run(
    text: &str,
    value: Option<&str>,
    arguments: &[&str],
) -> (Result<Value<'static>, Failure>, Slot) {
    let (ran, slot) = ran(text, value, arguments);
    (ran.value, slot)
}

fn number(number: i32) -> Result<Value<'static>, Failure> {
    Ok(Value::Number(f64::from(number)))
}

/// A lock's release in many spellings. What they answer if the lock is another's differs.
const RELEASES: [&str; 19] = [
    "if redis.call(\"get\",KEYS[1]) == ARGV[1]\nthen\n    return redis.call(\"del\",KEYS[1])\nelse\n    return 0\nend",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
    "if redis.call(\"GET\",KEYS[1])==ARGV[1]then return redis.call(\"DEL\",KEYS[1])else return 0 end\n",
    "if(redis.call('get',KEYS[1])==ARGV[1])then return redis.call('del',KEYS[1]);else return 0;end;",
    "if ARGV[1] == redis.call('get', KEYS[1]) then return redis.call('unlink', KEYS[1]) end return 0",
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])",
    "if not (redis.call('get', KEYS[1]) == ARGV[1]) then return 0 else return redis.call('del', KEYS[1]) end",
    "local v = redis.call('get', KEYS[1])\nif v == ARGV[1] then redis.call('del', KEYS[1]) return 1 end\nreturn 0",
    "local key, owner = KEYS[1], ARGV[1]; local now = redis.call('get', key); if now == owner then return redis.call('del', key) elseif now == false then return -1 else return 0 end",
    "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end redis.call('del', KEYS[1]) return 1",
    "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0",
    "-- release\nif redis.call([[get]], KEYS[1]) --[[ mine? ]] == ARGV[1] then\r\n\treturn redis.call('del', KEYS[1])\r\nelse\r\n\treturn 0\r\nend",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.pcall('del', KEYS[1]) else return 0 end",
    "if redis.call('get', KEYS[1]) == tostring(ARGV[1]) then return redis.call('del', KEYS[1]) else return false end",
    "local result = 0 if redis.call('get', KEYS[1]) == ARGV[1] then result = redis.call('del', KEYS[1]) end return result",
    "local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then redis.pcall('del', key) count = count + 1 end end return count",
    "if redis.call('exists', KEYS[1]) == 1 then if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end end return nil",
    "local rcall = redis.call\nif rcall('GET', KEYS[1]) == ARGV[1] then\n return rcall('DEL', KEYS[1])\nelse\n return 0\nend",
    "do local mine = redis.call('get', KEYS[1]) == ARGV[#ARGV] if mine then return redis.call('del', KEYS[1]) end end",
];

#[test]
fn a_lock_is_released_by_its_owner_alone_however_that_is_spelled() {
    for text in RELEASES {
        let (answer, left) = run(text, Some("me"), &["me"]);
        assert_eq!((answer, left.value), (number(1), None), "{text}");
        for value in [Some("other"), None] {
            let (answer, left) = run(text, value, &["me"]);
            let refused = [
                number(0),
                number(-1),
                Ok(Value::Nil),
                Ok(Value::Bool(false)),
            ];
            assert!(refused.contains(&answer), "{text}: {answer:?}");
            assert_eq!(left.value.as_deref(), value, "{text}");
        }
    }
}

#[test]
fn a_lock_is_extended_by_its_owner_alone() {
    for text in [
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('expire', KEYS[1], ARGV[2] / 1000) end return 0",
        "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[1], 'PX', tonumber(ARGV[2])) return 1 end return 0",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) elseif redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 else return 0 end",
    ] {
        let (answer, left) = run(text, Some("me"), &["me", "5000"]);
        assert_eq!((answer, left.millis), (number(1), Some(5000)), "{text}");
        let (answer, left) = run(text, Some("other"), &["me", "5000"]);
        assert_eq!((answer, left.millis), (number(0), None), "{text}");
    }
}

#[test]
fn a_counter_expires_from_its_first_hit_on() {
    for text in [
        "local c = redis.call('incr', KEYS[1]) if c == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return c",
        "local current\ncurrent = redis.call(\"incrby\", KEYS[1], 1)\nif tonumber(current) == 1 then\n redis.call('expire', KEYS[1], ARGV[1]/1000)\nend\nreturn current",
        "local c = tonumber(redis.call('GET', KEYS[1]) or '0') if c == 0 then redis.call('SET', KEYS[1], 1, 'PX', ARGV[1]) return 1 end return redis.call('INCR', KEYS[1])",
    ] {
        let (answer, left) = run(text, None, &["9000"]);
        assert_eq!((answer, left.millis), (number(1), Some(9000)), "{text}");
        let (answer, left) = run(text, Some("4"), &["9000"]);
        assert_eq!((answer, left.millis), (number(5), None), "{text}");
    }
    let ends_with_a_comma = "return {redis.call('incr', KEYS[1]), 'x',}";
    let values = [Value::Number(5.0), Value::Text(b"x")];
    let answer = run(ends_with_a_comma, Some("4"), &[]).0;
    assert_eq!(answer, Ok(Value::List(values.into())));
    let both = "local n = redis.call('incr', KEYS[1]) return {n, redis.call('pttl', KEYS[1]), 'x'}";
    let values = [Value::Number(5.0), Value::Number(-1.0), Value::Text(b"x")];
    assert_eq!(run(both, Some("4"), &[]).0, Ok(Value::List(values.into())));
}

#[test]
fn a_value_is_stored_if_there_is_none() {
    for text in [
        "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])",
        "if redis.call('exists', KEYS[1]) == 0 then return redis.call('set', KEYS[1], ARGV[1]) end return false",
        "return redis.call('setnx', KEYS[1], ARGV[1])",
        "if redis.call('get', KEYS[1]) then return false else return redis.call('set', KEYS[1], ARGV[1]) end",
    ] {
        let (answer, left) = run(text, None, &["v", "10"]);
        assert_eq!(left.value.as_deref(), Some("v"), "{text}");
        assert!(answer.is_ok_and(|value| value.is_true()));
        let (answer, left) = run(text, Some("old"), &["v", "10"]);
        assert_eq!(
            (answer, left.value.as_deref()),
            (Ok(Value::Bool(false)), Some("old")),
            "{text}"
        );
    }
}

#[test]
fn expressions_are_those_of_lua() {
    for (expression, expected) in [
        ("1 + 2 * 3 - 4 / 2", number(5)),
        ("(1 + 2) * 3 % 4", number(1)),
        ("-7 % 3", number(2)),
        ("'10' + 5", number(15)),
        ("- ARGV[1]", number(-7)),
        ("'a' .. 1 .. 1.5", Ok(Value::Text(b"a11.5"))),
        ("#ARGV + #KEYS + #'abc' + #ARGV[1]", number(7)),
        ("ARGV[9]", Ok(Value::Nil)),
        ("not nil == true", Ok(Value::Bool(true))),
        ("1 == '1'", Ok(Value::Bool(false))),
        ("nil or false and 1", Ok(Value::Bool(false))),
        ("'a' < 'b' and 2 >= 2 and 1 ~= 2", Ok(Value::Bool(true))),
        ("tonumber('0x1f')", number(31)),
        ("tonumber('x')", Ok(Value::Nil)),
        ("math.max(1, ARGV[1], 3) + math.floor(1.7)", number(8)),
        ("type(ARGV[1])", Ok(Value::Text(b"string"))),
        ("redis.replicate_commands()", Ok(Value::Bool(true))),
        ("string.len('abc') + string.len(15)", number(5)),
        ("string.sub('abcdef', 2, 4)", Ok(Value::Text(b"bcd"))),
        ("string.sub('abcdef', -2)", Ok(Value::Text(b"ef"))),
        ("string.sub('abcdef', 0, 99.9)", Ok(Value::Text(b"abcdef"))),
        ("string.sub('abcdef', 4, 2)", Ok(Value::Text(b""))),
        ("string.sub('', 1, 1)", Ok(Value::Text(b""))),
        ("string.sub('abc', -1e300, 1e300)", Ok(Value::Text(b""))),
        ("string.byte('abc') - string.byte('abc', -1)", number(-2)),
        ("string.byte('abc', 4)", Ok(Value::Nil)),
        ("string.byte('abc', 0)", Ok(Value::Nil)),
        ("ARGV[1]:len() + ('x'):byte(1)", number(121)),
        (
            "string.lower('A\\xc4z') .. ('b'):upper()",
            Ok(Value::Text(b"axc4zB")),
        ),
        ("redis.call('TIME')[2] + 0", number(250_000)),
        ("#redis.call('time')", number(2)),
        ("redis.call('time')[3]", Ok(Value::Nil)),
        ("redis.call('time').ok", Ok(Value::Nil)),
        ("(ARGV[1])[1]", Ok(Value::Nil)),
        ("redis.call('set', KEYS[1], 'x').ok", Ok(Value::Text(b"OK"))),
        (
            "redis.pcall('incr', KEYS[1])['err']",
            Ok(Value::Text(b"ERR value is not an integer or out of range")),
        ),
    ] {
        let text = format!("redis.call('exists', KEYS[1]) return {expression}");
        assert_eq!(
            run(&text, Some("v"), &["7", "8"]).0,
            expected,
            "{expression}"
        );
    }
    for (error, text) in [
        ("redis.error_reply('GONE')", &b"ERR GONE"[..]),
        ("redis.error_reply('-GONE')", b"ERR GONE"),
        ("redis.error_reply('-GONE it is')", b"GONE it is"),
        ("redis.error_reply('GONE it is')", b"GONE it is"),
        ("{err = 'GONE'}", b"GONE"),
    ] {
        let text = Ok(Value::Error(text));
        let script = format!("redis.call('get', KEYS[1]) return {error}");
        assert_eq!(run(&script, None, &[]).0, text, "{error}");
    }
    let status = Ok(Value::Status(b"FINE"));
    assert_eq!(
        run("redis.call('get', KEYS[1]) return {ok = 'FINE'}", None, &[]).0,
        status
    );
}

#[test]
fn an_error_ends_a_script() {
    for (text, words) in [
        (
            "return redis.call('incr', KEYS[1])",
            "ERR value is not an integer or out of range",
        ),
        (
            "return redis.call('get', KEYS[1]) < 1",
            "ERR the script fails: attempt to compare string with number",
        ),
        (
            "return redis.call('get', KEYS[1]) + 1",
            "ERR the script fails: attempt to perform arithmetic on a string value",
        ),
        (
            "return redis.call('set', KEYS[1], ARGV[1])",
            "ERR Lua redis lib command arguments must be strings or integers",
        ),
        (
            "return redis.call('get', KEYS[1]):len() + redis.call('exists', KEYS[1]):len()",
            "ERR the script fails: attempt to index a number value",
        ),
        (
            "return redis.call('exists', KEYS[1])[1]",
            "ERR the script fails: attempt to index a number value",
        ),
        (
            "return string.len(redis.call('exists', KEYS[1]) == 1)",
            "ERR the script fails: string expected, got boolean",
        ),
        (
            "return #redis.call('exists', KEYS[1])",
            "ERR the script fails: attempt to get length of a number value",
        ),
    ] {
        assert_eq!(
            run(text, Some("x"), &[]).0,
            Err(Failure::Error(words.into())),
            "{text}"
        );
    }
}

#[test]
fn other_programs_are_no_scripts() {
    for text in [
        "",
        "return",
        "return 1",
        "return ARGV[1]",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return 1",
        "return redis.call('lpush', KEYS[1], 1)",
        "return redis.call('flushall')",
        "return redis.call('get')",
        "return redis.call(ARGV[1], KEYS[1])",
        "return redis.call('time')",
        "return redis.call()",
        "return {redis.call('time', KEYS[1]), redis.call('get', KEYS[1])}",
        "local call = redis.call call = 1 return redis.call('get', KEYS[1])",
        "local call = redis.call return call",
        "local call = redis.call return redis.call('get', call)",
        "redis.call('get', KEYS[1]) return string.sub('x')",
        "redis.call('get', KEYS[1]) return string.byte('x', 1, 1)",
        "redis.call('get', KEYS[1]) return string.rep('x', 9)",
        "redis.call('get', KEYS[1]) return redis.replicate_commands(1)",
        "redis.call('get', KEYS[1]) return 'x':len()",
        "redis.call('get', KEYS[1]) return ARGV[1]:rep(9)",
        "redis.call('get', KEYS[1]) return {1,,2}",
        "redis.call('get', KEYS[1]) return {,}",
        "while true do redis.call('get', KEYS[1]) end",
        "for i = 1, 10 do redis.call('incr', KEYS[1]) end",
        "local function f() return redis.call('get', KEYS[1]) end return f()",
        "x = redis.call('get', KEYS[1]) return x",
        "local t = {} return redis.call('get', KEYS[1])",
        "return redis.call('get', KEYS[1]) return 1",
        "return cjson.encode(redis.call('get', KEYS[1]))",
        "redis.call('get', KEYS[1]) KEYS[1] = 'x'",
        "return {{redis.call('get', KEYS[1])}}",
        "1 + redis.call('get', KEYS[1])",
    ] {
        assert_eq!(Script::read(text.as_bytes()), None, "{text}");
    }
    let deep = format!(
        "return {}redis.call('get', KEYS[1]){}",
        "(".repeat(250),
        ")".repeat(250)
    );
    assert_eq!(Script::read(deep.as_bytes()), None);
    let blocks = format!(
        "{} redis.call('get', KEYS[1]) {}",
        "do ".repeat(30),
        "end ".repeat(30)
    );
    assert_eq!(Script::read(blocks.as_bytes()), None);
}

/// Class of bug: a limit of one expression runs on over all of them.
#[test]
fn a_script_may_have_many_expressions() {
    let locals = "local x = redis.call('get', KEYS[1]) ".repeat(60);
    let (answer, _) = run(&format!("{locals} return x"), Some("v"), &[]);
    assert_eq!(answer, Ok(Value::Text(b"v")));
    let list = vec!["redis.call('get', KEYS[1])"; 90].join(", ");
    let Ok(Value::List(values)) = run(&format!("return {{{list}}}"), Some("v"), &[]).0 else {
        panic!("no list");
    };
    assert_eq!(values.len(), 90);
    // The arguments of a call are a part of the expression that it is in.
    let wide = vec!["1"; 300].join(", ");
    let text = format!("redis.call('get', KEYS[1]) return math.max({wide})");
    assert_eq!(Script::read(text.as_bytes()), None);
}

#[test]
fn another_key_is_not_touched() {
    for text in [
        "return redis.call('del', ARGV[1])",
        "return redis.call('get', KEYS[2] or 'other')",
        "redis.call('incr', KEYS[1]) return redis.call('get', KEYS[1] .. ':x')",
    ] {
        assert_eq!(
            run(text, Some("1"), &["other"]).0,
            Err(Failure::Unknown),
            "{text}"
        );
    }
}

#[test]
fn texts_do_not_grow_for_ever() {
    let doubled = "s = s .. s ".repeat(60);
    let text = format!("redis.call('get', KEYS[1]) local s = 'x' {doubled} return #s");
    assert_eq!(run(&text, None, &[]).0, Err(Failure::TooLong));
    let long = "v".repeat(2 << 20);
    let joined = "redis.call('exists', KEYS[1]) return 'a' .. ARGV[1] .. 'b'";
    assert!(run(joined, None, &[&long]).0.is_ok());
    for line in [
        "redis.call('exists', KEYS[1]) return redis.status_reply(ARGV[1])",
        "redis.call('exists', KEYS[1]) return {err = ARGV[1]}",
    ] {
        assert_eq!(run(line, None, &[&long]).0, Err(Failure::TooLong));
    }
}

/// Class of bug: a list names one value many times, and the answer has as many copies.
#[test]
fn an_answer_has_a_limit() {
    let answer = |times: usize, value: &str| {
        let list = vec!["v"; times].join(", ");
        let text = format!("local v = redis.call('get', KEYS[1]) return {{{list}}}");
        run(&text, Some(value), &[]).0
    };
    let (large, small) = ("v".repeat(2 << 20), "v".repeat(1 << 10));
    assert!(answer(1, &large).is_ok() && answer(150, &small).is_ok());
    assert_eq!(answer(2, &large), Err(Failure::TooLong));
    assert_eq!(answer(150, &small.repeat(8)), Err(Failure::TooLong));
}

/// Class of bug: a script of few bytes looks at a long text again and again, and nobody counts that.
#[test]
fn what_a_script_looks_at_is_counted() {
    let long = "7".repeat(1 << 20);
    let steps = |text: &str| ran(text, Some(&long), &[&long]).0.steps;
    let few = steps("return redis.call('get', KEYS[1])");
    assert!((1..20).contains(&few), "{few}");
    for look in ["v == ARGV[1]", "v < ARGV[1]", "v .. 'x'"] {
        let text = format!("local v = redis.call('get', KEYS[1]) return {look}");
        let taken = steps(&text);
        assert!((1024..1100).contains(&taken), "{taken}: {look}");
        let looks = vec![look; 100].join(", ");
        let text = format!("local v = redis.call('get', KEYS[1]) return {{{looks}}}");
        let (ran, _) = ran(&text, Some(&long), &[&long]);
        assert_eq!(ran.value, Err(Failure::TooLong), "{look}");
        assert!(ran.steps < 12_000, "{}: {look}", ran.steps);
    }
    // A long text is no number: nobody reads it to find that out.
    for look in [
        "tonumber(v)",
        "redis.pcall('set', KEYS[1], v)",
        "type(v)",
        "#v",
    ] {
        let looks = vec![look; 100].join(", ");
        let taken = steps(&format!(
            "local v = ARGV[1] return {{redis.call('get', KEYS[1]), {looks}}}"
        ));
        assert!(taken < 2_000, "{taken}: {look}");
    }
    let sum = format!(
        "redis.call('get', KEYS[1]) return {}",
        "ARGV[1] + ".repeat(50) + "1"
    );
    let refused = b"ERR the script fails: attempt to perform arithmetic on a string value";
    assert_eq!(
        run(&sum, None, &[&long]).0,
        Err(Failure::Error(refused.into()))
    );
}

#[test]
fn numbers_become_integers_as_in_redis() {
    let reach = 2_f64.powi(63);
    for (number, expected) in [
        (1.9, 1),
        (-1.9, -1),
        (-0.0, 0),
        (1e15, 1_000_000_000_000_000),
        (-reach, i64::MIN),
        (reach, i64::MIN),
        (1e300, i64::MIN),
        (f64::INFINITY, i64::MIN),
        (f64::NEG_INFINITY, i64::MIN),
        (f64::NAN, i64::MIN),
    ] {
        assert_eq!(integer(number), expected, "{number}");
    }
}

/// Class of bug: two answers of equal parts are one.
#[test]
fn a_comparison_of_lists_is_not_known() {
    let text = "redis.call('get', KEYS[1]) return redis.call('time') == redis.call('time')";
    assert_eq!(run(text, None, &[]).0, Err(Failure::Unknown));
    let by_name = "redis.call('get', KEYS[1]) local n = 'ok' return redis.call('time')[n]";
    assert_eq!(run(by_name, None, &[]).0, Err(Failure::Unknown));
}
