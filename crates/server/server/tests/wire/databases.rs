//! Databases of Redis' clients: what is in one is in no other, and memcached's clients use database 0.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::client::Client;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

fn say(client: &mut Client, words: &str, answer: &str) {
    ask(client, &line(words), answer.as_bytes());
}

fn say_all(client: &mut Client, conversation: &[(&str, &str)]) {
    for (words, answer) in conversation {
        say(client, words, answer);
    }
}

#[test]
fn a_key_is_a_different_one_in_each_database() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    for database in 0..16 {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(&mut client, "GET k", "$-1\r\n");
        say(&mut client, &format!("SET k {}", 100 + database), "+OK\r\n");
        say(
            &mut client,
            &format!("SET own:{} v", 100 + database),
            "+OK\r\n",
        );
    }
    for database in 0..16 {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(
            &mut client,
            "GET k",
            &format!("$3\r\n{}\r\n", 100 + database),
        );
        say(
            &mut client,
            "MGET k own:100",
            match database {
                0 => "*2\r\n$3\r\n100\r\n$1\r\nv\r\n".to_owned(),
                other => format!("*2\r\n$3\r\n{}\r\n$-1\r\n", 100 + other),
            }
            .as_str(),
        );
        say(
            &mut client,
            "KEYS own*",
            &format!("*1\r\n$7\r\nown:{}\r\n", 100 + database),
        );
        say(&mut client, "DBSIZE", ":2\r\n");
        say(&mut client, "DEL k none", ":1\r\n");
        say(
            &mut client,
            "RANDOMKEY",
            &format!("$7\r\nown:{}\r\n", 100 + database),
        );
    }
    say_all(
        &mut client,
        &[
            ("SELECT 16", "-ERR DB index is out of range\r\n"),
            ("SELECT -1", "-ERR DB index is out of range\r\n"),
            // The connection stays where it was.
            ("EXISTS own:115", ":1\r\n"),
            ("RESET", "+RESET\r\n"),
            ("EXISTS own:100", ":1\r\n"),
        ],
    );
}

#[test]
fn keys_with_zero_bytes_meet_no_other_database() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let keys: [&[u8]; 6] = [b"\0", b"\0\0", b"\0\x01k", b"\0\x01", b"\x01k", b"k"];
    for database in ["0", "1", "2"] {
        ask(
            &mut client,
            &request(&[b"SELECT", database.as_bytes()]),
            b"+OK\r\n",
        );
        for key in keys {
            ask(&mut client, &request(&[b"GET", key]), b"$-1\r\n");
        }
        for key in keys {
            ask(
                &mut client,
                &request(&[b"SET", key, database.as_bytes()]),
                b"+OK\r\n",
            );
        }
        say(&mut client, "DBSIZE", ":6\r\n");
    }
    ask(&mut client, &request(&[b"SELECT", b"0"]), b"+OK\r\n");
    ask(
        &mut client,
        &request(&[b"KEYS", b"\0\x01?"]),
        &request(&[b"\0\x01k"]),
    );
}

#[test]
fn flushdb_empties_one_and_flushall_all() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut memcached) = (server.redis_client(), server.client());
    let fill = |client: &mut Client| {
        for database in [0, 1, 15] {
            say(client, &format!("SELECT {database}"), "+OK\r\n");
            say(client, "MSET a 1 b 2", "+OK\r\n");
        }
    };
    fill(&mut client);
    say_all(
        &mut client,
        &[
            ("SELECT 1", "+OK\r\n"),
            ("FLUSHDB", "+OK\r\n"),
            ("DBSIZE", ":0\r\n"),
            ("RANDOMKEY", "$-1\r\n"),
            ("SET a 3", "+OK\r\n"),
            ("FLUSHDB ASYNC", "+OK\r\n"),
            ("MGET a b", "*2\r\n$-1\r\n$-1\r\n"),
            ("SELECT 15", "+OK\r\n"),
            ("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"),
            // Database 0 beside others.
            ("SELECT 0", "+OK\r\n"),
            ("FLUSHDB", "+OK\r\n"),
            ("DBSIZE", ":0\r\n"),
            ("SET c 4", "+OK\r\n"),
        ],
    );
    memcached.ask("get a\r\n", "END\r\n");
    memcached.ask("gets c\r\nget c a\r\n", {
        let mut again = server.client();
        again.send("gets c\r\n");
        let first = again.line();
        format!("{first}\r\n4\r\nEND\r\nVALUE c 0 1\r\n4\r\nEND\r\n")
    });
    memcached.ask("set d 5 0 1\r\n6\r\n", "STORED\r\n");
    say(&mut client, "GET d", "$1\r\n6\r\n");
    fill(&mut client);
    say(&mut client, "FLUSHALL", "+OK\r\n");
    for database in [0, 1, 15] {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(&mut client, "DBSIZE", ":0\r\n");
    }
    fill(&mut client);
    // memcached's flush_all is one of all databases.
    memcached.ask("flush_all\r\nget a\r\n", "OK\r\nEND\r\n");
    say(&mut client, "DBSIZE", ":0\r\n");
}

