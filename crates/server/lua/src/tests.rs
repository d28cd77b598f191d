//! Scripts and what comes of them.

use super::*;

/// Answers with what it was called with; `get` with nothing, `fail` with an error, `long` with many texts, `walk` with the
/// work of many commands.
struct Echo;

impl Host for Echo {
    fn call(&mut self, words: &[&[u8]], _resp: u8, allowed: Allowance) -> Answer {
        let list = |words: &[&[u8]]| {
            let mut answer = format!("*{}\r\n", words.len()).into_bytes();
            for word in words {
                answer.extend(format!("${}\r\n", word.len()).into_bytes());
                answer.extend_from_slice(word);
                answer.extend(b"\r\n");
            }
            answer
        };
        let bytes = match words[0] {
            b"get" => b"$-1\r\n".to_vec(),
            b"fail" => b"-ERR it failed\r\n".to_vec(),
            b"ok" | b"walk" => b"+OK\r\n".to_vec(),
            b"nils" => b"*2\r\n_\r\n:2\r\n".to_vec(),
            b"long" => list(&[&[b'x'; 1000][..]; 4000]),
            _ => list(words),
        };
        let steps = match words[0] {
            b"walk" => allowed.steps / 2,
            _ => 0,
        };
        Answer { bytes, steps }
    }
}

const LIMITS: Limits = Limits {
    memory: 8 << 20,
    steps: 1_000_000,
};

fn interpreter() -> Interpreter {
    Interpreter::new(LIMITS, ("7.4.0", 0x0007_0400), Default::default()).unwrap()
}

fn run_in(lua: &mut Interpreter, text: &str) -> Result<Value, Failure> {
    let source = Source::read(text.as_bytes()).unwrap();
    lua.run(&source, &[b"k"], &[b"a", b"b"], &mut Echo).value
}

/// Runs it with as many steps as it wants: on a busy machine what is paid by the clock costs many.
fn run(text: &str) -> Result<Value, Failure> {
    let limits = Limits {
        steps: 1 << 40,
        ..LIMITS
    };
    let lua = Interpreter::new(limits, ("7.4.0", 0x0007_0400), Default::default());
    run_in(&mut lua.unwrap(), text)
}

/// The text that a script returns.
fn text(script: &str) -> String {
    match run(script) {
        Ok(Value::Text(text)) => String::from_utf8(text).unwrap(),
        other => panic!("{script}: {other:?}"),
    }
}

/// The words of the error with which a script ends.
fn error(script: &str) -> String {
    match run(script) {
        Err(Failure::Error(words)) => String::from_utf8(words).unwrap(),
        other => panic!("{script}: {other:?}"),
    }
}

#[test]
fn values_become_answers() {
    for (script, expected) in [
        ("return 2.9", Value::Integer(2)),
        ("return true", Value::Integer(1)),
        ("return false", Value::Nil),
        ("return", Value::Nil),
        ("return redis.call('get', 'x') == false", Value::Integer(1)),
        ("return redis.call('ok')", Value::Status(b"OK".to_vec())),
        (
            "return {err = 'My words'}",
            Value::Error(b"My words".to_vec()),
        ),
        (
            "return redis.error_reply('x')",
            Value::Error(b"ERR x".to_vec()),
        ),
        (
            "return redis.status_reply('x')",
            Value::Status(b"x".to_vec()),
        ),
        (
            "redis.setresp(3) return redis.call('nils')[1] == nil",
            Value::Bool(true),
        ),
        ("return {double = 1.5}", Value::Double(1.5)),
        (
            "return {big_number = '-12'}",
            Value::BigNumber(b"-12".to_vec()),
        ),
        (
            "return {verbatim_string = {format = 'md\\0x', string = '*x*'}}",
            Value::Verbatim {
                format: *b"md ",
                text: b"*x*".to_vec(),
            },
        ),
        (
            "return {verbatim_string = {format = 'mdx'}, big_number = 1}",
            Value::List(vec![]),
        ),
        (
            "return {1, 'x', nil, 3}",
            Value::List(vec![Value::Integer(1), Value::Text(b"x".to_vec())]),
        ),
        ("redis.setresp(3) return true", Value::Bool(true)),
        (
            "return redis.pcall('fail').err",
            Value::Text(b"ERR it failed".to_vec()),
        ),
        (
            "return redis.pcall('fail')",
            Value::Error(b"ERR it failed".to_vec()),
        ),
        (
            "return redis.call('x', 1, 1.5, KEYS[1], ARGV[2])",
            Value::List(
                [&b"x"[..], b"1", b"1.5", b"k", b"b"]
                    .map(|it| Value::Text(it.to_vec()))
                    .to_vec(),
            ),
        ),
    ] {
        assert_eq!(run(script), Ok(expected), "{script}");
    }
}

