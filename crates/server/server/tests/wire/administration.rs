//! Who may change the server: switches that forbid it, and users who may all the same.

use std::fs;
use std::num::NonZeroUsize;

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Actions, Config, Protocol};

fn both() -> Config {
    Config {
        listeners: vec![any_port(), any_port().of(Protocol::Redis)],
        allow_shutdown: true,
        ..config()
    }
}

/// A request of the binary protocol without a value, and the status of its answer.
fn status(server: &Fixture, before: &[u8], opcode: u8, key: &[u8]) -> (u8, u8) {
    let mut client = server.client();
    client.send(before);
    let length = key.len() as u8;
    let mut request = vec![0x80, opcode, 0, length, 0, 0, 0, 0, 0, 0, 0, length];
    request.resize(24, 0);
    request.extend_from_slice(key);
    client.send(request);
    let answer = client.peek(24);
    (answer[6], answer[7])
}

/// Sends lines, and expects; a last PING shows that nothing else came.
#[track_caller]
fn ask_redis(client: &mut Client, request: impl AsRef<str>, reply: impl AsRef<str>) {
    client.send(format!("{}PING\r\n", request.as_ref()));
    client.expect(format!("{}+PONG\r\n", reply.as_ref()));
}

const FLUSH: u8 = 0x08;
const STAT: u8 = 0x10;
const REFUSED: (u8, u8) = (0, 0x20);

/// Each request that changes the server for all, and its refusal.
const TEXT: [(&str, &str); 8] = [
    ("verbosity 3", "CLIENT_ERROR verbosity not allowed"),
    (
        "cache_memlimit 100",
        "CLIENT_ERROR cache_memlimit not allowed",
    ),
    (
        "cache_memlimit 1",
        "CLIENT_ERROR cache_memlimit not allowed",
    ),
    ("refresh_certs", "CLIENT_ERROR refresh_certs not allowed"),
    ("stats reset", "CLIENT_ERROR stats reset not allowed"),
    ("flush_all", "CLIENT_ERROR flush_all not allowed"),
    ("flush_all 100", "CLIENT_ERROR flush_all not allowed"),
    ("shutdown", "SERVER_ERROR: shutdown not enabled"),
];

const REDIS: [(&str, &str); 5] = [
    ("FLUSHALL", "-ERR FLUSHALL is not allowed here"),
    ("FLUSHDB", "-ERR FLUSHALL is not allowed here"),
    (
        "CONFIG SET maxmemory 100mb",
        "-ERR CONFIG SET is not allowed here",
    ),
    (
        "CONFIG SET maxmemory-policy allkeys-lru",
        "-ERR CONFIG SET is not allowed here",
    ),
    (
        "CONFIG RESETSTAT",
        "-ERR CONFIG RESETSTAT is not allowed here",
    ),
];

#[test]
fn what_changes_the_server_for_all_may_be_forbidden() {
    let forbidden = Config {
        disabled_actions: Actions::ALL,
        ..both()
    };
    let server = Fixture::with(forbidden, Wants::default());
    let (mut text, mut redis) = (server.client(), server.redis_client());
    text.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    let limit = text.stats("settings")["maxbytes"].clone();
    for (request, refusal) in TEXT {
        text.ask(format!("{request}\r\n"), format!("{refusal}\r\n"));
        text.ask(
            format!("{request} noreply\r\nmn\r\n"),
            match request {
                // These have no such word.
                "refresh_certs" | "stats reset" => format!("{refusal}\r\nMN\r\n"),
                _ => "MN\r\n".to_owned(),
            },
        );
    }
    for (request, refusal) in REDIS {
        ask_redis(
            &mut redis,
            format!("{request}\r\n"),
            format!("{refusal}\r\n"),
        );
        // EXEC is no way around it.
        ask_redis(
            &mut redis,
            format!("MULTI\r\n{request}\r\nEXEC\r\n"),
            format!("+OK\r\n+QUEUED\r\n*1\r\n{refusal}\r\n"),
        );
    }
    assert_eq!(status(&server, b"", FLUSH, b""), REFUSED);
    assert_eq!(status(&server, b"", STAT, b"reset"), REFUSED);
    text.ask("get k\r\n", "VALUE k 0 1\r\na\r\nEND\r\n");
    let settings = text.stats("settings");
    assert_eq!(
        (&settings["maxbytes"], &*settings["verbosity"]),
        (&limit, "0")
    );
    assert_eq!(settings["disable_admin"], Actions::ALL.to_string());
}

#[test]
fn a_list_forbids_what_it_names() {
    let some = Config {
        disabled_actions: "config_set:flush_all".parse().unwrap(),
        ..both()
    };
    let server = Fixture::with(some, Wants::default());
    let mut text = server.client();
    for (request, answer) in [
        (
            "cache_memlimit 100",
            "CLIENT_ERROR cache_memlimit not allowed",
        ),
        ("flush_all", "CLIENT_ERROR flush_all not allowed"),
        ("verbosity 0", "OK"),
        ("stats reset", "RESET"),
    ] {
        text.ask(format!("{request}\r\n"), format!("{answer}\r\n"));
    }
    assert_eq!(status(&server, b"", STAT, b"reset"), (0, 0));
    // A server that runs takes another list.
    server.handle().controls().apply(&both());
    text.ask("flush_all\r\n", "OK\r\n");
}