#[test]
fn what_a_flush_leaves_is_removed_in_the_end() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut memcached) = (server.redis_client(), server.client());
    say(&mut client, "SELECT 3", "+OK\r\n");
    for number in 0..3000 {
        client.send(line(&format!("SET key:{number} v")));
    }
    client.expect("+OK\r\n".repeat(3000));
    memcached.ask("set mine 0 0 1\r\nv\r\n", "STORED\r\n");
    say(&mut client, "FLUSHDB", "+OK\r\n");
    memcached.until("curr_items", |items| items == 1);
    memcached.ask("get mine\r\n", "VALUE mine 0 1\r\nv\r\nEND\r\n");
}

#[test]
fn swapdb_exchanges_two_databases_for_every_connection() {
    let server = Fixture::with(both(), Wants::default());
    let (mut one, mut other) = (server.redis_client(), server.redis_client());
    let mut memcached = server.client();
    say_all(
        &mut one,
        &[
            ("SET k zero", "+OK\r\n"),
            ("SELECT 1", "+OK\r\n"),
            ("SET k one", "+OK\r\n"),
        ],
    );
    say(&mut other, "GET k", "$4\r\nzero\r\n");
    say(&mut one, "SWAPDB 0 1", "+OK\r\n");
    say(&mut one, "GET k", "$4\r\nzero\r\n");
    say(&mut other, "GET k", "$3\r\none\r\n");
    memcached.ask("get k\r\n", "VALUE k 0 3\r\none\r\nEND\r\n");
    memcached.ask("mg k k v\r\n", "VA 3 kk\r\none\r\n");
    say_all(
        &mut other,
        &[
            ("SWAPDB 1 1", "+OK\r\n"),
            ("SWAPDB 0 16", "-ERR DB index is out of range\r\n"),
            ("SWAPDB x 1", "-ERR invalid first DB index\r\n"),
            ("SWAPDB 1 x", "-ERR invalid second DB index\r\n"),
            ("FLUSHDB", "+OK\r\n"),
            ("GET k", "$-1\r\n"),
            ("SWAPDB 1 0", "+OK\r\n"),
            ("GET k", "$4\r\nzero\r\n"),
        ],
    );
}

#[test]
fn move_takes_a_key_with_its_expiry_and_its_value() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let long = vec![b'v'; 200_000];
    say_all(
        &mut client,
        &[
            ("SET k v EX 100", "+OK\r\n"),
            (
                "MOVE k 0",
                "-ERR source and destination objects are the same\r\n",
            ),
            ("MOVE k 16", "-ERR DB index is out of range\r\n"),
            (
                "MOVE k x",
                "-ERR value is not an integer or out of range\r\n",
            ),
            ("MOVE none 2", ":0\r\n"),
            ("MOVE k 2", ":1\r\n"),
            ("MOVE k 2", ":0\r\n"),
            ("SET k w", "+OK\r\n"),
            ("MOVE k 2", ":0\r\n"),
            ("GET k", "$1\r\nw\r\n"),
            ("SELECT 2", "+OK\r\n"),
            ("GET k", "$1\r\nv\r\n"),
            ("TTL k", ":100\r\n"),
        ],
    );
    ask(&mut client, &request(&[b"SET", b"long", &long]), b"+OK\r\n");
    say_all(
        &mut client,
        &[
            ("MOVE long 7", ":1\r\n"),
            ("EXISTS long", ":0\r\n"),
            ("SELECT 7", "+OK\r\n"),
            ("STRLEN long", ":200000\r\n"),
            ("TTL long", ":-1\r\n"),
        ],
    );
}

