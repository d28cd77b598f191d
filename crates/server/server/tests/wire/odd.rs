//! Clients that keep to the protocol and still do unusual things.

use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use super::client::{Client, connect_unix};
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Config, Listen};

fn set(key: &str, value: &str) -> String {
    format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
}

fn value_reply(key: &str, value: &str) -> String {
    format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len())
}

/// A server that also listens at a unix socket of this test's own.
fn with_unix_socket(name: &str, wants: Wants) -> (Fixture, PathBuf) {
    let id = std::process::id();
    let path = std::env::temp_dir().join(format!("nuthatch-odd-{id}-{name}"));
    let unix = Listen::unix(&path, 0o700);
    let config = Config {
        listeners: vec![any_port(), unix],
        connections_max: NonZeroUsize::new(2000).unwrap(),
        ..config()
    };
    (Fixture::with(config, wants), path)
}

/// Clients at a unix socket that send requests until the connections hold much of their bound, and never read.
fn fill_buffers(path: &Path, other: &mut Client) -> Vec<UnixStream> {
    let value = "v".repeat(8000);
    other.ask(set("deaf", &value), "STORED\r\n");
    let requests = "get deaf\r\n".repeat(1000);
    let mut clients = Vec::new();
    let bound: u64 = other.stats("settings")["read_buf_mem_limit"]
        .parse()
        .unwrap();
    other.until("read_buf_bytes", |bytes| {
        if bytes >= bound / 4 * 3 {
            return true;
        }
        let client = connect_unix(path);
        client.set_nonblocking(true).unwrap();
        // The server may have stopped reading from it already.
        let _ = std::io::Write::write(&mut &client, requests.as_bytes());
        clients.push(client);
        false
    });
    clients
}

#[test]
fn a_half_closed_client_gets_more_replies_than_sockets_hold() {
    let (server, path) = with_unix_socket("half", Wants::default());
    let value = "v".repeat(8000);
    server.client().ask(set("k", &value), "STORED\r\n");
    for mut client in [server.client(), Client::unix(&path)] {
        // 16 MB of replies, and what asks for them fits into any socket.
        client.send("get k\r\n".repeat(2000));
        client.finish();
        let reply = value_reply("k", &value) + "END\r\n";
        for _ in 0..2000 {
            client.expect(&reply);
        }
        client.expect_end();
    }
}

#[test]
fn quit_sends_what_is_pending_first() {
    let (server, path) = with_unix_socket("quit", Wants::default());
    let value = "v".repeat(900_000);
    server.client().ask(set("k", &value), "STORED\r\n");
    for mut client in [server.client(), Client::unix(&path)] {
        client.send("get k\r\n".repeat(20) + "quit\r\nget k\r\n");
        for _ in 0..20 {
            client.expect(value_reply("k", &value) + "END\r\n");
        }
        client.expect_end();
    }
}

#[test]
fn a_flood_without_replies_is_done_in_order() {
    let server = Fixture::new();
    let mut client = server.client();
    for round in 0..20 {
        let mut flood = String::new();
        for number in 0..5000 {
            flood += &format!("set k{} 0 0 5 noreply\r\n{number:05}\r\n", number % 7);
            flood += "incr n 1 noreply\r\n";
        }
        client.send(flood);
        client.send(format!(
            "add n 0 0 1 noreply\r\n0\r\nget k{}\r\n",
            round % 5
        ));
        client.expect(value_reply(&format!("k{}", round % 5), &last_of(round % 5)) + "END\r\n");
    }
    client.ask("get n\r\n", value_reply("n", "95000") + "END\r\n");
}

/// The last number of a round's flood that went to this key.
fn last_of(key: usize) -> String {
    let last = (0..5000).rev().find(|number| number % 7 == key).unwrap();
    format!("{last:05}")
}

#[test]
fn a_get_of_a_quarter_megabyte_of_keys_is_answered() {
    const PAIRS: usize = 65_000;
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(set("a", "value"), "STORED\r\n");
    let mut socket = client.raw();
    let writer = thread::spawn(move || {
        let line = format!("get{}\r\n", " a b".repeat(PAIRS));
        std::io::Write::write_all(&mut socket, line.as_bytes()).unwrap();
        line.len()
    });
    client.expect(value_reply("a", "value").repeat(PAIRS) + "END\r\n");
    assert!(writer.join().unwrap() > 250_000);
    client.ask("get a\r\n", value_reply("a", "value") + "END\r\n");
}