/// Scripts, and the words of the errors with which they end.
const ERRORS: &[(&str, &str)] = &[
    (
        "x = 1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "\nreturn x",
        "ERR user_script:2: Script attempted to access nonexistent global variable 'x'",
    ),
    (
        "string.foo = 1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "KEYS = {}",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "return rawset(_G, 'a', 1)",
        "ERR Attempt to modify a readonly table",
    ),
    ("table.insert(string, 1)", "ERR library:"),
    (
        "redis.call()",
        "ERR Please specify at least one argument for this redis lib call",
    ),
    (
        "redis.call({})",
        "ERR Lua redis lib command arguments must be strings or integers",
    ),
    (
        "local t, s = {}, ('x'):rep(2^20) for i = 1, 4000 do t[i] = s end redis.call('x', unpack(t))",
        "ERR the arguments of a command are longer than the memory of a script",
    ),
    ("redis.call('fail')", "ERR it failed"),
    ("error('boo')", "ERR user_script:1: boo"),
    ("error({err = 'My err'})", "My err"),
    ("error({})", "ERR unknown error"),
    ("error()", "ERR nil"),
    ("error(nil)", "ERR nil"),
    ("error(true)", "ERR true"),
    ("error(5, 0)", "ERR 5"),
    ("error({err = 5})", "5"),
    ("error(redis.call)", "ERR unknown error"),
    (
        "return +",
        "ERR Error compiling script (new function): user_script:1: unexpected symbol near '+'",
    ),
    (
        "local a; return a.b",
        "ERR user_script:1: attempt to index local 'a' (a nil value)",
    ),
    ("redis.sha1hex()", "wrong number of arguments"),
    ("redis.setresp(4)", "RESP version must be 2 or 3."),
    ("local t = {} t[1] = t return t", crate::convert::TOO_LARGE),
    (
        "local t = {} for _ = 1, 40 do t = {t, t} end return t",
        crate::convert::TOO_LARGE,
    ),
    ("\u{1b}Lua", "ERR Error compiling script"),
    ("return ('x'):rep(1e9)", ""),
    (
        "local at = string.find('a', '[a')",
        "ERR user_script:1: malformed pattern (missing ']')",
    ),
];

#[test]
fn errors_have_redis_words() {
    for &(script, words) in ERRORS {
        match run(script) {
            Err(Failure::Error(said)) => {
                let said = String::from_utf8_lossy(&said).into_owned();
                assert!(said.contains(words), "{script}: {said}");
            }
            Err(Failure::OutOfMemory | Failure::TooLong) if words.is_empty() => {}
            other => panic!("{script}: {other:?}"),
        }
    }
}