#[test]
fn transactions_scripts_and_watched_keys_are_of_the_selected_database() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    say(&mut client, "SELECT 4", "+OK\r\n");
    client.send(
        [
            line("MULTI"),
            line("SET k 4"),
            line("SELECT 5"),
            line("SET k 5"),
            line("EXEC"),
            line("GET k"),
        ]
        .concat(),
    );
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\n5\r\n");
    // The same key of another database does not count.
    say_all(
        &mut client,
        &[("SELECT 4", "+OK\r\n"), ("WATCH k", "+OK\r\n")],
    );
    say(&mut other, "SET k other", "+OK\r\n");
    client.send([line("MULTI"), line("GET k"), line("EXEC")].concat());
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n$1\r\n4\r\n");
    // A key that is watched in one database, and changed in it from another.
    say_all(
        &mut client,
        &[
            ("WATCH k", "+OK\r\n"),
            ("SELECT 5", "+OK\r\n"),
            ("WATCH k", "+OK\r\n"),
        ],
    );
    say_all(
        &mut other,
        &[("SELECT 4", "+OK\r\n"), ("SET k changed", "+OK\r\n")],
    );
    client.send([line("MULTI"), line("GET k"), line("EXEC")].concat());
    client.expect("+OK\r\n+QUEUED\r\n*-1\r\n");
}

#[test]
fn changes_of_databases_are_seen_by_watchers_and_may_be_in_transactions() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    say(&mut other, "SELECT 4", "+OK\r\n");
    for change in ["SWAPDB 4 9", "FLUSHDB"] {
        say_all(
            &mut client,
            &[
                ("SELECT 4", "+OK\r\n"),
                ("SET k v", "+OK\r\n"),
                ("WATCH k", "+OK\r\n"),
            ],
        );
        say(&mut other, change, "+OK\r\n");
        client.send([line("MULTI"), line("GET k"), line("EXEC")].concat());
        client.expect("+OK\r\n+QUEUED\r\n*-1\r\n");
    }
    // With watched keys the worker has the engine to itself, and these commands want it too.
    say(&mut client, "WATCH k", "+OK\r\n");
    client.send(
        [
            line("MULTI"),
            line("SET m v"),
            line("MOVE m 3"),
            line("SWAPDB 3 6"),
            line("FLUSHDB"),
            line("EXEC"),
        ]
        .concat(),
    );
    client.expect(
        [
            "+OK\r\n",
            &"+QUEUED\r\n".repeat(4),
            "*4\r\n+OK\r\n:1\r\n+OK\r\n+OK\r\n",
        ]
        .concat(),
    );
    say_all(
        &mut client,
        &[("SELECT 6", "+OK\r\n"), ("GET m", "$1\r\nv\r\n")],
    );
    let script = b"return redis.call('get', KEYS[1])";
    ask(
        &mut client,
        &request(&[b"EVAL", script, b"1", b"m"]),
        b"$1\r\nv\r\n",
    );
}

#[test]
fn values_in_pieces_go_to_the_database_of_their_request() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let value = vec![b'v'; 300_000];
    let said = [
        line("SELECT 8"),
        request(&[b"SET", b"k", &value, b"EX", b"100"]),
        request(&[b"MSET", b"l", &value, b"m", b"1"]),
        line("SELECT 0"),
        line("EXISTS k l m"),
        line("SELECT 8"),
        line("EXISTS k l m"),
        line("APPEND k w"),
        line("SETRANGE l 300000 xyz"),
    ]
    .concat();
    for piece in said.chunks(70_001) {
        client.send(piece);
    }
    client.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n:0\r\n+OK\r\n:3\r\n:300001\r\n:300003\r\n");
}

