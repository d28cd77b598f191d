//! Input that clients should not send: each gets a clear error or a closed connection, and no other client notices.

use nuthatch_server::{Config, Protocol};

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";

/// The server is well: another client gets what it stored.
fn assert_unharmed(server: &Fixture) {
    let mut client = server.client();
    client.ask("set well 0 0 2\r\nok\r\n", "STORED\r\n");
    client.ask("get well\r\n", "VALUE well 0 2\r\nok\r\nEND\r\n");
}

fn each(asks: &[(&str, &str)]) {
    let server = Fixture::new();
    let mut client = server.client();
    for (request, reply) in asks {
        client.ask(request, reply);
    }
    assert_unharmed(&server);
}

#[test]
fn lines_that_are_no_command() {
    each(&[
        ("nonsense\r\n", "ERROR\r\n"),
        ("nonsense noreply\r\n", ""),
        (" get k\r\n", "ERROR\r\n"),
        ("\r\n", BAD_FORMAT),
        ("\n", BAD_FORMAT),
        ("      \r\n", "ERROR\r\n"),
        ("\0\x01\x02\r\n", "ERROR\r\n"),
        ("GET k\r\n", "ERROR\r\n"),
        ("get\r\n", BAD_FORMAT),
        ("delete\r\n", BAD_FORMAT),
        ("set k 0 0\r\n", BAD_FORMAT),
    ]);
}

#[test]
fn binary_garbage_of_every_kind() {
    let server = Fixture::new();
    let mut state = 1_u64;
    for round in 0..200 {
        let mut client = server.client();
        let mut garbage: Vec<u8> = (0..round * 20)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) as u8
            })
            .collect();
        if round % 4 == 0 {
            garbage.insert(0, 0x80);
        }
        client.send(&garbage);
        client.finish();
        // The server may answer anything, and then closes.
        while client.drain_some() {}
    }
    assert_unharmed(&server);
}

#[test]
fn the_binary_protocol_is_refused_and_closed_where_it_is_not_spoken() {
    let text_alone = Config {
        listeners: vec![any_port().of(Protocol::Text)],
        ..config()
    };
    let server = Fixture::with(text_alone, Wants::default());
    let get = binary_request(0x00, 1, b"key");
    let quiet = binary_request(0x09, 2, b"key");
    let noop = binary_request(0x0a, 0xdead_beef, b"");
    let set = binary_request(0x01, 3, &vec![b'v'; 500_000]);
    let text = b"set key 0 0 1\r\na\r\nget key\r\n".to_vec();
    for (requests, refused) in [
        (vec![&get], vec![(0x00, 1)]),
        (vec![&noop], vec![(0x0a, 0xdead_beef)]),
        // Several requests that arrive at once are answered each.
        (
            vec![&quiet, &quiet, &noop],
            vec![(0x09, 2), (0x09, 2), (0x0a, 0xdead_beef)],
        ),
        // The bytes behind them are no text command.
        (vec![&get, &text], vec![(0x00, 1)]),
        // Nor is a body, which may still be on its way.
        (vec![&set], vec![(0x01, 3)]),
    ] {
        let mut client = server.client();
        client.send(requests.into_iter().flatten().copied().collect::<Vec<u8>>());
        for (opcode, opaque) in refused {
            expect_refusal(&mut client, opcode, opaque);
        }
        // However much it sends meanwhile.
        client.send(&set);
        client.expect_orderly_end();
    }
    server.client().ask("get key\r\n", "END\r\n");
    assert_unharmed(&server);
}

#[test]
fn a_header_of_the_binary_protocol_behind_text_may_arrive_in_pieces() {
    let server = Fixture::new();
    let mut other = server.client();
    let noop = binary_request(0x0a, 7, b"");
    for piece in [1, 5, 23] {
        let mut client = server.client();
        // After a text command, too.
        client.ask("get none\r\n", "END\r\n");
        for piece in noop.chunks(piece) {
            assert!(!client.has_input());
            client.send(piece);
            other.ask("get none\r\n", "END\r\n");
        }
        expect_refusal(&mut client, 0x0a, 7);
        client.expect_orderly_end();
    }
    // One that is never finished is not answered, behind text or not.
    let mut client = server.client();
    client.send(&noop[..23]);
    client.finish();
    client.expect_orderly_end();
}

/// A request of the binary protocol.
fn binary_request(opcode: u8, opaque: u32, body: &[u8]) -> Vec<u8> {
    let mut request = vec![0x80, opcode, 0, 0, 0, 0, 0, 0];
    request.extend((body.len() as u32).to_be_bytes());
    request.extend(opaque.to_be_bytes());
    request.extend([0; 8]);
    request.extend(body);
    request
}

