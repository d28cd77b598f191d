//! Clients that send many requests and read little, beside clients that are served meanwhile.

use std::io::{ErrorKind, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::thread;
use std::time::Duration;

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Config, Listen, Protocol, raise_file_limit};

/// Writes `requests` over and over, as long as the sockets take them while the client does not read. Returns the number
/// of bytes written. `other` is served all the time.
fn stuff(client: &Client, requests: &[u8], limit: usize, other: &mut Client) -> usize {
    let mut socket = client.raw();
    socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut refused = 0;
    while sent < limit && refused < 200 {
        match socket.write(&requests[sent % requests.len()..]) {
            Ok(count) => {
                sent += count;
                refused = 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
            Err(error) => panic!("{error}"),
        }
        other.ask("get none\r\n", "END\r\n");
    }
    socket.set_nonblocking(false).unwrap();
    sent
}

#[test]
fn a_million_requests_without_reading_are_held_back_and_then_answered() {
    const REQUESTS: usize = 1_000_000;
    const REQUEST: &str = "get key\r\n";
    let server = Fixture::new();
    let mut other = server.client();
    let value = "v".repeat(200);
    other.ask(format!("set key 0 0 200\r\n{value}\r\n"), "STORED\r\n");
    let reply = format!("VALUE key 0 200\r\n{value}\r\nEND\r\n");
    other.ask("stats reset\r\n", "RESET\r\n");

    let mut client = server.client();
    let requests = REQUEST.repeat(1000);
    let limit = REQUESTS * REQUEST.len();
    let sent = stuff(&client, requests.as_bytes(), limit, &mut other);
    assert!(sent < limit, "everything went in: nothing was held back");
    // Replies that are made and not sent are in the server's memory.
    let stats = other.stats("");
    let number = |name: &str| stats[name].parse::<usize>().unwrap();
    let answered = number("get_hits") * reply.len();
    let held = answered.saturating_sub(number("bytes_written"));
    assert!(held < 1 << 20, "{held} bytes are held");

    let mut socket = client.raw();
    let rest = requests.repeat(REQUESTS / 1000);
    let writer = thread::spawn(move || socket.write_all(&rest.as_bytes()[sent..]).unwrap());
    let replies = reply.repeat(1000);
    for _ in 0..REQUESTS / 1000 {
        client.expect(&replies);
    }
    writer.join().unwrap();
    client.ask("get none\r\n", "END\r\n");
}

#[test]
fn large_values_that_nobody_takes_are_not_copied() {
    let server = Fixture::new();
    let mut other = server.client();
    let value = "v".repeat(900_000);
    other.ask(format!("set key 0 0 900000\r\n{value}\r\n"), "STORED\r\n");
    other.ask("stats reset\r\n", "RESET\r\n");
    let mut client = server.client();
    let sent = stuff(
        &client,
        "get key\r\n".repeat(100).as_bytes(),
        900,
        &mut other,
    );
    assert_eq!(sent, 900);
    // Values are pinned, not copied, and few at a time.
    assert!(other.stat("get_hits") <= 100);
    let reply = format!("VALUE key 0 900000\r\n{value}\r\nEND\r\n");
    for _ in 0..100 {
        client.expect(&reply);
    }
}

#[test]
fn a_value_that_is_being_sent_stays_whole_when_it_is_replaced() {
    let server = Fixture::new();
    let (mut client, mut other) = (server.client(), server.client());
    let old = "o".repeat(1_000_000);
    other.ask(format!("set key 0 0 1000000\r\n{old}\r\n"), "STORED\r\n");
    // Twenty do not fit into the sockets between.
    client.send("get key\r\n".repeat(20));
    let reply = format!("VALUE key 0 1000000\r\n{old}\r\nEND\r\n");
    client.expect(&reply);
    for round in 0..20 {
        let new = round.to_string().repeat(1000);
        other.ask(
            format!("set key{round} 0 0 {}\r\n{new}\r\n", new.len()),
            "STORED\r\n",
        );
    }
    other.ask("delete key\r\nflush_all\r\n", "DELETED\r\nOK\r\n");
    // Replies begun before the delete are whole; those after it are misses.
    let mut hits = 1;
    loop {
        match client.line().as_str() {
            "END" => break,
            header => {
                assert_eq!(header, "VALUE key 0 1000000");
                client.expect(format!("{old}\r\nEND\r\n"));
                hits += 1;
            }
        }
        if hits == 20 {
            break;
        }
    }
    for _ in hits + 1..20 {
        client.expect("END\r\n");
    }
    client.ask("get key\r\n", "END\r\n");
}

#[test]
fn many_who_do_not_read_stop_nobody() {
    let server = Fixture::new();
    let mut other = server.client();
    let value = "v".repeat(4000);
    other.ask(format!("set key 0 0 4000\r\n{value}\r\n"), "STORED\r\n");
    let deaf: Vec<Client> = (0..50)
        .map(|_| {
            let client = server.client();
            stuff(
                &client,
                "get key\r\n".repeat(100).as_bytes(),
                20_000,
                &mut other,
            );
            client
        })
        .collect();
    other.ask(
        "get key\r\n",
        format!("VALUE key 0 4000\r\n{value}\r\nEND\r\n"),
    );
    drop(deaf);
    other.until("curr_connections", |connections| connections == 1);
}

/// What the connections' buffers may hold.
fn bound(client: &mut Client) -> u64 {
    client.stats("settings")["read_buf_mem_limit"]
        .parse()
        .unwrap()
}

/// A server whose connections' buffers may hold 10 MB.
fn small() -> Wants {
    Wants {
        memory: 64 << 20,
        ..Wants::default()
    }
}

fn with_redis() -> Config {
    Config {
        listeners: vec![any_port(), any_port().of(Protocol::Redis)],
        ..config()
    }
}

/// No client is under tight terms: the server answers requests that need much memory, and takes long lines.
fn expect_usual_terms(server: &Fixture, client: &mut Client) {
    assert!(client.conns().contains_key("0:addr"));
    let mut newcomer = server.client();
    let line = format!("get{}\r\n", " none".repeat(40_000));
    for piece in line.as_bytes().chunks(50_000) {
        newcomer.send(piece);
        client.ask("get none\r\n", "END\r\n");
    }
    newcomer.expect("END\r\n");
}

/// Class of bug: all connections pay for what some hold.
#[test]
fn silent_requests_without_an_end_cost_those_who_send_them() {
    let server = Fixture::with(with_redis(), small());
    let mut client = server.client();
    let bound = bound(&mut client);
    assert_eq!(bound, 10 << 20);
    let line = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n".to_owned() + &"x".repeat(255 << 10);
    let mut silent = Vec::new();
    for _ in 0..120 {
        let mut one = server.redis_client();
        one.send("MULTI\r\n");
        one.expect("+OK\r\n");
        one.send(&line);
        silent.push(one);
        expect_usual_terms(&server, &mut client);
        assert!(client.stat("read_buf_bytes") < bound);
    }
    // The server closes more than the bound requires: there is room again for new clients.
    client.until("read_buf_bytes", |bytes| bytes <= bound / 4 * 3);
    expect_usual_terms(&server, &mut client);
    let mut heard = 0;
    for mut one in silent.into_iter().filter(Client::has_input) {
        assert_eq!(one.line(), "-ERR out of memory reading request");
        one.send(&line);
        one.expect_orderly_end();
        heard += 1;
    }
    // Check this last: a worker that was woken to close a connection may do it late.
    let closed = client.stat("read_buf_oom");
    assert!(
        closed > 40 && heard == closed,
        "{closed} closed, {heard} told"
    );
}

/// Class of bug: a client that waits for the end of a list waits for ever when the list is refused.
#[test]
fn lists_are_refused_in_one_line_where_there_is_hardly_any_room() {
    // 4 MB for the buffers, and so many connections that none holds more than every connection may.
    const HOLDERS: usize = 1000;
    raise_file_limit(2 * HOLDERS as u64 + 500);
    let wants = Wants {
        memory: 16 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(with_redis(), wants);
    let mut client = server.client();
    let bound = bound(&mut client);
    let line = "x".repeat(4090);
    let holders: Vec<Client> = (0..HOLDERS)
        .map(|_| {
            let mut one = server.redis_client();
            one.send(&line);
            one
        })
        .collect();
    client.until("read_buf_bytes", |bytes| bytes > bound / 32 * 31);
    for list in ["conns", "detail dump"] {
        client.ask(
            format!("stats {list}\r\n"),
            "SERVER_ERROR out of memory writing stats\r\n",
        );
    }
    assert_eq!(client.stat("read_buf_oom"), 0);
    drop(holders);
    assert!(client.conns().contains_key("0:addr"));
}

#[test]
fn who_reads_goes_on_beside_many_who_do_not() {
    let path = std::env::temp_dir().join(format!("nuthatch-pressure-{}", std::process::id()));
    let unix = Listen::unix(&path, 0o700);
    let with_unix = Config {
        listeners: vec![any_port(), unix],
        ..config()
    };
    let server = Fixture::with(with_unix, small());
    let mut client = server.client();
    let bound = bound(&mut client);
    let value = "v".repeat(4000);
    client.ask(format!("set key 0 0 4000\r\n{value}\r\n"), "STORED\r\n");
    let reply = format!("VALUE key 0 4000\r\n{value}\r\nEND\r\n");
    // This client has many replies to read, and reads them.
    const REPLIES: usize = 6000;
    const TAKEN: usize = 20;
    let mut slow = Client::unix(&path);
    slow.send("get key\r\n".repeat(REPLIES));
    let some = reply.repeat(TAKEN);
    let mut deaf = Vec::new();
    let mut taken = 0;
    for _ in 0..150 {
        let mut one = Client::unix(&path);
        one.send("get key\r\n".repeat(200));
        deaf.push(one);
        slow.expect(&some);
        taken += TAKEN;
        assert!(client.stat("read_buf_bytes") < bound);
        // The connections may fill the buffers before the server has waited long enough for any of their clients to
        // read.
        if client.stat("read_buf_bytes") <= bound / 4 * 3 {
            expect_usual_terms(&server, &mut client);
        }
    }
    while client.stat("read_buf_bytes") > bound / 4 * 3 && taken < REPLIES {
        slow.expect(&some);
        taken += TAKEN;
        thread::sleep(Duration::from_millis(50));
    }
    client.until("read_buf_bytes", |bytes| bytes <= bound / 4 * 3);
    assert!(client.stat("read_buf_oom") > 0);
    while taken < REPLIES {
        slow.expect(&some);
        taken += TAKEN;
    }
    expect_usual_terms(&server, &mut client);
}

#[test]
fn what_buffers_may_hold_follows_the_memory_and_the_connections() {
    let server = Fixture::with(config(), small());
    let mut client = server.client();
    for (megabytes, expected) in [(32, 8 << 20), (8, 4 << 20), (64, 10 << 20)] {
        client.ask(format!("cache_memlimit {megabytes}\r\n"), "OK\r\n");
        assert_eq!(bound(&mut client), expected);
    }
    let many = Config {
        connections_max: NonZeroUsize::new(8192).unwrap(),
        ..config()
    };
    let server = Fixture::with(many, small());
    assert_eq!(bound(&mut server.client()), 32 << 20);
}

#[test]
fn turns_are_short_when_told_so() {
    let fair = Config {
        commands_per_turn: NonZeroU32::new(10).unwrap(),
        ..config()
    };
    let server = Fixture::with(fair, Wants::default());
    let mut client = server.client();
    let mut request = String::new();
    let mut reply = String::new();
    for number in 0..20_000 {
        request += &format!("set k 0 0 5\r\n{number:05}\r\nget k\r\n");
        reply += &format!("STORED\r\nVALUE k 0 5\r\n{number:05}\r\nEND\r\n");
    }
    let mut socket = client.raw();
    let writer = thread::spawn(move || socket.write_all(request.as_bytes()).unwrap());
    let mut other = server.client();
    for _ in 0..100 {
        other.ask("get none\r\n", "END\r\n");
    }
    client.expect(reply);
    writer.join().unwrap();
    assert!(client.stat("conn_yields") > 1000);
}

#[test]
fn many_clients_at_once_get_their_own_values_in_order() {
    let server = Fixture::new();
    let address = server.address();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            thread::spawn(move || {
                let mut clients: Vec<Client> = (0..8).map(|_| Client::tcp(address)).collect();
                for round in 0..100 {
                    for (number, client) in clients.iter_mut().enumerate() {
                        let name = format!("{thread}-{number}");
                        let value = format!("{name}-{round}-").repeat(1 + round * 7 % 300);
                        let len = value.len();
                        client.send(format!("set {name} 0 0 {len}\r\n{value}\r\n"));
                        client.send(format!(
                            "get {name} none {name}\r\nincr shared 1 noreply\r\n"
                        ));
                        let reply = format!("VALUE {name} 0 {len}\r\n{value}\r\n");
                        client.expect(format!("STORED\r\n{reply}{reply}END\r\n"));
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let mut client = server.client();
    assert_eq!(client.stat("cmd_set"), 8 * 8 * 100);
    assert_eq!(client.stat("incr_misses"), 8 * 8 * 100);
}
