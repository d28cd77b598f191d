//! Values that arrive and leave in pieces.

use nuthatch_server::config::MEMCACHED_VERSION;

use super::fixture::{Fixture, Wants, config};

/// Bytes that differ from place to place.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 251 + seed) as u8)
        .collect()
}

fn set(key: &str, options: &str, value: &[u8]) -> Vec<u8> {
    let mut request = format!("set {key} 7 0 {}{options}\r\n", value.len()).into_bytes();
    request.extend_from_slice(value);
    request.extend_from_slice(b"\r\n");
    request
}

fn value_reply(key: &str, value: &[u8]) -> Vec<u8> {
    let mut reply = format!("VALUE {key} 7 {}\r\n", value.len()).into_bytes();
    reply.extend_from_slice(value);
    reply.extend_from_slice(b"\r\n");
    reply
}

#[test]
fn every_size_around_the_limits_comes_back() {
    let server = Fixture::new();
    let mut client = server.client();
    let sizes = [
        0, 1, 2000, 4095, 4096, 8191, 8192, 8193, 16383, 16384, 16385, 16386, 65535, 65536, 65537,
        131_072, 500_000, 1_000_000,
    ];
    for size in sizes {
        let value = pattern(size, size);
        client.ask(set("k", "", &value), "STORED\r\n");
        client.ask(
            "get k\r\n",
            [&value_reply("k", &value)[..], b"END\r\n"].concat(),
        );
        client.send("mg k v s Oo\r\n");
        client.expect(format!("VA {size} s{size} Oo\r\n"));
        client.expect([&value[..], b"\r\n"].concat());
    }
}

#[test]
fn large_and_small_values_keep_their_order() {
    let server = Fixture::new();
    let mut client = server.client();
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    for round in 0..20 {
        let large = pattern(100_000 + round, round);
        let small = pattern(round, round);
        requests.extend(set("large", "", &large));
        requests.extend(set("small", "", &small));
        requests.extend(b"get small large none small\r\nversion\r\n");
        replies.extend(b"STORED\r\nSTORED\r\n");
        replies.extend(value_reply("small", &small));
        replies.extend(value_reply("large", &large));
        replies.extend(value_reply("small", &small));
        replies.extend(b"END\r\n");
        replies.extend(format!("VERSION {MEMCACHED_VERSION}\r\n").bytes());
    }
    // Read while writing: all of it may not fit into the sockets' buffers.
    let mut socket = client.raw();
    let writer = std::thread::spawn(move || {
        std::io::Write::write_all(&mut socket, &requests).unwrap();
    });
    client.expect(replies);
    writer.join().unwrap();
}

#[test]
fn a_large_value_obeys_its_command() {
    let server = Fixture::new();
    let mut client = server.client();
    let value = pattern(100_000, 1);
    let request = |line: &str| {
        let mut request = format!("{line}\r\n").into_bytes();
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        request
    };
    client.ask(request("add k 7 0 100000"), "STORED\r\n");
    client.ask(request("add k 7 0 100000"), "NOT_STORED\r\n");
    client.ask(request("replace none 7 0 100000"), "NOT_STORED\r\n");
    client.ask(request("cas k 7 0 100000 0"), "EXISTS\r\n");
    client.ask(request("set k 7 0 100000 noreply"), "");
    client.ask(request("append k 7 0 100000"), "STORED\r\n");
    let twice = [&value[..], &value[..]].concat();
    client.ask(
        "get k\r\n",
        [&value_reply("k", &twice)[..], b"END\r\n"].concat(),
    );
    client.ask(request("ms aw== 100000 b k Oo E9 c q"), "");
    client.ask(
        request("ms aw== 100000 b k Oo E9 c"),
        "HD kaw== b Oo c9\r\n",
    );
    client.ask("mg k s c\r\n", "HD s100000 c9\r\n");
}

#[test]
fn a_large_value_without_its_end_is_not_stored() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(set("k", "", b"old"), "STORED\r\n");
    let mut request = set("k", "", &pattern(100_000, 1));
    let end = request.len() - 2;
    request[end..].copy_from_slice(b"xx");
    client.ask(&request, "CLIENT_ERROR bad data chunk\r\n");
    client.ask(
        "get k\r\n",
        [&value_reply("k", b"old")[..], b"END\r\n"].concat(),
    );
}

