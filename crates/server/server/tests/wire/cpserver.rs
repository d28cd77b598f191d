//! CPServer's protocol, on a port beside memcached's.

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_protocol::cpserver::{Dialect, HEADER, Status};
use nuthatch_server::{Config, Protocol};

const PAPER: Dialect = Dialect::Paper;
const EXTENDED: Dialect = Dialect::Extended;

fn both() -> Config {
    Config {
        listeners: vec![any_port(), any_port().of(Protocol::CpServer)],
        ..config()
    }
}

fn header(op: u32, size: u32, key: u64) -> Vec<u8> {
    let words = [op.to_le_bytes(), size.to_le_bytes()].concat();
    [&words[..], &key.to_le_bytes()].concat()
}

fn lookup(dialect: Dialect, key: u64) -> Vec<u8> {
    let op = if dialect == PAPER { 0 } else { 2 };
    header(op, 0, key)
}

fn insert(dialect: Dialect, key: u64, value: &[u8]) -> Vec<u8> {
    let op = if dialect == PAPER { 1 } else { 3 };
    [&header(op, value.len() as u32, key)[..], value].concat()
}

fn found(dialect: Dialect, value: &[u8]) -> Vec<u8> {
    let size = (value.len() as u32).to_le_bytes();
    match dialect {
        Dialect::Paper => [&size, value].concat(),
        Dialect::Extended => [&[0; 4], &size[..], value].concat(),
    }
}

fn told(status: Status) -> [u8; 8] {
    let mut answer = [0; 8];
    answer[0] = status as u8;
    answer
}

fn missed(dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Paper => vec![0; 4],
        Dialect::Extended => told(Status::NotFound).to_vec(),
    }
}

/// Sends, and expects; a last FIND shows that nothing else came.
#[track_caller]
fn ask(client: &mut Client, request: &[u8], reply: &[u8]) {
    client.send([request, &lookup(EXTENDED, u64::MAX)].concat());
    client.expect([reply, &told(Status::NotFound)].concat());
}

#[test]
fn the_papers_requests_byte_by_byte() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    ask(&mut client, &lookup(PAPER, 7), &missed(PAPER));
    ask(&mut client, &insert(PAPER, 7, b"acorn"), b"");
    ask(&mut client, &lookup(PAPER, 7), b"\x05\0\0\0acorn");
    ask(&mut client, &insert(PAPER, 7, b""), b"");
    // As in the paper, an empty value is no different from none.
    ask(&mut client, &lookup(PAPER, 7), &[0; 4]);
    // The numbers' first 4 bits are not cut off, and a lookup's size means nothing.
    ask(&mut client, &insert(PAPER, 7 | 1 << 63, b"other"), b"");
    ask(&mut client, &header(0, 99, 7 | 1 << 63), b"\x05\0\0\0other");
}

#[test]
fn find_and_store_say_what_was_silent() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    ask(&mut client, &lookup(EXTENDED, 7), &told(Status::NotFound));
    let store = insert(EXTENDED, 7, b"");
    ask(&mut client, &store, &told(Status::Done));
    ask(&mut client, &lookup(EXTENDED, 7), &found(EXTENDED, b""));
    let store = insert(EXTENDED, 7, b"acorn");
    ask(&mut client, &store, &told(Status::Done));
    ask(
        &mut client,
        &lookup(EXTENDED, 7),
        b"\0\0\0\0\x05\0\0\0acorn",
    );
    ask(&mut client, &lookup(PAPER, 7), &found(PAPER, b"acorn"));
}

#[test]
fn both_protocols_see_the_same_items() {
    let server = Fixture::with(both(), Wants::default());
    let (mut cpserver, mut memcached) = (server.cpserver_client(), server.client());
    ask(
        &mut cpserver,
        &insert(EXTENDED, 1, b"one"),
        &told(Status::Done),
    );
    // The key's 8 bytes in base64.
    memcached.ask(
        "mg AQAAAAAAAAA= b v k\r\n",
        "VA 3 kAQAAAAAAAAA= b\r\none\r\n",
    );
    memcached.ask("ms AgAAAAAAAAA= 3 b T0 F7\r\ntwo\r\n", "HD\r\n");
    ask(&mut cpserver, &lookup(PAPER, 2), &found(PAPER, b"two"));
    // Any key of 8 bytes is a number.
    memcached.ask("set nuthatch 0 0 4\r\nseed\r\n", "STORED\r\n");
    let number = u64::from_le_bytes(*b"nuthatch");
    ask(
        &mut cpserver,
        &lookup(PAPER, number),
        &found(PAPER, b"seed"),
    );
    memcached.ask("set count 0 0 1\r\n1\r\n", "STORED\r\n");
    // They are counted together; each `ask` has a FIND of its own.
    let (gets, hits) = (memcached.stat("cmd_get"), memcached.stat("get_hits"));
    assert_eq!((gets, hits, memcached.stat("cmd_set")), (6, 3, 4));
    let conns = memcached.conns();
    let address = format!("tcp:{}", server.cpserver_address());
    assert!(conns.values().any(|value| *value == address));
    assert_eq!(memcached.stats("settings")["cpserver"], address);
    let port = server.address().port().to_string();
    assert_eq!(memcached.stats("settings")["tcpport"], port);
}