/// Scripts, and the texts that they return.
const LIBRARY: &[(&str, &str)] = &[
    ("return ('hello world'):gsub('o', '0')", "hell0 w0rld"),
    ("return (('abc'):gsub('%w', '%0%0', 2))", "aabbc"),
    ("return (('hello'):gsub('', '-'))", "-h-e-l-l-o-"),
    ("return (('abc'):gsub('b*', 'x'))", "xaxxcx"),
    (
        "return (('$a $b'):gsub('%$(%w+)', {a = 'one', b = 2}))",
        "one 2",
    ),
    (
        "return (('a b'):gsub('%w', function(c) return c == 'a' and 'x' or nil end))",
        "x b",
    ),
    (
        "local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t + 1] = k .. v end return table.concat(t, ' ')",
        "a1 b2",
    ),
    ("return ('key:123'):match('^key:(%d+)$')", "123"),
    (
        "return table.concat({('a.b'):find('.', 1, true)}, ',')",
        "2,2",
    ),
    (
        "return table.concat({('abc'):find('b()(c)')}, ',')",
        "2,3,3,c",
    ),
    (
        "local t = {5, 2, 9, 1} table.sort(t) return table.concat(t, ',')",
        "1,2,5,9",
    ),
    (
        "local t = {5, 2, 9, 1} table.sort(t, function(a, b) return a > b end) return table.concat(t, ',')",
        "9,5,2,1",
    ),
    (
        "local t = {1, 2} table.insert(t, 1, 0) table.insert(t, 3) return table.concat(t, ',')",
        "0,1,2,3",
    ),
    (
        "local t = {1, 2, 3} local it = table.remove(t, 1) return it .. table.concat(t, ',') .. table.remove(t)",
        "12,33",
    ),
    (
        "return tostring(1e15) .. tostring(2^53) .. tostring(0.1)",
        "1e+159.007199254741e+150.1",
    ),
    (
        "return math.random(1000) .. ' ' .. tostring(math.random(5, 9))",
        "397 9",
    ),
    ("return ('x'):rep(3)", "xxx"),
    (
        "return redis.sha1hex('a')",
        "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
    ),
    (
        "return cjson.encode({1, 'x\\n', {a = true}, cjson.null})",
        "[1,\"x\\n\",{\"a\":true},null]",
    ),
    (
        "return cjson.encode({}) .. cjson.encode('a/b')",
        "{}\"a\\/b\"",
    ),
    (
        "local t = cjson.decode('{\"a\":[1,2.5,null]}') return t.a[1] .. t.a[2] .. tostring(t.a[3] == cjson.null)",
        "12.5true",
    ),
    ("return loadstring('return 1 .. ...')('x')", "1x"),
    ("return loadstring('return \"y\"', 'a\\0b')()", "y"),
    (
        "return select(2, pcall(loadstring('error(\"x\")', '=a\\0b')))",
        "a:1: x",
    ),
    (
        "local n = 0 return load(function() n = n + 1 return ({'return ', '\"y\"'})[n] end)()",
        "y",
    ),
    (
        "return tostring(pcall(error)) .. select(2, pcall(error, 'x')) .. select(2, pcall(redis.call, 'fail'))",
        "falsexERR it failed",
    ),
    (
        "return select(2, xpcall(function() error('x', 0) end, function(e) return e .. '!' end))",
        "x!",
    ),
    (
        "return type(_G.string) .. tostring(rawget(_G, 'nothing')) .. type(rawget(_G, 'redis'))",
        "tableniltable",
    ),
    ("return table.concat({unpack({1, 2, 3})}, ',')", "1,2,3"),
    (
        "return ('Ab'):upper() .. ('Ab'):lower() .. ('Ab'):reverse() .. ('abc'):sub(-2) .. ('abc'):sub(1, 1) .. #'ab' .. ('a'):byte() .. string.char(98)",
        "ABabbAbca297b",
    ),
    (
        "return tonumber('0x10') .. tonumber('z', 36) .. tostring(tonumber('x')) .. table.maxn({1, 2, [9] = 1}) .. table.getn({1, 2})",
        "1635nil92",
    ),
    (
        "return table.concat({1, 'a', 3}, '-', 2) .. table.concat({}) .. table.concat({'x', 'y'}, ',', 2, 1)",
        "a-3",
    ),
    (
        "local s = '' table.foreach({a = 1}, function(k, v) s = s .. k .. v end) return s .. table.foreachi({5, 6}, function(k, v) return v end)",
        "a15",
    ),
    (
        "return string.format('%5.2f|%s|%q', 1.234, 'x', 'y')",
        " 1.23|x|\"y\"",
    ),
];

#[test]
fn the_library_is_lua_s() {
    for (script, expected) in LIBRARY {
        assert_eq!(text(script), *expected, "{script}");
    }
}