/// All keys that a SCAN of the selected database finds.
fn scanned(client: &mut Client, options: &str) -> Vec<String> {
    let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
    loop {
        client.send(line(&format!("SCAN {cursor}{options}")));
        assert_eq!(client.line(), "*2");
        client.line();
        cursor = client.line();
        let count: usize = client.line()[1..].parse().unwrap();
        for _ in 0..count {
            client.line();
            keys.push(client.line());
        }
        if cursor == "0" {
            keys.sort_unstable();
            return keys;
        }
    }
}

#[test]
fn a_scan_finds_all_keys_of_its_database_and_no_others() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let key = |database: usize, number: usize| format!("key:{database}:{number:03}");
    let all = |database| {
        (0..300)
            .map(|number| key(database, number))
            .collect::<Vec<_>>()
    };
    for database in [0, 1, 2, 15] {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        for key in all(database) {
            client.send(line(&format!("SET {key} v")));
        }
        client.expect("+OK\r\n".repeat(300));
    }
    say(&mut client, "SWAPDB 0 2", "+OK\r\n");
    for (database, items) in [(0, 2), (1, 1), (2, 0), (15, 15)] {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        assert_eq!(scanned(&mut client, ""), all(items));
        assert_eq!(scanned(&mut client, " COUNT 7 TYPE string"), all(items));
        let some = scanned(&mut client, " MATCH *:00? COUNT 100");
        assert_eq!(some, all(items)[..10]);
    }
    say(&mut client, "SELECT 3", "+OK\r\n");
    assert!(scanned(&mut client, "").is_empty());
}

/// The value of a key of each database, and `None` where there is none.
fn values(client: &mut Client, key: &str) -> Vec<Option<u64>> {
    let mut value = |database| {
        say(client, &format!("SELECT {database}"), "+OK\r\n");
        client.send(line(&format!("GET {key}")));
        match client.line().as_str() {
            "$-1" => None,
            _ => Some(client.line().parse().unwrap()),
        }
    };
    (0..16).map(&mut value).collect()
}

/// What a client says in a turn.
pub(super) type Conversation<'c> = &'c (dyn Fn(&mut Client, usize) + Sync);

/// Clients that each have a conversation some hundred times, at the same time.
pub(super) fn in_threads(server: &Fixture, conversations: &[Conversation<'_>]) {
    const TURNS: usize = 300;
    thread::scope(|scope| {
        for conversation in conversations {
            let mut client = server.redis_client();
            scope.spawn(move || (0..TURNS).for_each(|turn| conversation(&mut client, turn)));
        }
    });
}

/// Swaps some databases in turn.
fn swap(client: &mut Client, turn: usize) {
    let (one, other) = (turn % 4, turn / 4 % 4);
    say(client, &format!("SWAPDB {one} {other}"), "+OK\r\n");
}

#[test]
fn a_key_that_several_clients_move_is_in_one_database_while_these_are_swapped() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let long = "9".repeat(40_000);
    ask(
        &mut client,
        &request(&[b"SET", b"long", long.as_bytes()]),
        b"+OK\r\n",
    );
    for number in 0..4 {
        say(
            &mut client,
            &format!("SET key:{number} {number}"),
            "+OK\r\n",
        );
    }
    let moved = AtomicU64::new(0);
    let moves = |client: &mut Client, turn: usize| {
        let (from, to) = (turn % 4, (turn + 1 + turn / 4 % 3) % 4);
        client.send(line(&format!("SELECT {from}")));
        client.expect("+OK\r\n");
        for key in ["key:0", "key:1", "key:2", "key:3", "long"] {
            client.send(line(&format!("MOVE {key} {to}")));
            match client.line().as_str() {
                ":0" => {}
                ":1" => _ = moved.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other}"),
            }
        }
    };
    in_threads(&server, &[&moves, &moves, &moves, &swap]);
    assert!(moved.into_inner() > 100);
    for number in 0..4 {
        let found = values(&mut client, &format!("key:{number}"));
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, [number], "key {number}");
    }
    let mut longs = 0;
    for database in 0..16 {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        client.send(line("STRLEN long"));
        let len = client.line();
        assert!(len == ":0" || len == ":40000", "{len}");
        longs += usize::from(len == ":40000");
    }
    assert_eq!(longs, 1);
}