#[test]
fn answers_come_in_order_and_clients_read_their_own_writes() {
    const CLIENTS: u64 = 6;
    const ROUNDS: u64 = 20;
    const KEYS: u64 = 300;
    let config = Config {
        batch_max: NonZeroUsize::new(1000).unwrap(),
        ..both()
    };
    let server = Fixture::with(config, Wants::default());
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = server.cpserver_client();
            scope.spawn(move || {
                let dialect = if number % 2 == 0 { PAPER } else { EXTENDED };
                for round in 0..ROUNDS {
                    let (mut requests, mut replies) = (Vec::new(), Vec::new());
                    for key in 0..KEYS {
                        let key = number << 32 | key;
                        let value = vec![round as u8; (key % 61) as usize + 1];
                        requests.extend(insert(dialect, key, b"not this one"));
                        requests.extend(insert(dialect, key, &value));
                        requests.extend(lookup(dialect, key));
                        requests.extend(lookup(dialect, !key));
                        if dialect == EXTENDED {
                            replies.extend([told(Status::Done), told(Status::Done)].concat());
                        }
                        replies.extend(found(dialect, &value));
                        replies.extend(missed(dialect));
                    }
                    client.send(&requests);
                    client.expect(&replies);
                }
            });
        }
    });
    let mut memcached = server.client();
    assert_eq!(memcached.stat("get_hits"), CLIENTS * ROUNDS * KEYS);
    assert_eq!(memcached.stat("cmd_set"), 2 * CLIENTS * ROUNDS * KEYS);
    assert_eq!(memcached.stats("settings")["batch_max"], "1000");
}

#[test]
fn workers_share_its_connections_too() {
    let server = Fixture::with(both(), Wants::default());
    let mut clients: Vec<Client> = (0..20).map(|_| server.cpserver_client()).collect();
    for client in &mut clients {
        ask(client, &lookup(PAPER, 1), &missed(PAPER));
    }
    assert_eq!(server.client().stat("curr_connections"), 21);
}

#[test]
fn every_size_around_the_limits_comes_back() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    let sizes = [
        0, 1, 255, 8191, 8192, 8193, 16_383, 16_384, 16_385, 65_536, 500_000, 1_000_000,
    ];
    for size in sizes {
        let value: Vec<u8> = (0..size).map(|at| (at * 31 + at / 251) as u8).collect();
        for dialect in [PAPER, EXTENDED] {
            let mut requests = insert(dialect, size, &value);
            requests.extend(lookup(dialect, size));
            client.send(requests);
            if dialect == EXTENDED {
                client.expect(told(Status::Done));
            }
            client.expect(found(dialect, &value));
        }
    }
}

#[test]
fn bytes_that_trickle_in_are_put_together() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    let mut raw = client.raw();
    let requests = [
        insert(PAPER, 1, b"acorn"),
        lookup(PAPER, 1),
        insert(EXTENDED, 2, &[b'v'; 17_000]),
        lookup(EXTENDED, 2),
    ];
    for request in requests {
        let (head, tail) = request.split_at(request.len().min(40));
        for byte in head {
            raw.write_all(&[*byte]).unwrap();
        }
        raw.write_all(tail).unwrap();
    }
    client.expect(found(PAPER, b"acorn"));
    client.expect(told(Status::Done));
    client.expect(found(EXTENDED, &[b'v'; 17_000]));
}

#[test]
fn no_operation_is_told_so_and_closed() {
    let server = Fixture::with(both(), Wants::default());
    for request in [
        &b"get seed\r\n"[..],
        b"\x04\0\0\0",
        &header(u32::MAX, u32::MAX, u64::MAX),
        &[0x80; 1000],
    ] {
        let mut client = server.cpserver_client();
        // Requests before the bad one are answered.
        client.send([&lookup(PAPER, 1)[..], request].concat());
        client.expect(missed(PAPER));
        client.expect(told(Status::Unknown));
        client.expect_end();
    }
    // The other way round: memcached's port takes a LOOKUP for a line of nothing known.
    let mut client = server.client();
    client.send([&lookup(PAPER, 1)[..], b"\r\n"].concat());
    assert_eq!(client.line(), "ERROR");
}

#[test]
fn a_value_that_can_never_be_is_dropped_and_the_old_one_with_it() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    let too_large = vec![b'v'; (1 << 20) + 1];
    for dialect in [PAPER, EXTENDED] {
        client.send(insert(PAPER, 1, b"old"));
        client.send(insert(dialect, 1, &too_large));
        if dialect == EXTENDED {
            client.expect(told(Status::TooLarge));
        }
        ask(&mut client, &lookup(PAPER, 1), &missed(PAPER));
    }
    assert_eq!(server.client().stat("store_too_large"), 2);
}