/// Nothing of a script is left for the next, and nothing of the server can be reached or changed.
#[test]
fn a_script_leaves_nothing() {
    let mut lua = interpreter();
    for name in [
        "print",
        "dofile",
        "loadfile",
        "require",
        "module",
        "newproxy",
        "getfenv",
        "setfenv",
        "coroutine",
        "debug",
        "io",
        "package",
    ] {
        let said = run_in(&mut lua, &format!("return {name}"));
        let words = format!(
            "ERR user_script:1: Script attempted to access nonexistent global variable '{name}'"
        );
        assert_eq!(said, Err(Failure::Error(words.into_bytes())));
    }
    for script in [
        "getmetatable('').__index = nil",
        "setmetatable(string, {})",
        "setmetatable(_G, nil)",
        "rawset(redis, 'call', nil)",
        "redis.call = nil",
        "string.dump(function() end)",
        "os.execute('x')",
        "table.sort(string, function() end) string[1] = 1",
    ] {
        assert!(run_in(&mut lua, script).is_err(), "{script}");
    }
    let _ = run_in(&mut lua, "math.randomseed(7) redis.setresp(3)");
    assert_eq!(
        run_in(&mut lua, "return math.random(1000)"),
        Ok(Value::Integer(397))
    );
    assert_eq!(
        run_in(&mut lua, "return {true}"),
        Ok(Value::List(vec![Value::Integer(1)]))
    );
}

/// Each ends, and the state runs the next script.
#[test]
fn hostile_scripts_end() {
    let mut lua = interpreter();
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "pcall(pcall, pcall, function() while true do end end) while true do end",
        "xpcall(function() while true do end end, function() while true do end end)",
        "xpcall(function() error('x') end, function() while true do end end)",
        "local function f() return f() end return f()",
        "local function f() return pcall(f) end while true do f() end",
        "local function f() pcall(f) f() end f()",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end",
        "return ('a'):rep(120):find(('a*'):rep(30) .. 'b')",
        "while true do pcall(string.find, ('a'):rep(120), ('a*'):rep(30) .. 'b') end",
        "while true do pcall(string.gsub, ('a'):rep(120), ('a-'):rep(30) .. 'b', 'x') end",
        "for _ in ('a'):rep(120):gmatch(('a?'):rep(100) .. 'b') do end while true do end",
        "local t = {} for i = 1, 1e5 do t[i] = -i end table.sort(t, function() while true do end end)",
        "local s = ('x'):rep(1e6) while true do local t = s .. 'y' end",
        "local s = ('x'):rep(1e6) while true do local t = s:rep(2) end",
        "while true do redis.call('x') end",
        "while true do redis.pcall('fail') end",
        "local s = ('x'):rep(2e6) while true do local t = s .. 'y' end",
        "local a, b = ('x'):rep(2e6) .. 'a', ('x'):rep(2e6) .. 'b' while true do local t = a < b end",
        "local s = (' '):rep(2e6) while true do tonumber(s) end",
        "local s = ('x'):rep(2e6) while true do s:upper() s:lower() s:reverse() end",
        "local s = ('x'):rep(2e6) while true do s:sub(2) end",
        "local s = ('x'):rep(2e6) while true do pcall(string.format, '%s%s', s, s) end",
        "local s = ('x'):rep(7000) while true do local t = select('#', s:byte(1, -1)) end",
        "local t = {} for i = 1, 7000 do t[i] = 1 end while true do local n = select('#', unpack(t)) end",
        "local t = {} for i = 1, 7000 do t[i] = 'x' end while true do table.concat(t) end",
        "local t = {} for i = 1, 7000 do t[i] = 1 end while true do table.maxn(t) end",
        "local t = {} for i = 1, 7000 do t[i] = 1 end while true do table.foreach(t, type) table.foreachi(t, type) end",
        "while true do redis.pcall('long') end",
        "while true do redis.pcall('walk') end",
        "local t = {} while true do t[#t + 1] = redis.call('long') end",
        "while true do pcall(loadstring, ('x=1 '):rep(10000)) end",
        "local t = {} while true do t[#t + 1] = t end",
        "local s = 'x' while true do s = s .. s end",
        "local s = {} while true do s[#s + 1] = ('x'):rep(1000) .. #s end",
        "local s = 'x' while true do pcall(function() while true do s = s .. s end end) end",
        "return ('x'):rep(2^40)",
        "return ('%99999d'):format(1)",
        "local t = {} for i = 1, 1e6 do t[i] = 'xxxxxxxxxxxxxxxx' end return table.concat(t)",
        "while true do redis.log(redis.LOG_DEBUG, 'x') end",
        "return cjson.decode(('['):rep(1e5))",
        "return cjson.decode('[' .. ('{},'):rep(1e6) .. '0]')",
        "return cjson.decode('[' .. ('{\"a\":1},'):rep(1e6) .. '0]')",
        "local t = {} for _ = 1, 2000 do t = {t} end return cjson.encode(t)",
        "local function f() return 1 + f() end return f()",
        "return ('x'):find(('('):rep(40))",
        "return ('x'):rep(1000):find(('x?'):rep(1000))",
        "return unpack({}, 1, 1e8)",
        "local f f = function() return tostring(setmetatable({}, {__tostring = f})) end return f()",
        "return ('x'):gsub('x', function() return ('x'):gsub('x', function() while true do end end) end)",
    ] {
        let said = run_in(&mut lua, script);
        assert!(said.is_err(), "{script}: {said:?}");
        if lua.is_spent() {
            lua = interpreter();
        }
        assert_eq!(
            run_in(&mut lua, "return 1"),
            Ok(Value::Integer(1)),
            "{script}"
        );
    }
}