#[test]
fn nobody_sees_a_large_value_before_it_is_complete() {
    let server = Fixture::new();
    let (mut writer, mut reader) = (server.client(), server.client());
    writer.ask(set("k", "", b"old"), "STORED\r\n");
    let value = pattern(300_000, 3);
    let request = set("k", "", &value);
    for piece in request[..request.len() - 1].chunks(50_000) {
        writer.send(piece);
        reader.ask(
            "get k\r\n",
            [&value_reply("k", b"old")[..], b"END\r\n"].concat(),
        );
    }
    writer.send(&request[request.len() - 1..]);
    writer.expect("STORED\r\n");
    reader.ask(
        "get k\r\n",
        [&value_reply("k", &value)[..], b"END\r\n"].concat(),
    );
}

#[test]
fn a_client_that_closes_within_a_value_leaves_no_trace() {
    let server = Fixture::new();
    let mut reader = server.client();
    for size in [10, 10_000, 300_000] {
        let mut client = server.client();
        client.ask(set("k", "", b"old"), "STORED\r\n");
        let request = set("k", "", &pattern(size, 3));
        client.send(&request[..request.len() / 2]);
        client.finish();
        client.expect_end();
        reader.ask(
            "get k\r\n",
            [&value_reply("k", b"old")[..], b"END\r\n"].concat(),
        );
    }
    reader.until("curr_connections", |connections| connections == 1);
}

#[test]
fn no_room_for_a_value_swallows_it_and_forgets_the_old() {
    let error = "SERVER_ERROR out of memory storing object";
    for size in [70_000, 9_000] {
        let wants = Wants {
            memory: 16 << 20,
            evicts: false,
            ..Wants::default()
        };
        let server = Fixture::with(config(), wants);
        let mut client = server.client();
        // Keeps the page of the small items in use: with size classes, an empty one would make room.
        client.ask(set("other", "", b"old"), "STORED\r\n");
        client.ask(set("k", "", b"old"), "STORED\r\n");
        let value = pattern(size, 1);
        let mut number = 0;
        loop {
            client.send(set(&format!("filler{number}"), "", &value));
            match client.line().as_str() {
                "STORED" => number += 1,
                line => break assert_eq!(line, error),
            }
        }
        client.ask(set("k", "", &value), format!("{error}\r\n"));
        client.ask("get k\r\n", "END\r\n");
        client.ask(set("k", " noreply", &value), "");
        assert_eq!(client.stat("store_no_memory"), 3);
    }
}

#[test]
fn values_over_the_item_limit_are_swallowed_and_the_old_one_goes() {
    let server = Fixture::new();
    let mut client = server.client();
    for size in [(1 << 20) + 1, (1 << 20) - 1, 3 << 20] {
        client.ask(set("k", "", b"old"), "STORED\r\n");
        client.ask(
            set("k", "", &pattern(size, 1)),
            "SERVER_ERROR object too large for cache\r\n",
        );
        client.ask("get k\r\n", "END\r\n");
    }
}

/// Class of bug: readers that do not read take the memory of all stores, for ever.
#[test]
fn who_does_not_take_its_values_is_closed_when_stores_find_no_memory() {
    const LEN: usize = 1_000_000;
    let wants = Wants {
        memory: 16 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(config(), wants);
    let mut client = server.client();
    // The oracle gives out copies: its stores never wait for a reader.
    if client.stats("settings")["engine"] == "naive" {
        return;
    }
    let value = "v".repeat(LEN);
    let store = |number: usize| format!("set k{number} 0 0 {LEN}\r\n{value}\r\n");
    let mut deaf = Vec::new();
    let mut number = 0;
    client.until("reader_kicks", |kicks| {
        let mut storing = server.client();
        for _ in 0..16 {
            storing.send(store(number % 16));
            let failed = storing.line() != "STORED";
            if !failed && deaf.len() < 30 {
                let mut one = server.client();
                one.send(
                    format!(
                        "get k{0} k{0} k{0} k{0} k{0} k{0} k{0} k{0}\r\n",
                        number % 16
                    )
                    .repeat(4),
                );
                deaf.push(one);
            }
            number += 1;
        }
        kicks > 0
    });
    assert!(client.stat("store_no_memory") > 0);
    // The memory is there for others again.
    let mut storing = server.client();
    client.until("reader_kicks", |_| {
        storing.send(store(number % 16));
        storing.line() == "STORED"
    });
}
