//! Databases of Redis' clients: what is in one is in no other, and memcached's clients use database 0.

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