/// What takes long is not run, but read.
#[test]
fn hostile_texts_end() {
    let mut lua = interpreter();
    for script in [
        "while true do loadstring('return ' .. ('1+'):rep(2^19) .. '1') end",
        "while true do loadstring('return a' .. ('+a'):rep(2^19)) end",
        "while true do loadstring('return a' .. ('..a'):rep(2^18)) end",
        "while true do loadstring('return ' .. ('('):rep(2^18)) end",
        "while true do loadstring('x' .. ('=function() x'):rep(2^15)) end",
        "while true do loadstring('return {' .. ('{},'):rep(2^18) .. '}') end",
        "while true do loadstring(('if a then '):rep(2^16)) end",
        "while true do loadstring('goto x ' .. ('local a '):rep(2^16)) end",
    ] {
        let said = run_in(&mut lua, script);
        assert!(said.is_err(), "{script}: {said:?}");
        if lua.is_spent() {
            lua = interpreter();
        }
    }
}

/// Garbage does not count as memory.
#[test]
fn long_texts_are_collected() {
    for script in [
        "local s = ('x'):rep(500000) for i = 1, 2000 do local t = s .. i end return 1",
        "for i = 1, 2000 do local t = ('x'):rep(500000) end return 1",
        "for i = 1, 50 do redis.call('long') end return 1",
        "local t = {} for i = 1, 200000 do t[i % 1000] = {i} end return 1",
    ] {
        let limits = Limits {
            steps: 1 << 40,
            ..LIMITS
        };
        let mut lua = Interpreter::new(limits, ("7.4.0", 0), Default::default()).unwrap();
        assert_eq!(run_in(&mut lua, script), Ok(Value::Integer(1)), "{script}");
    }
}

#[test]
fn a_script_that_is_stopped_ends() {
    let course = std::sync::Arc::new(Course::default());
    course.begin();
    assert_eq!(course.stop(), Stopped::Yes);
    let mut lua = Interpreter::new(LIMITS, ("7.4.0", 0), course).unwrap();
    let said = run_in(
        &mut lua,
        "while true do pcall(function() while true do end end) end",
    );
    assert_eq!(said, Err(Failure::Stopped));
    assert_eq!(error("error(5)"), "ERR user_script:1: 5");
}

/// It has written, so nobody may stop it; but a server that stops does not wait for it. Nor for those behind it.
#[test]
fn scripts_end_when_the_server_stops() {
    let course = std::sync::Arc::new(Course::default());
    let limits = Limits {
        steps: 1 << 40,
        ..LIMITS
    };
    let mut lua = Interpreter::new(limits, ("7.4.0", 0), std::sync::Arc::clone(&course)).unwrap();
    course.begin();
    assert!(course.writes());
    course.close(std::time::Duration::from_millis(50));
    assert_eq!(run_in(&mut lua, "return 1"), Ok(Value::Integer(1)));
    for _ in 0..2 {
        let said = run_in(&mut lua, "while true do pcall(redis.call, 'ok') end");
        assert_eq!(said, Err(Failure::Closed));
        course.end();
        course.begin();
    }
    course.reopen();
    let long = "for _ = 1, 1e5 do end return 1";
    assert_eq!(run_in(&mut lua, long), Ok(Value::Integer(1)));
}

