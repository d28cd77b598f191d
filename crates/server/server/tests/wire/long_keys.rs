//! Keys of Redis' clients that are longer than those of memcached's: up to 64 KiB, as far as the engine takes them.

use std::collections::HashSet;

use super::client::Client;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

/// The longest key that the server takes of a Redis client.
fn longest(client: &mut Client) -> usize {
    client.send(request(&[b"GET", &[b'k'; 70_000]]));
    let refused = client.line();
    let words = refused.strip_prefix("-ERR key is longer than ").unwrap();
    let most = words.strip_suffix(" bytes").unwrap().parse().unwrap();
    assert!(most == 64 << 10 || most == 250, "{refused}");
    most
}

/// Keys of some lengths, each the front of the next.
fn keys(client: &mut Client) -> Vec<Vec<u8>> {
    let most = longest(client);
    let lengths = [1, 249, 250, 251, 254, 255, 256, 1000, 8192, 65_535, 65_536];
    let within = lengths.into_iter().filter(|&len| len <= most);
    within.map(|len| vec![b'k'; len]).collect()
}

#[test]
fn every_command_of_a_key_takes_a_long_one() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    for key in &keys(&mut client) {
        for (words, answer) in [
            (&[&b"SET"[..], key, b"7"][..], &b"+OK\r\n"[..]),
            (&[b"GET", key], b"$1\r\n7\r\n"),
            (&[b"INCRBY", key, b"100"], b":107\r\n"),
            (&[b"APPEND", key, b"0"], b":4\r\n"),
            (&[b"GETRANGE", key, b"1", b"2"], b"$2\r\n07\r\n"),
            (&[b"SETRANGE", key, b"0", b"2"], b":4\r\n"),
            (&[b"EXPIRE", key, b"100"], b":1\r\n"),
            (&[b"TTL", key], b":100\r\n"),
            (&[b"PERSIST", key], b":1\r\n"),
            (&[b"OBJECT", b"ENCODING", key], b"$3\r\nint\r\n"),
            (&[b"EXISTS", key, key], b":2\r\n"),
            (&[b"MGET", key, b"none"], b"*2\r\n$4\r\n2070\r\n$-1\r\n"),
            (&[b"KEYS", b"*"], &request(&[key])),
            (&[b"RANDOMKEY"], &request(&[key])[4..]),
            (&[b"GETDEL", key], b"$4\r\n2070\r\n"),
            (&[b"MSET", key, b"1", b"other", b"2"], b"+OK\r\n"),
            (&[b"DEL", key, b"other", b"none"], b":2\r\n"),
            (&[b"EXISTS", key], b":0\r\n"),
        ] {
            ask(&mut client, &request(words), answer);
        }
    }
}

#[test]
fn a_key_that_is_a_byte_too_long_is_refused_wherever_it_stands() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let most = longest(&mut client);
    let long = vec![b'k'; most + 1];
    let refused = format!("-ERR key is longer than {most} bytes\r\n");
    for words in [
        &[&b"GET"[..], &long][..],
        &[b"SET", &long, b"v"],
        &[b"DEL", &long],
        &[b"MSET", &long, b"v"],
        &[b"EVAL", b"return redis.call('get', KEYS[1])", b"1", &long],
    ] {
        ask(&mut client, &request(words), refused.as_bytes());
    }
    let said = request(&[b"MGET", b"a", &long, b"b"]);
    ask(&mut client, &said, b"*3\r\n$-1\r\n$-1\r\n$-1\r\n");
}

#[test]
fn requests_with_long_keys_arrive_in_pieces_and_in_pipelines() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let keys = keys(&mut client);
    let value = vec![b'v'; 300_000];
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for key in &keys {
        said.extend(request(&[b"SET", key, &value, b"EX", b"100"]));
        said.extend(request(&[b"STRLEN", key]));
        expected.extend_from_slice(b"+OK\r\n:300000\r\n");
    }
    let all: Vec<&[u8]> = std::iter::once(&b"EXISTS"[..])
        .chain(keys.iter().map(Vec::as_slice))
        .collect();
    said.extend(request(&all));
    expected.extend(format!(":{}\r\n", keys.len()).bytes());
    for piece in said.chunks(30_011) {
        client.send(piece);
    }
    client.expect(&expected);
    // A transaction, and a watched key.
    let key = &keys[keys.len() - 2];
    for words in [
        &[&b"WATCH"[..], &keys[0]][..],
        &[b"MULTI"],
        &[b"SET", key, &value],
        &[b"STRLEN", key],
        &[b"EXEC"],
    ] {
        client.send(request(words));
    }
    client.expect(b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:300000\r\n");
}

#[test]
fn memcacheds_clients_do_not_meet_long_keys() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let keys = keys(&mut client);
    for key in &keys {
        ask(&mut client, &request(&[b"SET", key, b"v"]), b"+OK\r\n");
    }
    let mut memcached = server.client();
    memcached.send(b"lru_crawler mgdump all\r\n");
    let mut listed = memcached.lines_until("EN");
    listed.retain(|line| line.starts_with("mg "));
    let named = keys.iter().filter(|key| key.len() <= 250).count();
    assert_eq!(listed.len(), named);
    assert!(listed.iter().all(|line| line.len() <= 250 + b"mg ".len()));
    memcached.ask(
        [&b"get "[..], &[b'k'; 251], b"\r\n"].concat(),
        b"CLIENT_ERROR bad command line format\r\n",
    );
}

#[test]
fn a_script_has_a_long_key() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let key = vec![b'k'; longest(&mut client)];
    let script = b"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
    ask(&mut client, &request(&[b"SET", &key, b"mine"]), b"+OK\r\n");
    for (word, answer) in [(&b"other"[..], b":0\r\n"), (b"mine", b":1\r\n")] {
        ask(
            &mut client,
            &request(&[b"EVAL", script, b"1", &key, word]),
            answer,
        );
    }
    ask(&mut client, &line("DBSIZE"), b":0\r\n");
}

/// Of keys like these a SCAN compares few, whatever its COUNT, and meets them all the same: others wait for it.
#[test]
fn a_scan_compares_few_long_keys_with_a_long_pattern() {
    const KEYS: usize = 100;
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let len = longest(&mut client).min(40_000);
    let key = |number: usize| format!("{number:k>len$}");
    for number in 0..KEYS {
        let said = request(&[b"SET", key(number).as_bytes(), b"v"]);
        ask(&mut client, &said, b"+OK\r\n");
    }
    let pattern = format!("{}*", "?".repeat(len.min(1000) - 3));
    let (mut cursor, mut found) = ("0".to_owned(), HashSet::new());
    loop {
        let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"];
        client.send(request(&words.map(str::as_bytes)));
        assert_eq!(client.line(), "*2");
        client.line();
        cursor = client.line();
        let count: usize = client.line()[1..].parse().unwrap();
        assert!(count <= KEYS / 4 || len <= 250, "{count} at once");
        for _ in 0..count {
            client.line();
            found.insert(client.line());
        }
        if cursor == "0" {
            break;
        }
    }
    assert!(found == HashSet::from_iter((0..KEYS).map(key)));
}