#[test]
fn a_user_may_do_what_is_forbidden_to_others() {
    let users = std::env::temp_dir().join(format!("nuthatch-admin-{}", std::process::id()));
    fs::write(&users, "ann:secret\nbob:word\n:admin:bob\n").unwrap();
    let forbidden = Config {
        disabled_actions: Actions::ALL,
        auth_file: Some(users.clone()),
        ..both()
    };
    let server = Fixture::with(forbidden, Wants::default());
    fs::remove_file(users).unwrap();
    let login = |client: &mut Client, said: &str| {
        let request = format!("set any 0 0 {}\r\n{said}\r\n", said.len());
        client.ask(request, "STORED\r\n");
    };
    let (mut ann, mut bob) = (server.client(), server.client());
    login(&mut ann, "ann secret");
    login(&mut bob, "bob word");
    for (request, refusal) in TEXT {
        ann.ask(format!("{request}\r\n"), format!("{refusal}\r\n"));
    }
    bob.ask(
        "verbosity 0\r\nstats reset\r\nflush_all\r\n",
        "OK\r\nRESET\r\nOK\r\n",
    );
    bob.ask("refresh_certs\r\n", "Error TLS not enabled\r\n");
    let plain = |said: &[u8]| {
        let (key, body) = (b"PLAIN", [&b"PLAIN"[..], said].concat());
        let mut request = vec![0x80, 0x21, 0, key.len() as u8, 0, 0, 0, 0, 0, 0, 0];
        request.push(body.len() as u8);
        request.resize(24, 0);
        [request, body].concat()
    };
    let binary = |said: &[u8]| {
        let mut client = server.client();
        client.send(plain(said));
        client.expect(
            [
                &[0x81, 0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13][..],
                &[0; 12],
                b"Authenticated",
            ]
            .concat(),
        );
        let mut flush = vec![0x80, FLUSH];
        flush.resize(24, 0);
        client.send(flush);
        let answer = client.peek(24);
        (answer[6], answer[7])
    };
    assert_eq!(binary(b"\0ann\0secret"), REFUSED);
    assert_eq!(binary(b"\0bob\0word"), (0, 0));
    // The user of the last login counts, and none behind a RESET.
    let mut redis = server.redis_client();
    let refused = "-ERR FLUSHALL is not allowed here\r\n";
    ask_redis(
        &mut redis,
        "AUTH bob word\r\nFLUSHALL\r\n",
        "+OK\r\n+OK\r\n",
    );
    ask_redis(
        &mut redis,
        "AUTH ann secret\r\nFLUSHALL\r\n",
        format!("+OK\r\n{refused}"),
    );
    ask_redis(
        &mut redis,
        "AUTH bob word\r\nRESET\r\nAUTH ann secret\r\nFLUSHALL\r\n",
        format!("+OK\r\n+RESET\r\n+OK\r\n{refused}"),
    );
    bob.send("shutdown\r\n");
    server.join();
}

#[test]
fn where_nobody_may_flush_no_limit_evicts_what_is_stored() {
    let config = Config {
        allow_flush: false,
        ..both()
    };
    let wants = Wants {
        memory: 64 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(config, wants);
    let (mut text, mut redis) = (server.client(), server.redis_client());
    let value = "v".repeat(100_000);
    for number in 0..200 {
        text.ask(
            format!("set {number} 0 0 100000\r\n{value}\r\n"),
            "STORED\r\n",
        );
    }
    for megabytes in [8, 16] {
        text.ask(
            format!("cache_memlimit {megabytes}\r\n"),
            "CLIENT_ERROR cache_memlimit below the memory in use not allowed\r\n",
        );
        ask_redis(
            &mut redis,
            format!("CONFIG SET maxmemory {megabytes}mb\r\n"),
            "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - a limit below the memory in use is not \
             allowed here\r\n",
        );
    }
    assert_eq!((text.stat("curr_items"), text.stat("evictions")), (200, 0));
    // A limit above that evicts nothing.
    text.ask("cache_memlimit 60\r\n", "OK\r\n");
    ask_redis(&mut redis, "CONFIG SET maxmemory 64mb\r\n", "+OK\r\n");
    assert_eq!((text.stat("curr_items"), text.stat("evictions")), (200, 0));
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let limited = Config {
        address_connections_max: NonZeroUsize::new(2),
        ..both()
    };
    let server = Fixture::with(limited, Wants::default());
    let mut first = server.client();
    first.ask("mn\r\n", "MN\r\n");
    let second = server.redis_client();
    first.until("curr_connections", |open| open == 2);
    let mut third = server.client();
    assert_eq!(
        third.line(),
        "ERROR Too many open connections of this address"
    );
    third.expect_orderly_end();
    let mut fourth = server.redis_client();
    assert_eq!(
        fourth.line(),
        "-ERR max number of clients of this address reached"
    );
    for name in ["rejected_by_address", "rejected_connections"] {
        assert_eq!(first.stat(name), 2, "{name}");
    }
    // Another address has places of its own.
    let address = server.address();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&std::net::SocketAddr::from(([127, 0, 0, 2], 0)).into())
        .unwrap();
    socket.connect(&address.into()).unwrap();
    first.until("curr_connections", |open| open == 3);
    // A place that is left is free.
    drop(second);
    first.until("curr_connections", |open| open == 2);
    server.client().ask("mn\r\n", "MN\r\n");
    // A server that runs takes another limit, and connections stay.
    server.handle().controls().apply(&both());
    let mut more = [server.client(), server.client()];
    more.iter_mut()
        .for_each(|client| client.ask("mn\r\n", "MN\r\n"));
}
