//! Scripts in Lua (`--lua`), and what others hear while one runs.

use std::io::Write;
use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use nuthatch_server::Config;

use super::client::{Client, pause};
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

/// Steps that no test waits for.
const FOREVER: u32 = 1_000_000;

fn with_lua(steps: u32) -> Config {
    Config {
        lua: true,
        lua_steps: NonZeroU32::new(steps).unwrap(),
        lua_busy: Duration::ZERO,
        ..both()
    }
}

fn eval(text: &str, words: &str) -> Vec<u8> {
    let words = words.split(' ').map(str::as_bytes);
    let all: Vec<&[u8]> = [&b"EVAL"[..], text.as_bytes()]
        .into_iter()
        .chain(words)
        .collect();
    request(&all)
}

fn say(client: &mut Client, text: &str, words: &str, answer: &str) {
    ask(client, &eval(text, words), answer.as_bytes());
}

/// Scripts, their words, and their answers.
const SEVERAL_KEYS: &[(&str, &str, &str)] = &[
    (
        "return {KEYS[1], KEYS[2], ARGV[1], #KEYS, #ARGV}",
        "2 a b c",
        "*5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n:2\r\n:1\r\n",
    ),
    (
        "for i = 1, 100 do redis.call('SET', 'k' .. i, i) end return redis.call('MGET', 'k1', 'k100', 'none')",
        "0",
        "*3\r\n$1\r\n1\r\n$3\r\n100\r\n$-1\r\n",
    ),
    (
        "return redis.call('DEL', 'k1', 'k2', 'none')",
        "0",
        ":2\r\n",
    ),
    (
        "return redis.call('RENAME', KEYS[1], KEYS[2])",
        "2 k3 k4",
        "+OK\r\n",
    ),
    (
        "return redis.call('INCR', KEYS[1]) + redis.call('INCRBY', KEYS[2], ARGV[1])",
        "2 x y 5",
        ":6\r\n",
    ),
    ("return redis.pcall('INCR', KEYS[1])", "2 x y", ":2\r\n"),
    (
        "redis.call('SET', KEYS[1], 'text') return redis.call('INCR', KEYS[1])",
        "2 x y",
        "-ERR value is not an integer or out of range\r\n",
    ),
    (
        "redis.call('SELECT', 3) redis.call('SET', 'there', 1) return redis.call('EXISTS', 'there')",
        "0",
        ":1\r\n",
    ),
    ("return redis.call('EXISTS', 'there')", "2 a b", ":0\r\n"),
    (
        "local big = string.rep('v', 300000) redis.call('SET', 'big', big) return redis.call('GET', 'big') == big",
        "0",
        ":1\r\n",
    ),
    (
        "return redis.call('APPEND', 'big', string.rep('w', 300000))",
        "0",
        ":600000\r\n",
    ),
    (
        "return redis.call('SUBSCRIBE', 'c')",
        "0",
        "-ERR This Redis command is not allowed from script\r\n",
    ),
    (
        "return redis.call('MULTI')",
        "0",
        "-ERR This Redis command is not allowed from script\r\n",
    ),
    (
        "return redis.call('EVAL', 'return 1', 0)",
        "0",
        "-ERR This Redis command is not allowed from script\r\n",
    ),
];

#[test]
fn a_script_changes_several_keys() {
    let server = Fixture::with(with_lua(200), Wants::default());
    let mut client = server.redis_client();
    for (text, words, answer) in SEVERAL_KEYS {
        say(&mut client, text, words, answer);
    }
}

