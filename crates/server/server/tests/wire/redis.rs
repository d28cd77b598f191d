//! Redis' protocol, on a port beside memcached's.

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Config, Protocol};

pub(super) fn both() -> Config {
    Config {
        listeners: vec![any_port(), any_port().of(Protocol::Redis)],
        ..config()
    }
}

/// A request of these words.
pub(super) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n", word.len()).bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// A request of words with one space between two of them.
pub(super) fn line(words: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    request(&words)
}

/// Sends, and expects; a last PING shows that nothing else came.
#[track_caller]
pub(super) fn ask(client: &mut Client, request: &[u8], reply: &[u8]) {
    client.send([request, &line("PING")].concat());
    client.expect([reply, b"+PONG\r\n"].concat());
}

#[test]
fn a_conversation_may_be_cut_anywhere() {
    let server = Fixture::with(both(), Wants::default());
    let said = [
        line("SET k v EX 100"),
        line("MGET k none k"),
        line("MSET a 1 b 2"),
        line("INCR a"),
        line("foo bar"),
        line("DEL a b none"),
        b"get k\r\n".to_vec(),
        line("MULTI"),
        line("GET k"),
        line("EXEC"),
    ]
    .concat();
    let answers: &[u8] = b"+OK\r\n*3\r\n$1\r\nv\r\n$-1\r\n$1\r\nv\r\n+OK\r\n:2\r\n\
        -ERR unknown command 'foo', with args beginning with: 'bar' \r\n:2\r\n$1\r\nv\r\n\
        +OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n";
    let mut client = server.redis_client();
    for cut in 1..said.len() {
        client.send(&said[..cut]);
        // A round of another client, so that the server sees the first piece by itself.
        ask(&mut server.redis_client(), b"", b"");
        client.send(&said[cut..]);
        client.expect(answers);
    }
}

/// A command that changes nothing is counted as what memcached would count: a number that is changed is no new item, and a
/// condition that does not hold is no miss.
#[test]
fn what_changes_nothing_is_counted_like_memcached() {
    let server = Fixture::with(both(), Wants::default());
    let (mut redis, mut text) = (server.redis_client(), server.client());
    let counted = |text: &mut Client, names: &[&str]| -> Vec<u64> {
        names.iter().map(|name| text.stat(name)).collect()
    };
    ask(&mut redis, &line("SET n 5"), b"+OK\r\n");
    for (command, number) in [
        ("INCR n", 6),
        ("DECRBY n 2", 4),
        ("INCRBY n 100", 104),
        ("DECRBY n 100", 4),
    ] {
        ask(
            &mut redis,
            &line(command),
            format!(":{number}\r\n").as_bytes(),
        );
    }
    ask(&mut redis, &line("GET n"), b"$1\r\n4\r\n");
    let numbers = ["total_items", "cmd_set", "incr_hits", "decr_hits"];
    assert_eq!(counted(&mut text, &numbers), [1, 1, 2, 2]);
    // Below 0 a number is a new item.
    ask(&mut redis, &line("DECRBY n 10"), b":-6\r\n");
    ask(&mut redis, &line("INCRBY n 10"), b":4\r\n");
    assert_eq!(counted(&mut text, &numbers), [3, 1, 3, 3]);

    for command in ["EXPIRE n 100 XX", "PERSIST n", "EXPIRE none 100"] {
        ask(&mut redis, &line(command), b":0\r\n");
    }
    let touches = ["cmd_touch", "touch_hits", "touch_misses"];
    assert_eq!(counted(&mut text, &touches), [3, 0, 1]);

    ask(&mut redis, &line("SET n 7 NX GET"), b"$1\r\n4\r\n");
    assert_eq!(text.stat("cmd_set"), 2);
    ask(&mut redis, &line("MSETNX m 1 n 2 m 3"), b":0\r\n");
    assert_eq!(counted(&mut text, &["cmd_set", "total_items"]), [4, 3]);
}

