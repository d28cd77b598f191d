//! The text commands.

use nuthatch_server::config::MEMCACHED_VERSION;

use super::fixture::Fixture;

#[test]
fn a_value_comes_back_as_it_was_set() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("get seed\r\n", "END\r\n");
    client.ask("set seed 7 0 3\r\nnut\r\n", "STORED\r\n");
    client.ask("get seed\r\n", "VALUE seed 7 3\r\nnut\r\nEND\r\n");
    client.ask("set empty 0 0 0\r\n\r\n", "STORED\r\n");
    client.ask("get empty\r\n", "VALUE empty 0 0\r\n\r\nEND\r\n");
    client.ask(b"set bin 4294967295 0 4\r\n\r\n\0\xff\r\n", "STORED\r\n");
    client.ask(
        "get bin\r\n",
        b"VALUE bin 4294967295 4\r\n\r\n\0\xff\r\nEND\r\n",
    );
}

#[test]
fn a_get_answers_its_keys_in_order_and_leaves_out_misses() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(
        "set a 1 0 1\r\nA\r\nset b 2 0 1\r\nB\r\n",
        "STORED\r\nSTORED\r\n",
    );
    client.ask(
        "get b none a b\r\n",
        "VALUE b 2 1\r\nB\r\nVALUE a 1 1\r\nA\r\nVALUE b 2 1\r\nB\r\nEND\r\n",
    );
    client.ask("get none nobody\r\n", "END\r\n");
}

#[test]
fn a_get_of_more_keys_than_a_batch_holds_ends_once() {
    let server = Fixture::new();
    let mut client = server.client();
    let mut request = String::from("get");
    let mut reply = String::new();
    for number in 0..5000 {
        client.send(format!("set key{number} 0 0 5 noreply\r\n{number:05}\r\n"));
        request += &format!(" key{number} none{number}");
        reply += &format!("VALUE key{number} 0 5\r\n{number:05}\r\n");
    }
    request += "\r\n";
    reply += "END\r\n";
    client.ask(&request, &reply);
    client.ask(
        [&request[..], &request].concat(),
        [&reply[..], &reply].concat(),
    );
}

#[test]
fn stores_heed_what_is_there() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("replace k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("append k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("prepend k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("add k 5 0 1\r\nb\r\n", "STORED\r\n");
    client.ask("add k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("append k 9 0 1\r\nc\r\n", "STORED\r\n");
    client.ask("prepend k 9 0 1\r\na\r\n", "STORED\r\n");
    client.ask("get k\r\n", "VALUE k 5 3\r\nabc\r\nEND\r\n");
    client.ask("replace k 6 0 1\r\nd\r\n", "STORED\r\n");
    client.ask("get k\r\n", "VALUE k 6 1\r\nd\r\nEND\r\n");
}

#[test]
fn cas_stores_only_over_what_was_read() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("cas k 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n");
    client.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    client.send("gets k\r\n");
    let header = client.line();
    let cas: u64 = header.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(header, format!("VALUE k 0 1 {cas}"));
    client.expect("a\r\nEND\r\n");
    client.ask(format!("cas k 0 0 1 {}\r\nb\r\n", cas + 1), "EXISTS\r\n");
    client.ask(format!("cas k 0 0 1 {cas}\r\nb\r\n"), "STORED\r\n");
    client.ask(format!("cas k 0 0 1 {cas}\r\nc\r\n"), "EXISTS\r\n");
    client.ask("get k\r\n", "VALUE k 0 1\r\nb\r\nEND\r\n");
    let stats = client.stats("");
    assert_eq!(
        ["cas_hits", "cas_misses", "cas_badval"].map(|name| &stats[name][..]),
        ["1", "1", "2"]
    );
}

/// As in memcached, a set, an add and a replace of the binary protocol are a compare-and-swap if they have a cas, and an
/// append is none.
#[test]
fn binary_stores_with_a_cas_are_counted_as_such() {
    const SET: u8 = 0x01;
    const ADD: u8 = 0x02;
    const REPLACE: u8 = 0x03;
    const APPEND: u8 = 0x0e;
    const EXISTS: u8 = 2;
    const NOT_FOUND: u8 = 1;
    let server = Fixture::new();
    let store = |opcode: u8, key: u8, cas: u64| {
        let mut client = server.client();
        let extras = if opcode == APPEND { 0 } else { 8 };
        let mut request = vec![0x80, opcode, 0, 1, extras, 0, 0, 0, 0, 0, 0, extras + 2];
        request.extend([0; 4]);
        request.extend(cas.to_be_bytes());
        request.extend(vec![0; usize::from(extras)]);
        request.extend([key, b'v']);
        client.send(request);
        client.peek(24)[7]
    };
    assert_eq!(store(SET, b'k', 0), 0);
    let mut client = server.client();
    client.send("gets k\r\n");
    let cas: u64 = client.line().rsplit(' ').next().unwrap().parse().unwrap();
    client.expect("v\r\nEND\r\n");
    assert_eq!(store(SET, b'k', cas), 0);
    assert_eq!(store(SET, b'k', cas), EXISTS);
    assert_eq!(store(ADD, b'k', cas), EXISTS);
    assert_eq!(store(REPLACE, b'n', cas), NOT_FOUND);
    assert_eq!(store(APPEND, b'k', cas), EXISTS);
    let stats = client.stats("");
    assert_eq!(
        ["cmd_set", "cas_hits", "cas_misses", "cas_badval"].map(|name| &stats[name][..]),
        ["6", "1", "1", "2"]
    );
}

#[test]
fn deletes_say_whether_there_was_something() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("delete k\r\n", "NOT_FOUND\r\n");
    client.ask(
        "set k 0 0 1\r\na\r\ndelete k\r\nget k\r\n",
        "STORED\r\nDELETED\r\nEND\r\n",
    );
    client.ask("delete k 0\r\n", "NOT_FOUND\r\n");
}