/// Class of bug: memory taken for what a client only announces.
#[test]
fn four_gigabytes_announced_take_no_memory() {
    let server = Fixture::with(both(), Wants::default());
    let mut memcached = server.client();
    let mut clients: Vec<Client> = (0..50).map(|_| server.cpserver_client()).collect();
    for client in &mut clients {
        client.send(header(3, u32::MAX, 1));
        client.expect(told(Status::TooLarge));
        client.send(vec![0; 100_000]);
    }
    memcached.until("bytes_read", |bytes| bytes >= 50 * 100_000);
    assert!(memcached.stat("read_buf_bytes") < 1 << 20);
    // The bytes that follow still belong to the value: they are no request.
    clients[0].send(lookup(EXTENDED, 1));
    clients[0].finish();
    clients[0].expect_end();
    memcached.ask("set well 0 0 2\r\nok\r\n", "STORED\r\n");
}

#[test]
fn a_request_that_is_cut_off_leaves_no_trace() {
    let server = Fixture::with(both(), Wants::default());
    for size in [10, 10_000, 300_000] {
        let whole = insert(EXTENDED, 1, &vec![b'n'; size]);
        for cut in [1, 3, HEADER - 1, HEADER, HEADER + 1, HEADER + size / 2] {
            let mut client = server.cpserver_client();
            client.send(insert(PAPER, 1, b"old"));
            client.send(&whole[..cut]);
            client.finish();
            client.expect_end();
            let mut client = server.cpserver_client();
            ask(&mut client, &lookup(PAPER, 1), &found(PAPER, b"old"));
        }
    }
}

#[test]
fn no_room_for_a_value_forgets_the_old() {
    for size in [70_000, 9_000] {
        let wants = Wants {
            memory: 16 << 20,
            evicts: false,
            ..Wants::default()
        };
        let server = Fixture::with(both(), wants);
        let mut client = server.cpserver_client();
        ask(&mut client, &insert(PAPER, 1, b"old"), b"");
        let value = vec![b'v'; size];
        let mut refused = 0;
        for key in 2.. {
            client.send([insert(EXTENDED, key, &value), lookup(EXTENDED, key)].concat());
            if client.peek(1) == [Status::OutOfMemory as u8] {
                client.expect(told(Status::OutOfMemory));
                client.expect(told(Status::NotFound));
                refused += 1;
                break;
            }
            client.expect(told(Status::Done));
            client.expect(found(EXTENDED, &value));
        }
        // A set that fails behind a get in one batch: the get may see the old value, no later get may.
        let requests = [insert(PAPER, 1, &value), lookup(PAPER, 1)].concat();
        ask(&mut client, &requests, &missed(PAPER));
        assert_eq!(server.client().stat("store_no_memory"), refused + 1);
    }
}

#[test]
fn one_connection_too_many_is_closed() {
    let limited = Config {
        connections_max: NonZeroUsize::new(2).unwrap(),
        ..both()
    };
    let server = Fixture::with(limited, Wants::default());
    let mut memcached = server.client();
    memcached.ask("get k\r\n", "END\r\n");
    let mut client = server.cpserver_client();
    ask(&mut client, &lookup(PAPER, 1), &missed(PAPER));
    server.cpserver_client().expect_end();
    assert_eq!(memcached.stat("rejected_connections"), 1);
}

#[test]
fn the_silent_are_closed() {
    let strict = Config {
        idle_timeout: Some(Duration::from_secs(2)),
        ..both()
    };
    let server = Fixture::with(strict, Wants::default());
    let mut silent = server.cpserver_client();
    // A client that stops within a header is silent too.
    silent.send([0; 5]);
    let mut busy = server.cpserver_client();
    let mut memcached = server.client();
    memcached.until("idle_kicks", |kicks| {
        ask(&mut busy, &lookup(PAPER, 1), &missed(PAPER));
        kicks > 0
    });
    silent.expect_end();
}

#[test]
fn who_does_not_read_holds_nobody_up() {
    let server = Fixture::with(both(), Wants::default());
    let mut deaf = server.cpserver_client();
    deaf.send(insert(PAPER, 1, &vec![b'v'; 100_000]));
    deaf.send(lookup(PAPER, 1).repeat(1000));
    let mut other = server.cpserver_client();
    ask(&mut other, &lookup(EXTENDED, 2), &told(Status::NotFound));
    server.stop();
}

#[test]
fn a_stop_answers_what_was_read() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.cpserver_client();
    ask(&mut client, &insert(PAPER, 1, b"acorn"), b"");
    client.send(lookup(PAPER, 1).repeat(1000));
    // The first answer has arrived, so all requests of the same read get theirs.
    client.expect(found(PAPER, b"acorn"));
    server.stop();
    for _ in 1..1000 {
        client.expect(found(PAPER, b"acorn"));
    }
    client.expect_end();
}