/// Class of bug: a queued request is executed while it is still the first in the queue.
#[test]
fn a_transaction_may_be_typed_by_hand() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let said = b"SET k v\r\nWATCH k\r\nMULTI\r\nGET k\r\nSET k w\r\nEXEC\r\nGET k\r\n";
    let answers = b"+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nv\r\n+OK\r\n$1\r\nw\r\n";
    ask(&mut client, said, answers);
    // More commands than one turn executes.
    let many = 3000;
    let said = [
        &b"WATCH k\nMULTI\n"[..],
        &b"GET k\n".repeat(many),
        b"EXEC\n",
    ]
    .concat();
    let answers = [
        &b"+OK\r\n+OK\r\n"[..],
        &b"+QUEUED\r\n".repeat(many),
        format!("*{many}\r\n").as_bytes(),
        &b"$1\r\nw\r\n".repeat(many),
    ]
    .concat();
    ask(&mut client, &said, &answers);
}

/// Class of bug: what is left of a transaction was lost when its EXEC was typed and a walk took the turn's work.
#[test]
fn a_transaction_that_is_typed_may_take_several_turns() {
    let server = Fixture::with(both(), Wants::default());
    let mut filling = server.client();
    filling.send(
        (0..30_000)
            .map(|number| format!("set key{number} 0 0 1 noreply\r\nx\r\n"))
            .collect::<String>(),
    );
    filling.ask("set g 0 0 1\r\ny\r\n", "STORED\r\n");
    let mut client = server.redis_client();
    let queued = "+QUEUED\r\n".repeat(3);
    client.send("WATCH w\r\nMULTI\r\nKEYS nothing*\r\nGET g\r\nGET g\r\n");
    client.expect(format!("+OK\r\n+OK\r\n{queued}"));
    let answers = b"*3\r\n*0\r\n$1\r\ny\r\n$1\r\ny\r\n";
    ask(&mut client, b"EXEC\r\n", answers);
}

#[test]
fn what_is_refused_is_passed_over() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let long = vec![b'x'; 3 << 20];
    ask(&mut client, &line("SET k old"), b"+OK\r\n");
    ask(
        &mut client,
        &request(&[b"SET", b"k", &long, b"EX", b"10"]),
        b"-ERR value is larger than this cache's limit of an item\r\n",
    );
    client.send(request(&[b"GET", &long]));
    let refused = client.line();
    assert!(refused.starts_with("-ERR key is longer than "), "{refused}");
    ask(
        &mut client,
        &request(&[b"ECHO", &long]),
        b"-ERR arguments are longer than 64 KiB\r\n",
    );
    ask(
        &mut client,
        &request(&[b"MSET", b"a", b"1", b"b", &long, b"c", b"3"]),
        b"-ERR value is larger than this cache's limit of an item\r\n",
    );
    ask(
        &mut client,
        &line("MGET k a b c"),
        b"*4\r\n$3\r\nold\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n",
    );
}

#[test]
fn arguments_behind_a_value_in_pieces_are_refused_when_they_are_announced() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let value = vec![b'x'; 100_000];
    client.send([&b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n"[..], &value].concat());
    client.send(b"\r\n$2\r\nEX\r\n$70000\r\n");
    client.expect(b"-ERR arguments are longer than 64 KiB\r\n");
    client.send([&[b'1'; 70_000][..], b"\r\n", &line("EXISTS k")].concat());
    client.expect(b":0\r\n");
}

#[test]
fn a_request_of_very_many_keys_is_not_held() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    const KEYS: usize = 300_000;
    let mut said = format!("*{}\r\n$6\r\nEXISTS\r\n", KEYS + 1).into_bytes();
    said.extend(b"$8\r\nkey:1234\r\n".repeat(KEYS));
    ask(&mut client, &line("SET key:1234 v"), b"+OK\r\n");
    ask(&mut client, &said, format!(":{KEYS}\r\n").as_bytes());
}

#[test]
fn a_store_that_finds_no_memory_leaves_the_old_value() {
    let wants = Wants {
        memory: 8 << 20,
        item_size_max: 256 << 10,
        evicts: false,
    };
    let server = Fixture::with(both(), wants);
    let mut client = server.redis_client();
    ask(&mut client, &line("SET k old"), b"+OK\r\n");
    let value = vec![b'v'; 100 << 10];
    let full = (0..200).find(|number| {
        client.send(request(&[
            b"SET",
            format!("key:{number}").as_bytes(),
            &value,
        ]));
        client.line() != "+OK"
    });
    assert!(full.is_some());
    client.send(request(&[b"SET", b"k", &value]));
    assert!(client.line().starts_with("-OOM"));
    ask(&mut client, &line("GET k"), b"$3\r\nold\r\n");
    // An expiry needs no room for the value.
    for (words, answer) in [
        ("EXPIRE key:0 100 NX", 1),
        ("EXPIRE key:0 50 GT", 0),
        ("EXPIRE key:0 200 GT", 1),
        ("TTL key:0", 200),
        ("PERSIST key:0", 1),
        ("PERSIST key:0", 0),
        ("PERSIST none", 0),
        ("STRLEN key:0", 100 << 10),
    ] {
        let answer = format!(":{answer}\r\n");
        ask(&mut client, &line(words), answer.as_bytes());
    }
}