#[test]
fn a_key_gets_its_new_name_in_its_own_database_while_these_are_swapped() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    for database in 0..4 {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(&mut client, "SET a v", "+OK\r\n");
    }
    let renamed = AtomicU64::new(0);
    let renames = |client: &mut Client, turn: usize| {
        let select = line(&format!("SELECT {}", turn % 4));
        let there_and_back = [line("RENAME a b"), line("RENAME b a")].concat();
        client.send([select, there_and_back.repeat(5)].concat());
        client.expect("+OK\r\n");
        for _ in 0..10 {
            match client.line().as_str() {
                "+OK" => _ = renamed.fetch_add(1, Ordering::Relaxed),
                other => assert_eq!(other, "-ERR no such key"),
            }
        }
    };
    in_threads(&server, &[&renames, &renames, &renames, &swap]);
    assert!(renamed.into_inner() > 100);
    for database in 0..4 {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(&mut client, "EXISTS a b", ":1\r\n");
    }
}

/// A store that another worker has read before a FLUSHALL is carried out in its own database, or in none.
#[test]
fn a_flush_of_all_takes_no_store_to_another_database() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let mut storing = [(); 3].map(|()| server.redis_client());
    for storing in &mut storing {
        say(storing, "SELECT 5", "+OK\r\n");
    }
    for turn in 0..200 {
        // No store is under way.
        say(&mut client, "SWAPDB 0 5", "+OK\r\n");
        thread::scope(|scope| {
            for storing in &mut storing {
                scope.spawn(|| {
                    storing.send(line("SET five v").repeat(100));
                    storing.expect("+OK\r\n".repeat(100));
                });
            }
            say(&mut client, "FLUSHALL", "+OK\r\n");
        });
        client.send(line("EXISTS five"));
        assert_eq!(client.line(), ":0", "turn {turn}");
    }
}

#[test]
fn no_increment_is_lost_while_databases_are_swapped() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let counted = AtomicU64::new(0);
    let increments = |client: &mut Client, turn: usize| {
        let database = turn % 4;
        let said = [
            &line(&format!("SELECT {database}"))[..],
            &line("INCR k").repeat(5),
        ]
        .concat();
        client.send(said);
        client.expect("+OK\r\n");
        for _ in 0..5 {
            let number = client.line();
            assert!(number.starts_with(':'), "{number}");
            counted.fetch_add(1, Ordering::Relaxed);
        }
    };
    in_threads(&server, &[&increments, &increments, &increments, &swap]);
    let sum: u64 = values(&mut client, "k").into_iter().flatten().sum();
    assert_eq!(sum, counted.into_inner());
}

#[test]
fn what_is_stored_while_databases_are_flushed_is_there_or_leaves_no_memory() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut memcached) = (server.redis_client(), server.client());
    let stores = |client: &mut Client, turn: usize| {
        let database = turn % 3;
        client.send(line(&format!("SELECT {database}")));
        for number in 0..10 {
            client.send(line(&format!("SET key:{} v", 10 * turn + number)));
        }
        client.expect("+OK\r\n".repeat(11));
    };
    let flushes = |client: &mut Client, turn: usize| {
        say(client, &format!("SELECT {}", turn % 3), "+OK\r\n");
        let flush = if turn % 50 == 49 {
            "FLUSHALL"
        } else {
            "FLUSHDB"
        };
        say(client, flush, "+OK\r\n");
        // What is stored behind it is not taken for what it left.
        say(client, "SET mine v", "+OK\r\n");
        say(client, "GET mine", "$1\r\nv\r\n");
    };
    in_threads(&server, &[&stores, &stores, &flushes]);
    for database in [0, 1, 2] {
        say(&mut client, &format!("SELECT {database}"), "+OK\r\n");
        say(&mut client, "FLUSHDB", "+OK\r\n");
        say(&mut client, "DBSIZE", ":0\r\n");
    }
    memcached.until("curr_items", |items| items == 0);
}