#[test]
fn large_values_that_one_client_does_not_take_leave_room_for_others() {
    let wants = Wants {
        memory: 64 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(config(), wants);
    let (mut deaf, mut client) = (server.client(), server.client());
    let value = "v".repeat(1_000_000);
    for number in 0..40 {
        client.ask(set(&format!("k{number}"), &value), "STORED\r\n");
    }
    let requests: String = (0..100).map(|n| format!("get k{}\r\n", n % 40)).collect();
    deaf.send(requests);
    deaf.expect("VALUE k");
    for number in 0..100 {
        client.ask(set(&format!("new{number}"), &value), "STORED\r\n");
        client.ask(
            format!("get new{number}\r\n"),
            value_reply(&format!("new{number}"), &value) + "END\r\n",
        );
    }
    assert!(client.stat("read_buf_bytes") < 1 << 20);
}

#[test]
fn values_of_nearly_half_the_memory_come_and_go() {
    let wants = Wants {
        memory: 32 << 20,
        item_size_max: 16 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(config(), wants);
    let mut client = server.client();
    let mut stored = 0;
    for round in 0..6 {
        let value = ["x", "y"][round % 2].repeat(15 << 20);
        client.send(set("k", &value));
        // The set may find no memory while the old value is there. Then there is no value afterwards.
        match client.line().as_str() {
            "STORED" => {
                stored += 1;
                client.ask("get k\r\n", value_reply("k", &value) + "END\r\n");
            }
            line => {
                assert_eq!(line, "SERVER_ERROR out of memory storing object");
                client.ask("get k\r\n", "END\r\n");
            }
        }
        client.ask(set("small", "s"), "STORED\r\n");
    }
    assert!(stored >= 3, "{stored}");
}

#[test]
fn the_least_memory_serves_with_few_and_many_threads() {
    for threads in [1, 8] {
        let config = Config {
            threads: NonZeroUsize::new(threads).unwrap(),
            ..config()
        };
        let wants = Wants {
            memory: 4 << 20,
            ..Wants::default()
        };
        let server = Fixture::with(config, wants);
        let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
        for round in 0..20 {
            for (number, client) in clients.iter_mut().enumerate() {
                for len in [10, 2000, 70_000, 900_000] {
                    let value = format!("{number}-{round}-").repeat(len / 4 + 1);
                    let value = &value[..len];
                    client.send(set(&format!("k{number}"), value));
                    client.expect("STORED\r\n");
                    client.send("get k0\r\n");
                    match client.line().as_str() {
                        "END" => {}
                        header => {
                            let len: usize = header.rsplit(' ').next().unwrap().parse().unwrap();
                            let first = client.line();
                            assert_eq!(first.len(), len, "{header}");
                            assert!(first.starts_with("0-"), "{header}");
                            client.expect("END\r\n");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_dump_beside_writers_tells_each_lasting_item_once() {
    let server = Fixture::new();
    let mut client = server.client();
    for number in 0..2000 {
        client.send(format!("set lasting{number} 0 0 1 noreply\r\na\r\n"));
    }
    client.ask("mn\r\n", "MN\r\n");
    let address = server.address();
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            thread::spawn(move || {
                let mut client = Client::tcp(address);
                for number in 0..20_000 {
                    let key = number % 3000;
                    client.send(format!("set w{writer}-{key} 0 0 1 noreply\r\na\r\n"));
                    client.send(format!("delete w{writer}-{} noreply\r\n", key / 2));
                }
                client.ask("mn\r\n", "MN\r\n");
            })
        })
        .collect();
    for _ in 0..5 {
        client.send("lru_crawler metadump all\r\n");
        assert_eq!(client.line(), "OK");
        let mut lasting: Vec<String> = client
            .lines_until("END")
            .iter()
            .filter(|line| line.starts_with("key=lasting"))
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect();
        lasting.sort_unstable();
        lasting.dedup();
        assert_eq!(lasting.len(), 2000);
    }
    for writer in writers {
        writer.join().unwrap();
    }
}

#[test]
fn a_set_that_is_refused_hides_the_old_value_at_once() {
    let small = Wants {
        item_size_max: 2048,
        ..Wants::default()
    };
    let server = Fixture::with(config(), small);
    let mut client = server.client();
    // Of the lengths up to the limit, some are stored and others are not. In no case does the get behind the set see
    // the old value.
    for len in 1900..2049 {
        let new = "n".repeat(len);
        for options in ["set k 0 0", "ms k"] {
            let end = if options == "ms k" { " T0" } else { "" };
            client.send(set("k", "old"));
            client.send(format!("{options} {len}{end}\r\n{new}\r\nget k\r\nmn\r\n"));
            let lines = client.lines_until("MN");
            assert_eq!(lines[0], "STORED");
            if lines[1].starts_with("SERVER_ERROR object too large") {
                assert_eq!(lines[2..], ["END"], "{len} {options}");
            } else {
                assert_eq!(lines[3], new, "{len} {options}");
            }
        }
    }
}

#[test]
fn a_set_without_memory_hides_the_old_value_at_once() {
    let full = Wants {
        memory: 16 << 20,
        evicts: false,
        ..Wants::default()
    };
    let server = Fixture::with(config(), full);
    let mut client = server.client();
    client.ask(set("k", "old"), "STORED\r\n");
    let value = "v".repeat(9000);
    let mut filler = 0;
    loop {
        filler += 1;
        client.send(set(&format!("filler{filler}"), &value));
        if client.line() != "STORED" {
            break;
        }
    }
    client.ask(
        set("k", &value) + "get k\r\n",
        "SERVER_ERROR out of memory storing object\r\nEND\r\n",
    );
}

#[test]
fn everything_still_works_beside_clients_who_fill_the_buffers() {
    // 8 MB for the buffers.
    let wants = Wants {
        memory: 16 << 20,
        ..Wants::default()
    };
    let (server, path) = with_unix_socket("tight", wants);
    let mut client = server.client();
    let deaf = fill_buffers(&path, &mut client);
    for mut client in [client, server.client(), Client::unix(&path)] {
        assert!(client.conns().len() > 4 * deaf.len() / 2);
        for len in [10, 300, 5000, 20_000, 700_000] {
            let value = "w".repeat(len);
            client.ask(set("k", &value), "STORED\r\n");
            client.ask("get k\r\n", value_reply("k", &value) + "END\r\n");
        }
        // A set that arrives in two pieces, and a line that does.
        for (first, second) in [("set a 0 0 2000\r\n12", "x"), ("set b 0 0", " 1\r\n")] {
            client.send(first);
            deaf_are_still_deaf(&server);
            match second {
                "x" => client.send("x".repeat(1998) + "\r\n"),
                second => client.send(format!("{second}y\r\n")),
            }
            client.expect("STORED\r\n");
        }
        // More than sockets hold, both ways.
        let requests = "get a b\r\nincr none 1\r\n".repeat(20_000);
        let mut reply = value_reply("a", &("12".to_owned() + &"x".repeat(1998)));
        reply += &(value_reply("b", "y") + "END\r\nNOT_FOUND\r\n");
        thread::scope(|scope| {
            let mut reader = client;
            let mut writer = reader.writer();
            scope.spawn(move || {
                std::io::Write::write_all(&mut writer, requests.as_bytes()).unwrap()
            });
            for _ in 0..20_000 {
                reader.expect(&reply);
            }
            // The end comes behind all of that.
            reader.finish();
            reader.expect_end();
        });
    }
    // A client that begins to read gets the replies to its requests, and nothing else. The server closed some for what
    // they held, while the others had not enough memory.
    let value = "v".repeat(8000);
    let reply = value_reply("deaf", &value) + "END\r\n";
    let mut whole = 0;
    for mut stream in deaf {
        stream.set_nonblocking(false).unwrap();
        // The client sends no more requests. This fails if the connection is closed.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut replies = Vec::new();
        if let Err(error) = std::io::Read::read_to_end(&mut stream, &mut replies) {
            // Closed amid a reply, and requests unread.
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        assert!(
            replies
                .chunks(reply.len())
                .all(|one| reply.as_bytes().starts_with(one))
        );
        whole += usize::from(!replies.is_empty() && replies.len() % reply.len() == 0);
    }
    assert!(whole > 0);
    let mut client = server.client();
    client.until("read_buf_bytes", |bytes| bytes <= 1 << 20);
    client.ask(
        "get k\r\n",
        value_reply("k", &"w".repeat(700_000)) + "END\r\n",
    );
}

/// A moment for the server to look at half a command.
fn deaf_are_still_deaf(server: &Fixture) {
    let mut other = server.client();
    assert!(other.stat("read_buf_bytes") >= 4 << 20);
}