/// Class of bug: a command of few bytes costs what a thousand others cost, and other clients wait for it.
#[test]
fn what_a_command_moves_is_work() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let mut text = server.client();
    const LEN: usize = 1_000_000;
    const TIMES: u64 = 40;
    ask(
        &mut client,
        &request(&[b"SET", b"k", &vec![b'x'; LEN]]),
        b"+OK\r\n",
    );
    let long = LEN.to_string();
    let quiet = [
        line("CLIENT REPLY OFF"),
        line("COMMAND").repeat(TIMES as usize * 200),
    ]
    .concat();
    let quiet = [quiet, line("CLIENT REPLY ON")].concat();
    let several = |request: &[u8]| request.repeat(TIMES as usize);
    let answers = |answer: String| answer.repeat(TIMES as usize).into_bytes();
    let queued = |request: &[u8]| {
        [
            line("WATCH w"),
            line("MULTI"),
            several(request),
            line("EXEC"),
        ]
        .concat()
    };
    let set_range = line("SETRANGE k 0 y");
    let in_transaction = [
        b"+OK\r\n+OK\r\n".to_vec(),
        answers("+QUEUED\r\n".into()),
        format!("*{TIMES}\r\n").into_bytes(),
        answers(format!(":{long}\r\n")),
    ]
    .concat();
    // Without its text, which is work too.
    let counts = "n=n+1 ".repeat(500);
    let script = format!("local n=redis.call('exists',KEYS[1]) {counts} return n");
    client.send(request(&[b"SCRIPT", b"LOAD", script.as_bytes()]));
    assert_eq!(client.line(), "$40");
    let name = client.line();
    for (said, answer) in [
        (several(&set_range), answers(format!(":{long}\r\n"))),
        (queued(&set_range), in_transaction),
        (
            several(&line(&format!("EVALSHA {name} 1 none"))),
            answers(":500\r\n".into()),
        ),
        (
            several(&line("INCR k")),
            answers("-ERR value is not an integer or out of range\r\n".into()),
        ),
        (quiet, b"+OK\r\n".to_vec()),
    ] {
        let before = text.stat("conn_yields");
        client.send(&said);
        client.expect(&answer);
        let yields = text.stat("conn_yields") - before;
        let said = &said[..said.len().min(100)];
        assert!(yields >= TIMES / 2, "{yields}: {}", said.escape_ascii());
    }
    let before = text.stat("conn_yields");
    text.send("append k 0 0 1\r\ny\r\n".repeat(TIMES as usize));
    text.expect("STORED\r\n".repeat(TIMES as usize));
    assert!(text.stat("conn_yields") - before >= TIMES / 2);
}

/// Class of bug: a script of few bytes makes, compares or answers a value again and again.
#[test]
fn a_script_that_takes_too_long_changes_nothing() {
    const LEN: usize = 900_000;
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let value = vec![b'x'; LEN];
    ask(&mut client, &request(&[b"SET", b"k", &value]), b"+OK\r\n");
    let (copies, looks) = (["v"; 190].join(","), ["v==ARGV[1]"; 190].join(","));
    for end in [
        format!("return {{{copies}}}"),
        format!("return {{{looks}}}"),
        format!("{} return #v", "v=v..v ".repeat(40)),
        "return redis.error_reply(v)".to_owned(),
    ] {
        let text =
            format!("local v=redis.call('get',KEYS[1]) redis.call('expire',KEYS[1],100) {end}");
        client.send(request(&[b"EVAL", text.as_bytes(), b"1", b"k", &value]));
        let answer = client.line();
        assert!(
            answer.starts_with("-ERR the script takes too long"),
            "{answer}: {end}"
        );
        ask(&mut client, &line("TTL k"), b":-1\r\n");
    }
    // One look at each is what it may have.
    let text = b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end";
    let release = request(&[b"EVAL", text, b"1", b"k", &value]);
    ask(&mut client, &release, b":1\r\n");
}