#[test]
fn a_long_value_whose_database_changes_while_it_arrives_is_refused() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    let mut memcached = server.client();
    let value = vec![b'v'; 300_000];
    say_all(
        &mut client,
        &[("SELECT 1", "+OK\r\n"), ("SET k old", "+OK\r\n")],
    );
    say(&mut other, "SELECT 1", "+OK\r\n");
    let refused = "-ERR the database was swapped or flushed while the value arrived, try again\r\n";
    for (change, back) in [("SWAPDB 1 2", "SWAPDB 2 1"), ("FLUSHDB", "FLUSHDB")] {
        for said in [
            request(&[b"SET", b"k", &value]),
            request(&[b"MSET", b"k", &value]),
            request(&[b"APPEND", b"k", &value]),
        ] {
            let (front, rest) = said.split_at(200_000);
            client.send(front);
            memcached.until("upload_bytes", |bytes| bytes > 0);
            say(&mut other, change, "+OK\r\n");
            client.send(rest);
            client.expect(refused);
            say(&mut other, back, "+OK\r\n");
        }
        let kept = if back == change {
            "$-1\r\n"
        } else {
            "$3\r\nold\r\n"
        };
        say(&mut client, "GET k", kept);
    }
    memcached.until("curr_items", |items| items == 0);
}

/// memcached's clients are told that their value is stored: it was, in the database from before.
#[test]
fn a_long_value_of_memcacheds_client_that_is_flushed_before_it_arrives_leaves_no_memory() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut memcached) = (server.redis_client(), server.client());
    let mut storing = server.client();
    let value = [&vec![b'v'; 300_000][..], b"\r\n"].concat();
    // Beside another database, database 0 is flushed without the others.
    say_all(
        &mut client,
        &[
            ("SELECT 1", "+OK\r\n"),
            ("SET k v", "+OK\r\n"),
            ("SELECT 0", "+OK\r\n"),
        ],
    );
    let (front, rest) = value.split_at(200_000);
    storing.send([b"set k 0 0 300000\r\n", front].concat());
    memcached.until("upload_bytes", |bytes| bytes > 0);
    say(&mut client, "FLUSHDB", "+OK\r\n");
    storing.send(rest);
    storing.expect("STORED\r\n");
    memcached.until("curr_items", |items| items == 1);
    memcached.ask("get k\r\n", "END\r\n");
}

#[test]
fn what_the_server_tells_of_databases() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut memcached) = (server.redis_client(), server.client());
    let told = |client: &mut Client, words: &str| {
        client.send(line(words));
        let mut text = String::new();
        let length: usize = client.line()[1..].parse().unwrap();
        while text.len() < length {
            text += &client.line();
            text += "\r\n";
        }
        client.line();
        text
    };
    say(&mut client, "MSET a 1 b 2", "+OK\r\n");
    let one = told(&mut client, "INFO keyspace");
    assert_eq!(one, "# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=0\r\n");
    say_all(
        &mut client,
        &[("SELECT 11", "+OK\r\n"), ("SET a 1", "+OK\r\n")],
    );
    let two = told(&mut client, "INFO keyspace");
    assert_eq!(two, format!("{one}db11:keys=1,expires=0,avg_ttl=0\r\n"));
    say(
        &mut client,
        "CONFIG GET databases",
        "*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n",
    );
    client.send(line("CLIENT INFO"));
    client.line();
    assert!(client.line().contains(" db=11"));
    client.line();
    // memcached's dumps have database 0 alone.
    memcached.send("lru_crawler mgdump all\r\n");
    let mut listed = memcached.lines_until("EN");
    listed.retain(|line| line.starts_with("mg "));
    listed.sort_unstable();
    assert_eq!(listed, ["mg a", "mg b"]);
}

/// Class of fault: what a key means has changed, and its item is the same.
#[test]
fn a_swap_and_its_undoing_end_what_is_watched() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    for key in ["k", "none"] {
        say(&mut client, "SET k 1", "+OK\r\n");
        say(&mut client, &format!("WATCH {key}"), "+OK\r\n");
        for _ in 0..2 {
            say(&mut other, "SWAPDB 0 5", "+OK\r\n");
        }
        client.send([line("MULTI"), line("PING"), line("EXEC")].concat());
        client.expect("+OK\r\n+QUEUED\r\n*-1\r\n");
    }
    say(&mut client, "WATCH k", "+OK\r\n");
    say(&mut other, "SWAPDB 3 5", "+OK\r\n");
    client.send([line("MULTI"), line("PING"), line("EXEC")].concat());
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
}