#[test]
fn a_script_is_called_by_its_name() {
    let server = Fixture::with(with_lua(200), Wants::default());
    let mut client = server.redis_client();
    let text = b"return redis.call('INCRBY', KEYS[1], KEYS[2])";
    client.send(request(&[b"SCRIPT", b"LOAD", text]));
    let name = client.line();
    assert_eq!(name, "$40");
    let name = client.line();
    for answer in [":2\r\n", ":4\r\n"] {
        ask(
            &mut client,
            &line(&format!("EVALSHA {name} 2 k 2")),
            answer.as_bytes(),
        );
    }
    ask(
        &mut client,
        &line(&format!("SCRIPT EXISTS {name} {}", "0".repeat(40))),
        b"*2\r\n:1\r\n:0\r\n",
    );
    ask(&mut client, &line("SCRIPT FLUSH"), b"+OK\r\n");
    let gone = b"-NOSCRIPT No matching script. Please use EVAL.\r\n";
    ask(&mut client, &line(&format!("EVALSHA {name} 2 k 2")), gone);
    let reads_only = b"-ERR Write commands are not allowed from read-only scripts.\r\n";
    ask(
        &mut client,
        &request(&[b"EVAL_RO", text, b"2", b"k", b"2"]),
        reads_only,
    );
    ask(
        &mut client,
        &request(&[b"EVAL_RO", b"return redis.call('GET', KEYS[1])", b"1", b"k"]),
        b"$1\r\n4\r\n",
    );
    say(
        &mut client,
        "#!lua flags=no-writes\nreturn redis.call('DEL', 'k')",
        "0",
        "-ERR Write commands are not allowed from read-only scripts.\r\n",
    );
}

#[test]
fn scripts_are_refused_without_the_switch() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    client.send(eval("return {1, 2}", "0"));
    assert!(client.line().contains("--lua"));
    client.send(request(&[b"EVAL_RO", b"return 1", b"0"]));
    assert!(client.line().starts_with("-ERR"));
    ask(
        &mut client,
        &line("SCRIPT KILL"),
        b"-NOTBUSY No scripts in execution right now.\r\n",
    );
}

#[test]
fn a_script_without_end_is_ended() {
    let server = Fixture::with(with_lua(1), Wants::default());
    let mut client = server.redis_client();
    let ended = "-ERR the script was ended: it took more steps than it may (-o lua_steps)\r\n";
    let memory = "-ERR the script was ended: it needs more memory than it may (-o lua_memory)\r\n";
    say(&mut client, "while true do end", "0", ended);
    say(
        &mut client,
        "while true do pcall(redis.call, 'PING') end",
        "0",
        ended,
    );
    say(
        &mut client,
        "while true do redis.call('SET', 'k', 'v') end",
        "0",
        ended,
    );
    say(
        &mut client,
        "return string.find(string.rep('a', 100), string.rep('a*', 20) .. 'b')",
        "0",
        ended,
    );
    for text in [
        "local s = ('x'):rep(2e6) while true do local t = s .. 'y' end",
        "local a, b = ('x'):rep(2e6) .. 'a', ('x'):rep(2e6) .. 'b' while true do local t = a < b end",
        "local s = (' '):rep(2e6) while true do tonumber(s) s:upper() s:sub(2) end",
        "local t = {} for i = 1, 7000 do t[i] = '' end while true do table.concat(t) end",
        "local t = {} for i = 1, 7000 do t[i] = 1 end while true do local n = select('#', unpack(t)) end",
        "local t = {} for i = 1, 7000 do t[i] = 1 end while true do table.foreach(t, type) end",
    ] {
        say(&mut client, text, "0", ended);
    }
    let patient = Fixture::with(with_lua(200), Wants::default());
    say(
        &mut patient.redis_client(),
        "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 100000) .. i end",
        "0",
        memory,
    );
    // What it has done before stays, and the next script finds nothing of it.
    ask(&mut client, &line("GET k"), b"$1\r\nv\r\n");
    say(
        &mut client,
        "return redis.call('GET', 'k')",
        "0",
        "$1\r\nv\r\n",
    );
}

/// A text of a script may be thousands of words of a command, and a value thousands of those of an answer.
#[test]
fn a_command_of_a_script_has_bounds() {
    let server = Fixture::with(with_lua(20), Wants::default());
    let mut client = server.redis_client();
    let words = "-ERR the arguments of a command are longer than the memory of a script\r\n";
    let answer =
        "-ERR the answer of the command is longer than the memory of a script (-o lua_memory)\r\n";
    let ended = "-ERR the script was ended: it took more steps than it may (-o lua_steps)\r\n";
    let many = |command: &str, word: &str| {
        format!(
            "local t = {{}} for i = 1, 4000 do t[i] = {word} end return redis.pcall('{command}', unpack(t))"
        )
    };
    let text = format!("local s = ('x'):rep(2^20) {}", many("MGET", "s"));
    say(&mut client, &text, "0", words);
    say(
        &mut client,
        "redis.call('SET', 'big', ('x'):rep(2^20 - 1000)) return redis.call('STRLEN', 'big')",
        "0",
        ":1047576\r\n",
    );
    say(&mut client, &many("MGET", "'big'"), "0", answer);
    // What a command does is work of its script.
    say(
        &mut client,
        "while true do redis.call('GETRANGE', 'big', 0, 500000) end",
        "0",
        ended,
    );
    say(
        &mut client,
        "while true do redis.pcall('KEYS', '*') end",
        "0",
        ended,
    );
    ask(&mut client, &line("DEL big"), b":1\r\n");
}