#[test]
fn numbers_go_up_and_down() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("incr n 1\r\n", "NOT_FOUND\r\n");
    client.ask("set n 0 0 2\r\n10\r\n", "STORED\r\n");
    client.ask("incr n 5\r\n", "15\r\n");
    client.ask("decr n 6\r\n", "9\r\n");
    client.ask("decr n 100\r\n", "0\r\n");
    client.ask("set n 0 0 20\r\n18446744073709551615\r\n", "STORED\r\n");
    client.ask("incr n 2\r\n", "1\r\n");
    client.ask("set n 0 0 3\r\n 9 \r\nincr n 1\r\n", "STORED\r\n10\r\n");
    // (The last one wraps to 1 in 64 bits.)
    for word in ["x", "-1", "-18446744073709551615"] {
        client.ask(
            format!("set n 0 0 {}\r\n{word}\r\nincr n 1\r\n", word.len()),
            "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        );
    }
}

#[test]
fn noreply_says_nothing_and_does_it() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(
        "set a 0 0 1 noreply\r\n1\r\nadd a 0 0 1 noreply\r\n2\r\nincr a 5 noreply\r\n\
         touch a 100 noreply\r\ndelete none noreply\r\nappend a 0 0 1 noreply\r\n0\r\n\
         verbosity 1 noreply\r\n",
        "",
    );
    client.ask("get a\r\n", "VALUE a 0 2\r\n60\r\nEND\r\n");
    client.ask("flush_all noreply\r\nget a\r\n", "END\r\n");
}

#[test]
fn touch_and_gat_change_the_expiry() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("touch k 100\r\n", "NOT_FOUND\r\n");
    client.ask("gat 100 k\r\n", "END\r\n");
    client.ask("set k 3 0 1\r\na\r\n", "STORED\r\n");
    client.ask("mg k t\r\n", "HD t-1\r\n");
    client.ask("touch k 100\r\n", "TOUCHED\r\n");
    client.ask("mg k t\r\n", "HD t100\r\n");
    client.ask("gat 200 k none\r\n", "VALUE k 3 1\r\na\r\nEND\r\n");
    client.ask("mg k t\r\n", "HD t200\r\n");
    client.ask("touch k 0\r\nmg k t\r\n", "TOUCHED\r\nHD t-1\r\n");
    client.send("gats 0 k\r\n");
    assert!(client.line().starts_with("VALUE k 3 1 "));
    client.expect("a\r\nEND\r\n");
    client.ask("touch k -1\r\nget k\r\n", "TOUCHED\r\nEND\r\n");
}

#[test]
fn expiries_in_the_past_are_dead_on_arrival() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("set k 0 -1 1\r\na\r\nget k\r\n", "STORED\r\nEND\r\n");
    // More than 30 days is a moment in unix time, and this one was in 1970.
    client.ask("set k 0 2592001 1\r\na\r\nget k\r\n", "STORED\r\nEND\r\n");
    client.ask(
        "set k 0 2592000 1\r\na\r\nmg k t\r\n",
        "STORED\r\nHD t2592000\r\n",
    );
}