/// An answer of the binary protocol that says "unknown command".
#[track_caller]
fn expect_refusal(client: &mut Client, opcode: u8, opaque: u32) {
    let header = client.peek(24).to_vec();
    let body_len = u32::from_be_bytes(header[8..12].try_into().unwrap());
    let mut expected = vec![0x81, opcode, 0, 0, 0, 0, 0, 0x81];
    expected.extend(body_len.to_be_bytes());
    expected.extend(opaque.to_be_bytes());
    expected.extend([0; 8]);
    client.expect(expected);
    let body = client.peek(body_len as usize).to_vec();
    client.expect(&body);
    assert!(String::from_utf8(body).unwrap().contains("binary protocol"));
}

#[test]
fn a_line_without_an_end_closes() {
    let server = Fixture::new();
    let mut client = server.client();
    client.send(vec![b'x'; 100_000]);
    assert_eq!(client.line(), "CLIENT_ERROR line too long");
    client.expect_orderly_end();
    assert_unharmed(&server);
}

/// Class of bug: a limit on a whole request where a limit on its pieces would do.
#[test]
fn a_get_may_have_any_number_of_keys() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("set k 0 0 1\r\nv\r\n", "STORED\r\n");
    let none = " none-of-these-keys".repeat(200_000);
    for (name, value) in [
        ("get", "VALUE k 0 1\r\nv\r\n"),
        ("gat 0", "VALUE k 0 1\r\nv\r\n"),
    ] {
        client.send(format!("{name} k{none} k {none} \r\n"));
        client.expect(format!("{value}{value}END\r\n"));
    }
    // Each key is work: a turn has no more of them than commands.
    assert!(client.stat("conn_yields") > 100);
    // In a line so long the keys before a bad one are answered, and the rest is dropped.
    let long = "x".repeat(251);
    for bad in [long.as_str(), "a\tb"] {
        client.send(format!("get k{none} {bad}{none} k\r\nmn\r\n"));
        client.expect("VALUE k 0 1\r\nv\r\n".to_owned() + BAD_FORMAT + "MN\r\n");
    }
    client.ask(
        format!("get {}\r\nmn\r\n", " ".repeat(3000)),
        BAD_FORMAT.to_owned() + "MN\r\n",
    );
}

/// Class of bug: an answer that a reset takes away from a client that is still sending.
#[test]
fn who_is_closed_hears_why_however_much_it_sends() {
    let server = Fixture::new();
    for (last, answer) in [
        (&b"get k\r\nquit\r\n"[..], "END"),
        (&[b'x'; 2048], "CLIENT_ERROR line too long"),
    ] {
        let mut client = server.client();
        client.send(last);
        // The answer is here, and so is the decision to close.
        assert_eq!(client.line(), answer);
        for _ in 0..100 {
            client.send([b'x'; 100_000]);
        }
        client.expect_orderly_end();
    }
    assert_unharmed(&server);
    // The server does not wait for clients that do not close.
    let mut client = server.client();
    let mut never = server.client();
    never.send("quit\r\n");
    client.until("curr_connections", |connections| connections == 1);
}

#[test]
fn keys_too_long_or_with_control_characters() {
    let server = Fixture::new();
    let mut client = server.client();
    let (long, longest) = ("k".repeat(251), "k".repeat(250));
    client.ask(format!("get {long}\r\n"), BAD_FORMAT);
    client.ask(format!("set {long} 0 0 3\r\nabc\r\n"), BAD_FORMAT);
    client.ask(
        format!("delete {long}\r\nincr {long} 1\r\n"),
        [BAD_FORMAT; 2].concat(),
    );
    client.ask(format!("touch {long} 1\r\n"), BAD_FORMAT);
    client.ask("get a\x01b\r\n", BAD_FORMAT);
    client.ask("set a\x7fb 0 0 3\r\nabc\r\n", BAD_FORMAT);
    client.ask(format!("set {longest} 0 0 1\r\na\r\n"), "STORED\r\n");
    client.ask(
        format!("get {longest}\r\n"),
        format!("VALUE {longest} 0 1\r\na\r\nEND\r\n"),
    );
    assert_unharmed(&server);
}

#[test]
fn lengths_that_are_none() {
    each(&[
        ("set k 0 0 -1\r\n", BAD_FORMAT),
        ("set k 0 0 x\r\n", BAD_FORMAT),
        ("set k 0 0 99999999999999999999999\r\n", BAD_FORMAT),
        ("ms k -1\r\n", BAD_FORMAT),
        ("ms k x\r\n", BAD_FORMAT),
    ]);
}

/// As in memcached: a client that is told so at once sends no block, and its next line is a command.
#[test]
fn a_length_that_no_block_has_is_refused_at_once() {
    let server = Fixture::new();
    let mut client = server.client();
    for length in [
        "2147483646",
        "2147483647",
        "4294967299",
        "18446744073709551615",
        "000000000013",
        "-2147483648",
    ] {
        for line in [
            format!("set k 0 0 {length}"),
            format!("set k 0 0 {length} noreply"),
            format!("add k x 0 {length}"),
            format!("replace k 0 0 {length}"),
            format!("append k 0 0 {length}"),
            format!("prepend k 0 0 {length}"),
            format!("cas k 0 0 {length} 5"),
            format!("ms k {length}"),
            format!("ms k {length} q"),
        ] {
            client.ask(format!("{line}\r\n"), BAD_FORMAT);
        }
    }
    assert_unharmed(&server);
}