/// Others see all of a script's changes, or none.
#[test]
fn a_script_is_isolated() {
    let config = Config {
        lua_busy: Duration::from_secs(3600),
        ..with_lua(200)
    };
    let server = Fixture::with(config, Wants::default());
    let text = "for _ = 1, 50 do for i = 1, 8 do redis.call('INCR', 'k' .. i) end end return 0";
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut client = server.redis_client();
            scope.spawn(move || {
                for _ in 0..20 {
                    client.send(eval(text, "0"));
                    // A client may hear that another's script runs.
                    let _ = client.line();
                }
            });
        }
        let mut reader = server.client();
        scope.spawn(move || {
            for _ in 0..200 {
                reader.send("get k1 k8\r\n");
                let lines = reader.lines_until("END");
                let numbers: Vec<&String> = lines.iter().skip(1).step_by(2).collect();
                assert!(
                    numbers.windows(2).all(|pair| pair[0] == pair[1]),
                    "{lines:?}"
                );
            }
        });
    });
}

const BUSY: &str =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// Waits for a script to run for long. Which of these another worker serves than that of the script.
fn until_one_hears_busy(clients: &mut [Client]) -> usize {
    loop {
        let free = clients.iter_mut().position(|client| {
            client.send(line("GET k"));
            pause();
            client.has_input() && client.line() == BUSY
        });
        if let Some(free) = free {
            return free;
        }
    }
}

/// Also one that has written, which SCRIPT KILL does not end, and those that wait behind it.
#[test]
fn a_server_stops_though_scripts_run() {
    let server = Fixture::with(with_lua(FOREVER), Wants::default());
    let mut clients: Vec<Client> = (0..8).map(|_| server.redis_client()).collect();
    let mut runners: Vec<Client> = (0..4).map(|_| server.redis_client()).collect();
    let text = "redis.call('SET', 'k', 'v') while true do pcall(redis.call, 'GET', 'k') end";
    for runner in &mut runners {
        runner.send(eval(text, "1 k").repeat(3));
    }
    until_one_hears_busy(&mut clients);
    server.stop();
}

#[test]
fn others_hear_that_a_script_runs_and_stop_it() {
    let server = Fixture::with(with_lua(FOREVER), Wants::default());
    // Of two workers one runs the script.
    let mut clients: Vec<Client> = (0..8).map(|_| server.redis_client()).collect();
    for client in &mut clients {
        ask(client, &line("SET k v"), b"+OK\r\n");
    }
    let mut runner = server.redis_client();
    runner.send(eval("while true do redis.call('GET', 'k') end", "1 k"));
    let free = until_one_hears_busy(&mut clients);
    // None of these puts the worker to sleep until the script has ended.
    let said = format!("{BUSY}\r\n");
    for command in [
        "MGET k k k",
        "EXISTS k k",
        "DEL a b",
        "MSET a 1 b 2",
        "MSETNX a 1 b 2",
        "RENAME k l",
        "FLUSHALL",
        "SWAPDB 0 1",
        "CLIENT TRACKING ON",
        "EVAL (return) 0",
        "KEYS *",
        "SCAN 0",
        "RANDOMKEY",
        "OBJECT ENCODING k",
    ] {
        ask(&mut clients[free], &line(command), said.as_bytes());
    }
    ask(&mut clients[free], &line("SCRIPT KILL"), b"+OK\r\n");
    assert!(
        runner
            .line()
            .starts_with("-ERR Error running script: Script killed by user")
    );
    ask(
        &mut runner,
        &line("SCRIPT KILL"),
        b"-NOTBUSY No scripts in execution right now.\r\n",
    );
}

/// True if memcached's get was refused because a script runs; false if it was answered.
fn is_refused(client: &mut Client) -> bool {
    let first = client.line();
    let is_refused = first == "SERVER_ERROR busy running a script";
    if is_refused {
        client.expect_end();
    } else {
        assert_eq!(first, "VALUE k 0 1");
        assert_eq!(client.lines_until("END"), ["v"]);
    }
    is_refused
}