/// Class of bug: others wait until a value of many megabytes is copied.
#[test]
fn long_values_are_changed_piece_by_piece() {
    const LEN: usize = 6 << 20;
    let wants = Wants {
        memory: 64 << 20,
        item_size_max: 16 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(both(), wants);
    let mut client = server.redis_client();
    let mut text = server.client();
    let mut value: Vec<u8> = (0..LEN).map(|at| b'a' + (at / 1000 % 26) as u8).collect();
    ask(
        &mut client,
        &request(&[b"SET", b"k", &value, b"EX", b"1000"]),
        b"+OK\r\n",
    );
    for (at, piece) in [
        (0, &b"first"[..]),
        (LEN / 2, &[b'M'; 100_000]),
        (LEN - 1, b"both sides of the end"),
        (LEN + 300_000, b"behind zeros"),
    ] {
        value.resize(value.len().max(at + piece.len()), 0);
        value[at..][..piece.len()].copy_from_slice(piece);
        let said = request(&[b"SETRANGE", b"k", at.to_string().as_bytes(), piece]);
        let answer = format!(":{}\r\n", value.len());
        let before = text.stat("conn_yields");
        client.send([&said[..], &line("STRLEN k")].concat());
        client.expect(answer.repeat(2));
        let yields = text.stat("conn_yields") - before;
        assert!(yields >= LEN as u64 >> 21, "{yields} at {at}");
    }
    let before = text.stat("conn_yields");
    value.extend(b"tail");
    ask(
        &mut client,
        &line("APPEND k tail"),
        format!(":{}\r\n", value.len()).as_bytes(),
    );
    assert!(text.stat("conn_yields") - before >= LEN as u64 >> 21);
    // In a transaction, and without an answer.
    value.extend(b"xx");
    value[7] = b'!';
    let said = [
        line("WATCH w"),
        line("MULTI"),
        line("APPEND k x"),
        line("SETRANGE k 7 !"),
        line("EXEC"),
        line("CLIENT REPLY SKIP"),
        line("APPEND k x"),
        line("TTL k"),
    ];
    client.send(said.concat());
    let len = value.len();
    client.expect(format!(
        "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:{0}\r\n:{0}\r\n:1000\r\n",
        len - 1
    ));
    ask(
        &mut client,
        &line("SETRANGE none 3000000 x"),
        b":3000001\r\n",
    );
    ask(
        &mut client,
        &line("GETRANGE none 2999999 -1"),
        b"$2\r\n\0x\r\n",
    );
    let large = [format!("${len}\r\n").as_bytes(), &value, b"\r\n"].concat();
    ask(&mut client, &line("GET k"), &large);
    client.send(line("SETRANGE k 16777216 x"));
    assert!(client.line().starts_with("-ERR value is larger"));
    ask(&mut client, &line("GET k"), &large);
}

/// No change is lost, whichever of the clients is faster.
#[test]
fn changes_of_a_long_value_are_atomic() {
    const LEN: usize = 2 << 20;
    const CLIENTS: usize = 4;
    const TIMES: usize = 8;
    let wants = Wants {
        memory: 64 << 20,
        item_size_max: 4 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(both(), wants);
    let mut client = server.redis_client();
    let value = vec![b'.'; LEN];
    ask(&mut client, &request(&[b"SET", b"k", &value]), b"+OK\r\n");
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = server.redis_client();
            scope.spawn(move || {
                for time in 0..TIMES {
                    let at = (number * TIMES + time) * 1000;
                    client.send(line(&format!("SETRANGE k {at} x")));
                    assert!(client.line().starts_with(':'));
                    client.send(line("APPEND k y"));
                    assert!(client.line().starts_with(':'));
                }
            });
        }
    });
    client.send(line("GET k"));
    let mut expected = value;
    for number in 0..CLIENTS * TIMES {
        expected[number * 1000] = b'x';
    }
    expected.extend([b'y'; CLIENTS * TIMES]);
    client.expect(
        [
            format!("${}\r\n", expected.len()).as_bytes(),
            &expected,
            b"\r\n",
        ]
        .concat(),
    );
}