/// Numbers at the borders of what integers hold.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "-2",
    "2.5",
    "7999",
    "8000",
    "2^31 - 1",
    "2^31",
    "2^31 + 5",
    "-2^31",
    "-2^31 - 1",
    "2^32",
    "-2^32",
    "2^53",
    "-2^53",
    "2^63",
    "-2^63",
    "1e308",
    "-1e308",
    "1/0",
    "-1/0",
    "0/0",
];

/// Calls of two numbers.
const CALLS: &[&str] = &[
    "unpack({}, a, b)",
    "unpack({1, 2, 3}, a, b)",
    "pcall(unpack, {}, a, b)",
    "('abc'):sub(a, b)",
    "('abc'):byte(a, b)",
    "('abc'):rep(a)",
    "(''):rep(a)",
    "('abc'):find('b', a)",
    "('abc'):find('b', a, true)",
    "('abc'):match('b', a)",
    "('abc'):gsub('b', 'x', a)",
    "select(a, 1, 2, 3)",
    "table.concat({1, 2, 3}, ',', a, b)",
    "table.remove({1, 2, 3}, a)",
    "string.char(a, b)",
    "string.format('%d %i %u %c %x %99.99f %g', a, b, a, b, a, b, a)",
    "string.format('%.' .. a .. 'f', b)",
    "string.format('%' .. a .. 'd', b)",
    "math.random(a)",
    "math.random(a, b)",
    "math.randomseed(a)",
    "math.ldexp(a, b)",
    "math.fmod(a, b)",
    "tonumber('10', a)",
    "error('x', a)",
    "ipairs({})({}, a)",
    "redis.log(a, 'x')",
    "redis.setresp(a)",
    "cjson.encode({[a] = b})",
];

/// Lua's own functions take integers of 32 bits, and some compute with them before they look: no number may take them out
/// of their memory. What each says of it does not matter here; what it leaves does.
#[test]
fn no_number_is_too_large_for_a_function() {
    let list = NUMBERS.join(", ");
    let mut lua = interpreter();
    for call in CALLS {
        for number in NUMBERS {
            let script = format!(
                "local a = {number} for _, b in ipairs({{{list}}}) do pcall(function() return {call} end) end return 7"
            );
            let said = run_in(&mut lua, &script);
            // What is as long as a number says may be too long.
            let ends = matches!(said, Ok(Value::Integer(7)) | Err(Failure::TooLong));
            assert!(ends, "{call}, {number}: {said:?}");
            if lua.is_spent() {
                lua = interpreter();
            }
        }
    }
    for (from, to) in [
        ("-1", "2147483647"),
        ("0", "2147483647"),
        ("-2147483648", "2147483647"),
        ("-2147483648", "0"),
        ("-2", "2147483646"),
        ("1", "7998"),
        ("0/0", "1"),
        ("1", "0/0"),
        ("-1e308", "1e308"),
    ] {
        let said = error(&format!("return {{unpack({{}}, {from}, {to})}}"));
        assert_eq!(said, "ERR user_script:1: too many results to unpack");
    }
    // An insert moves as many values as its place is far away.
    let far = run_in(&mut lua, "table.insert({1}, -2^53, 1)");
    assert_eq!(far, Err(Failure::TooLong));
    assert_eq!(
        run_in(
            &mut lua,
            "return select('#', unpack({}, 1, 7997)) + select('#', unpack({}, 2^31, 5))"
        ),
        Ok(Value::Integer(7997))
    );
}

/// A text is compiled once, and what that takes is work of the script.
#[test]
fn compiling_takes_steps() {
    let mut lua = interpreter();
    let text = format!("return 1 --{}", "x".repeat(1 << 20));
    let source = Source::read(text.as_bytes()).unwrap();
    let mut steps = || lua.run(&source, &[], &[], &mut Echo).steps;
    assert!(steps() > 200_000);
    assert!(steps() < 10_000);
}