#[test]
fn the_block_of_a_bad_line_is_not_taken_for_commands() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("set victim 0 0 1\r\na\r\n", "STORED\r\n");
    for line in [
        // Without its cas.
        "cas k 0 0 13",
        "cas k 0 0 13 x",
        "set k x 0 13",
        "set k 0 x 13",
        "ms k 13 v v",
        "ms k 13 !",
    ] {
        client.send(format!("{line}\r\ndelete victim\r\n"));
        assert!(client.line().starts_with("CLIENT_ERROR"), "{line}");
        client.ask("get victim\r\n", "VALUE victim 0 1\r\na\r\nEND\r\n");
    }
    client.ask(
        "cas k 0 0 13 noreply\r\ndelete victim\r\nget victim\r\n",
        "VALUE victim 0 1\r\na\r\nEND\r\n",
    );
}

#[test]
fn data_blocks_without_their_end() {
    each(&[
        (
            "set k 0 0 3\r\nabcdefg\r\n",
            "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
        ),
        (
            "set k 0 0 3\r\nab\r\n\r\n",
            "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n",
        ),
        ("get k\r\n", "END\r\n"),
        ("set k 0 0 3 noreply\r\nabcxx", ""),
        ("get k\r\n", "END\r\n"),
    ]);
}

#[test]
fn numbers_out_of_range() {
    each(&[
        ("set k 18446744073709551616 0 1\r\na\r\n", BAD_FORMAT),
        ("set k -1 0 1\r\na\r\n", BAD_FORMAT),
        ("set k 0 x 1\r\na\r\n", BAD_FORMAT),
        (
            "incr k -1\r\n",
            "CLIENT_ERROR invalid numeric delta argument\r\n",
        ),
        (
            "incr k 18446744073709551616\r\n",
            "CLIENT_ERROR invalid numeric delta argument\r\n",
        ),
        ("touch k x\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
        ("cas k 0 0 1 x\r\na\r\n", BAD_FORMAT),
        (
            "flush_all x\r\n",
            "CLIENT_ERROR invalid exptime argument\r\n",
        ),
        ("verbosity x\r\n", BAD_FORMAT),
    ]);
}

#[test]
fn increments_of_what_is_no_number() {
    let error = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    let server = Fixture::new();
    let mut client = server.client();
    for value in ["", "x", "1x", "-1", "1 x", "99999999999999999999999"] {
        client.ask(
            format!("set n 0 0 {}\r\n{value}\r\n", value.len()),
            "STORED\r\n",
        );
        client.ask("incr n 1\r\n", error);
        client.ask("decr n 1\r\n", error);
        client.ask("ma n\r\n", error);
    }
}

#[test]
fn bad_meta_commands() {
    each(&[
        ("mg\r\n", BAD_FORMAT),
        ("mg k v v\r\n", "CLIENT_ERROR duplicate flag\r\n"),
        ("mg !!! b\r\n", "CLIENT_ERROR error decoding key\r\n"),
        (
            "ms k 3 Tx\r\nabc\r\n",
            "CLIENT_ERROR bad token in command line format\r\n",
        ),
        (
            "ms k 3\r\nabcdefg\r\n",
            "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
        ),
        ("ms k 3 q\r\nabcxx", "CLIENT_ERROR bad data chunk\r\n"),
    ]);
}

#[test]
fn an_http_request_is_not_carried_out() {
    let server = Fixture::new();
    let mut client = server.client();
    client.send("POST / HTTP/1.1\r\nflush_all\r\n\r\n");
    client.expect_end();
    assert_unharmed(&server);
}

#[test]
fn one_byte_at_a_time_is_as_good_as_all_at_once() {
    let server = Fixture::new();
    let request = "set k 7 0 12\r\nhello\r\nworld\r\nget k none\r\nms m 2 T9\r\nhi\r\nmg m v t\r\n\
                   incr k 1\r\nnonsense\r\nquit\r\n";
    let reply = "STORED\r\nVALUE k 7 12\r\nhello\r\nworld\r\nEND\r\nHD\r\nVA 2 t9\r\nhi\r\n\
                 CLIENT_ERROR cannot increment or decrement non-numeric value\r\nERROR\r\n";
    let mut slow = server.client();
    let mut other = server.client();
    for byte in request.bytes() {
        slow.send([byte]);
        // By the time that another has its reply, the byte has most likely been seen alone.
        other.ask("get none\r\n", "END\r\n");
    }
    slow.expect(reply);
    slow.expect_end();
}

#[test]
fn clients_that_close_at_every_point() {
    let server = Fixture::new();
    let request = b"set k 0 0 5\r\nhello\r\nget k\r\nms m 2\r\nhi\r\nmg m v\r\n";
    for end in 0..request.len() {
        let mut client: Client = server.client();
        client.send(&request[..end]);
    }
    assert_unharmed(&server);
    let mut client = server.client();
    client.until("curr_connections", |connections| connections == 1);
}