/// Walks in several steps, in a transaction too, find what one step would.
#[test]
fn walks_over_emptied_memory_find_the_only_item() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let mut text = server.client();
    for round in 0..100 {
        let sets = (0..1000).map(|at| format!("set {round}-{at} 0 0 1 noreply\r\nx\r\n"));
        text.ask(sets.collect::<String>() + "mn\r\n", "MN\r\n");
    }
    text.ask("flush_all\r\n", "OK\r\n");
    text.until("curr_items", |items| items < 900);
    text.ask("set only 0 0 1\r\nx\r\n", "STORED\r\n");
    ask(
        &mut client,
        &line("DBSIZE").repeat(10),
        &b":1\r\n".repeat(10),
    );
    ask(
        &mut client,
        &line("RANDOMKEY").repeat(10),
        &b"$4\r\nonly\r\n".repeat(10),
    );
    let said = [line("WATCH w"), line("MULTI"), line("DBSIZE"), line("EXEC")].concat();
    ask(&mut client, &said, b"+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
}

/// Commands that answer with a large value must not copy it: the answers to a client that does not read would hold
/// memory that only `-I` limits.
#[test]
fn large_values_stay_in_the_engine_whatever_command_reads_them() {
    const LEN: usize = 900_000;
    const COUNT: usize = 20;
    let server = Fixture::with(both(), Wants::default());
    let value: Vec<u8> = (0..LEN).map(|at| b'a' + (at / 1000 % 26) as u8).collect();
    let large =
        |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    for (commands, expected) in [
        (vec!["GETRANGE k 0 -1"], large(&value)),
        (vec!["GETRANGE k 5 -7"], large(&value[5..LEN - 6])),
        (vec!["GETRANGE k 10 2009"], large(&value[10..2010])),
        (
            vec!["EVAL return{redis.call('get',KEYS[1]),2} 1 k"],
            [b"*2\r\n", &large(&value)[..], b":2\r\n"].concat(),
        ),
        (
            vec!["SET k v GET", "GET k"],
            [&large(&value)[..], b"$1\r\nv\r\n"].concat(),
        ),
        (
            vec!["GETDEL k", "GET k"],
            [&large(&value)[..], b"$-1\r\n"].concat(),
        ),
    ] {
        let mut other = server.redis_client();
        ask(&mut other, &request(&[b"SET", b"k", &value]), b"+OK\r\n");
        let mut client = server.redis_client();
        for command in &commands {
            client.send(line(command));
        }
        client.expect(&expected);
    }
    // The answers do not fit into the sockets.
    let mut other = server.redis_client();
    let mut plain = server.client();
    ask(&mut other, &request(&[b"SET", b"k", &value]), b"+OK\r\n");
    for (command, answer) in [
        ("GETRANGE k 1 -1", large(&value[1..])),
        ("EVAL return(redis.call('get',KEYS[1])) 1 k", large(&value)),
    ] {
        let mut client = server.redis_client();
        client.send(line(command).repeat(COUNT));
        client.expect(&answer);
        let held = plain.stat("read_buf_bytes");
        assert!(held < 100_000, "{held} bytes are held: {command}");
        for _ in 1..COUNT {
            client.expect(&answer);
        }
    }
    // A large value is no number, and no token.
    for (command, reply) in [
        ("INCR k", "-ERR value is not an integer or out of range\r\n"),
        ("INCRBYFLOAT k 1", "-ERR value is not a valid float\r\n"),
        ("SETRANGE k 0 xyz", ":900000\r\n"),
        ("GETRANGE k 0 4", "$5\r\nxyzaa\r\n"),
        ("EXPIRE k 100 NX", ":1\r\n"),
        ("STRLEN k", ":900000\r\n"),
    ] {
        ask(&mut other, &line(command), reply.as_bytes());
    }
}

#[test]
fn a_name_has_a_limit() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let name = "n".repeat(256);
    let refusal = b"-ERR Client names cannot be longer than 256 bytes.\r\n";
    ask(
        &mut client,
        &line(&format!("CLIENT SETNAME {name}")),
        b"+OK\r\n",
    );
    ask(
        &mut client,
        &line(&format!("CLIENT SETNAME {name}n")),
        refusal,
    );
    ask(
        &mut client,
        &line(&format!("HELLO 2 SETNAME {name}n")),
        refusal,
    );
    ask(
        &mut client,
        &line("CLIENT GETNAME"),
        format!("$256\r\n{name}\r\n").as_bytes(),
    );
}
