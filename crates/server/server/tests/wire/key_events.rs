//! Events about keys: what who has subscribed is told of other clients' changes.

use super::client::Client;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line};

/// A client that is told everything, with the letters that it has asked for.
fn subscriber(server: &Fixture, letters: &str) -> Client {
    let mut client = server.redis_client();
    let set = format!("CONFIG SET notify-keyspace-events {letters}");
    ask(&mut client, &line(&set), b"+OK\r\n");
    client.send(line("PSUBSCRIBE __key*"));
    client.expect(b"*3\r\n$10\r\npsubscribe\r\n$6\r\n__key*\r\n:1\r\n");
    client
}

/// The next messages are these: channels and texts.
fn hears(client: &mut Client, told: &[(&str, &str)]) {
    for (channel, text) in told {
        let (length, size) = (channel.len(), text.len());
        client.expect(format!(
            "*4\r\n$8\r\npmessage\r\n$6\r\n__key*\r\n${length}\r\n{channel}\r\n${size}\r\n{text}\r\n"
        ));
    }
}

/// Each change is told before its own client is answered, whose connection may be another worker's.
#[test]
fn changes_of_memcacheds_clients_are_told_too() {
    let server = Fixture::with(both(), Wants::default());
    let mut subscriber = subscriber(&server, "EA");
    let mut client = server.client();
    for (said, answer, told) in [
        ("set k 0 0 1\r\n1", "STORED", &["set"][..]),
        ("set k 0 100 1\r\n1", "STORED", &["set", "expire"]),
        ("add k 0 0 1\r\n1", "NOT_STORED", &[]),
        ("incr k 5", "6", &["incrby"]),
        ("incr nothing 5", "NOT_FOUND", &[]),
        ("append k 0 0 1\r\n1", "STORED", &["append"]),
        ("touch k 100", "TOUCHED", &["expire"]),
        ("touch k 0", "TOUCHED", &["persist"]),
        ("touch nothing 0", "NOT_FOUND", &[]),
        ("mg k t", "HD t-1", &[]),
        ("mg k T100", "HD", &["expire"]),
        ("mn", "MN", &[]),
        ("delete k", "DELETED", &["del"]),
        ("delete k", "NOT_FOUND", &[]),
        ("ms k 1\r\n1", "HD", &["set"]),
        ("ma k", "HD", &["incrby"]),
        ("md k", "HD", &["del"]),
    ] {
        client.send(format!("{said}\r\n"));
        assert_eq!(client.line(), answer, "{said}");
        for event in told {
            hears(
                &mut subscriber,
                &[(&format!("__keyevent@0__:{event}"), "k")],
            );
        }
    }
}

#[test]
fn only_what_is_asked_for_is_told() {
    let server = Fixture::with(both(), Wants::default());
    let mut by_key = subscriber(&server, "K$");
    let mut client = server.redis_client();
    ask(&mut client, &line("SET k v EX 100"), b"+OK\r\n");
    ask(&mut client, &line("DEL k"), b":1\r\n");
    ask(&mut client, &line("SELECT 3"), b"+OK\r\n");
    ask(&mut client, &line("APPEND k v"), b":1\r\n");
    hears(
        &mut by_key,
        &[("__keyspace@0__:k", "set"), ("__keyspace@3__:k", "append")],
    );
    let shown = line("CONFIG GET notify-keyspace-events");
    ask(
        &mut client,
        &shown,
        b"*2\r\n$22\r\nnotify-keyspace-events\r\n$2\r\n$K\r\n",
    );
    for letters in ["KEq", "KEm", "n"] {
        client.send(line(&format!(
            "CONFIG SET notify-keyspace-events {letters}"
        )));
        assert!(client.line().starts_with("-ERR CONFIG SET failed"));
    }
    ask(
        &mut client,
        &shown,
        b"*2\r\n$22\r\nnotify-keyspace-events\r\n$2\r\n$K\r\n",
    );
}

/// A large value comes in pieces, and a transaction's changes are told as they are made.
#[test]
fn long_values_and_transactions_are_told() {
    let server = Fixture::with(both(), Wants::default());
    let mut subscriber = subscriber(&server, "E$g");
    let mut client = server.redis_client();
    let long = "x".repeat(300_000);
    ask(&mut client, &line(&format!("SET long {long}")), b"+OK\r\n");
    ask(&mut client, &line("RENAME long other"), b"+OK\r\n");
    client.send(
        [
            line("MULTI"),
            line("INCR n"),
            line("DEL other"),
            line("EXEC"),
        ]
        .concat(),
    );
    client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n");
    hears(
        &mut subscriber,
        &[
            ("__keyevent@0__:set", "long"),
            ("__keyevent@0__:rename_from", "long"),
            ("__keyevent@0__:rename_to", "other"),
            ("__keyevent@0__:incrby", "n"),
            ("__keyevent@0__:del", "other"),
        ],
    );
}

/// memcached's rule: a set that fails takes the old item with it. It is told once, and only if there was one.
#[test]
fn an_item_that_a_failed_set_takes_with_it_is_told_as_evicted() {
    let wants = Wants {
        memory: 16 << 20,
        evicts: false,
        ..Wants::default()
    };
    let server = Fixture::with(both(), wants);
    let mut client = server.client();
    client.ask("set k 0 0 1\r\n1\r\n", "STORED\r\n");
    client.ask("set other 0 0 1\r\n1\r\n", "STORED\r\n");
    for number in 0.. {
        client.send(store(&format!("filler{number}"), 9_000));
        if client.line() != "STORED" {
            break;
        }
    }
    let mut subscriber = subscriber(&server, "EA");
    for (key, size) in [("k", 9_000), ("k", 9_000), ("other", (1 << 20) + 1)] {
        client.send(store(key, size));
        assert!(client.line().starts_with("SERVER_ERROR"), "{key} {size}");
    }
    client.ask("delete filler0\r\n", "DELETED\r\n");
    hears(
        &mut subscriber,
        &[
            ("__keyevent@0__:evicted", "k"),
            ("__keyevent@0__:evicted", "other"),
            ("__keyevent@0__:del", "filler0"),
        ],
    );
}

/// A set of so many bytes.
fn store(key: &str, size: usize) -> String {
    format!("set {key} 0 0 {size}\r\n{}\r\n", "v".repeat(size))
}