#[test]
fn an_expiry_has_32_bits_and_a_sign() {
    let server = Fixture::new();
    let mut client = server.client();
    // A storage line takes 64 bits, and keeps the lower 32 of them.
    for (seconds, live) in [
        ("0", true),
        ("2147483647", true),
        ("2147483648", false),
        ("4294967295", false),
        ("4294967296", true),
        ("9223372036854775807", false),
        ("-2147483648", false),
        ("-2147483649", true),
        ("-9223372036854775808", true),
    ] {
        let found = if live { "VALUE k 0 1\r\na\r\n" } else { "" };
        client.ask(
            format!("set k 0 {seconds} 1\r\na\r\nget k\r\n"),
            format!("STORED\r\n{found}END\r\n"),
        );
    }
    // All others take 32 bits.
    for seconds in ["0", "2147483647", "-1", "-2147483648"] {
        let found = if !seconds.starts_with('-') {
            "VALUE k 0 1\r\na\r\n"
        } else {
            ""
        };
        for (line, reply) in [
            (format!("touch k {seconds}"), "TOUCHED\r\n"),
            (format!("gat {seconds} k"), "VALUE k 0 1\r\na\r\nEND\r\n"),
            (format!("mg k T{seconds}"), "HD\r\n"),
            (format!("md k I T{seconds}"), "HD\r\n"),
        ] {
            client.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
            client.ask(
                format!("{line}\r\nget k\r\n"),
                format!("{reply}{found}END\r\n"),
            );
        }
    }
    let exptime = "CLIENT_ERROR invalid exptime argument\r\n";
    let token = "CLIENT_ERROR bad token in command line format\r\n";
    let flag = "CLIENT_ERROR invalid or duplicate flag\r\n";
    client.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    for seconds in [
        "2147483648",
        "4294967295",
        "9223372036854775807",
        "-2147483649",
        "-9223372036854775808",
    ] {
        for (line, reply) in [
            (format!("touch k {seconds}\r\n"), exptime),
            (format!("gat {seconds} k\r\n"), exptime),
            (format!("gats {seconds} k\r\n"), exptime),
            (format!("flush_all {seconds}\r\n"), exptime),
            (format!("flush_all {seconds} noreply\r\n"), ""),
            (format!("mg k T{seconds}\r\n"), token),
            (format!("mg k N{seconds}\r\n"), token),
            (format!("mg k R{seconds}\r\n"), token),
            (format!("ms k 1 T{seconds}\r\nb\r\n"), token),
            (format!("md k T{seconds}\r\n"), token),
            (format!("ma k T{seconds}\r\n"), flag),
            (format!("ma k N{seconds}\r\n"), flag),
        ] {
            client.ask(line, reply);
        }
    }
    client.ask("get k\r\n", "VALUE k 0 1\r\na\r\nEND\r\n");
}

#[test]
fn a_client_reads_its_own_writes_within_one_packet() {
    let server = Fixture::new();
    let mut client = server.client();
    let mut request = String::new();
    let mut reply = String::new();
    for number in 0..3000 {
        request += &format!("set k 0 0 4\r\n{number:04}\r\nget k\r\n");
        reply += &format!("STORED\r\nVALUE k 0 4\r\n{number:04}\r\nEND\r\n");
        if number % 100 == 0 {
            // Commands that need no batch keep their place in the order.
            request += "version\r\ndelete k\r\nnonsense\r\nget k\r\n";
            let version = MEMCACHED_VERSION;
            reply += &format!("VERSION {version}\r\nDELETED\r\nERROR\r\nEND\r\n");
        }
    }
    client.ask(request, reply);
}

#[test]
fn quit_answers_what_came_before_and_closes() {
    let server = Fixture::new();
    let mut client = server.client();
    client.send("set k 0 0 1\r\na\r\nget k\r\nquit\r\nget k\r\n");
    client.expect("STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n");
    client.expect_end();
}

#[test]
fn a_half_closed_client_gets_its_replies() {
    let server = Fixture::new();
    let mut client = server.client();
    client.send("set k 0 0 1\r\na\r\nget k\r\n");
    client.finish();
    client.expect("STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n");
    client.expect_end();
}