/// One of these is served by another worker than that of the script.
fn stop(killers: &mut [Client], runner: &mut Client) {
    for killer in killers {
        killer.send(line("SCRIPT KILL"));
    }
    assert!(
        runner
            .line()
            .starts_with("-ERR Error running script: Script killed by user")
    );
}

/// memcached's protocols have no answer like BUSY. A worker that slept until the script ends would not hear SCRIPT KILL.
#[test]
fn memcacheds_clients_do_not_keep_a_script_from_being_stopped() {
    let config = Config {
        lua_busy: Duration::from_millis(100),
        ..with_lua(FOREVER)
    };
    let server = Fixture::with(config, Wants::default());
    let mut others: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut others {
        client.send("set k 0 0 1\r\nv\r\n");
        assert_eq!(client.line(), "STORED");
    }
    let mut killers: Vec<Client> = (0..8).map(|_| server.redis_client()).collect();
    let mut runner = server.redis_client();
    runner.send(eval("while true do redis.call('GET', 'k') end", "1 k"));
    // These are answered until the script begins. Then they wait at first, until it has run for long.
    let mut asked = vec![false; others.len()];
    let mut refused = 0;
    while refused == 0 {
        for (client, asked) in others.iter_mut().zip(&mut asked) {
            if !std::mem::replace(asked, true) {
                client.send("get k\r\n");
            }
        }
        pause();
        for (client, asked) in others.iter_mut().zip(&mut asked) {
            if client.has_input() {
                refused += u32::from(is_refused(client));
                *asked = false;
            }
        }
    }
    stop(&mut killers, &mut runner);
    for (client, asked) in others.iter_mut().zip(asked) {
        if asked {
            is_refused(client);
        }
    }
    ask(&mut runner, &line("GET k"), b"$1\r\nv\r\n");
}

/// The last piece of a value comes while a script runs: such a value is stored outside of a batch.
#[test]
fn memcacheds_long_values_do_not_keep_a_script_from_being_stopped() {
    let config = Config {
        lua_busy: Duration::from_secs(1),
        ..with_lua(FOREVER)
    };
    let server = Fixture::with(config, Wants::default());
    let mut others: Vec<Client> = (0..8).map(|_| server.client()).collect();
    let value = "v".repeat(100_000);
    for (number, client) in others.iter_mut().enumerate() {
        client.send(format!("set long{number} 0 0 100000\r\n{value}"));
    }
    let mut killers: Vec<Client> = (0..8).map(|_| server.redis_client()).collect();
    let mut runner = server.redis_client();
    runner.send(eval("while true do redis.call('GET', 'k') end", "1 k"));
    (0..20).for_each(|_| pause());
    for client in &mut others {
        // It may have been closed by now.
        let _ = client.writer().write_all(b"\r\n");
    }
    until_one_hears_busy(&mut killers);
    stop(&mut killers, &mut runner);
    // Why a set was refused is lost with a connection that is closed before all of its input was read.
    for client in &mut others {
        let said = client.next_line();
        assert!(
            matches!(
                said.as_deref(),
                None | Some("STORED" | "SERVER_ERROR busy running a script")
            ),
            "{said:?}"
        );
    }
}

/// What a script does is not shown as its connection's, and it leaves no more traces than that.
#[test]
fn a_script_is_not_its_connection() {
    let server = Fixture::with(with_lua(20), Wants::default());
    let mut client = server.redis_client();
    ask(&mut client, &line("SET k v"), b"+OK\r\n");
    ask(&mut client, &line("CLIENT NO-TOUCH ON"), b"+OK\r\n");
    let text = "local it = redis.call('GET', 'k') redis.call('SELECT', 7) redis.call('RENAME', 'a', 'b') return it";
    client.send(eval(text, "0"));
    assert_eq!(client.line(), "-ERR no such key");
    let mut other = server.redis_client();
    other.send(line("CLIENT LIST ID 1"));
    other.line();
    let listed = other.line();
    assert!(listed.contains(" db=0 "), "{listed}");
    assert!(listed.contains(" cmd=eval "), "{listed}");
    let mut memcached = server.client();
    memcached.send("me k\r\n");
    let item = memcached.line();
    assert!(item.contains(" fetch=no "), "{item}");
}
