//! Listeners, limits, idle and many connections.

use std::fs;
use std::net::Ipv6Addr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_engine::Engine;
use nuthatch_server::{Address, Config, Listen, Server, raise_file_limit};

/// A path of this test's own.
fn own_path(name: &str) -> PathBuf {
    let id = std::process::id();
    std::env::temp_dir().join(format!("nuthatch-test-{id}-{name}"))
}

#[test]
fn all_listeners_lead_to_the_same_cache_and_are_announced() {
    let path = own_path("socket");
    let port_file = own_path("ports");
    let config = Config {
        listeners: vec![
            any_port(),
            any_port(),
            Listen::tcp((Ipv6Addr::LOCALHOST, 0)),
            Listen::unix(&path, 0o750),
        ],
        port_file: Some(port_file.clone()),
        ..config()
    };
    let server = Fixture::with(config, Wants::default());
    let mut expected = String::new();
    let mut clients = vec![Client::unix(&path)];
    for (address, _) in server.handle().addresses() {
        if let Address::Tcp(address) = address {
            let family = if address.is_ipv4() { "INET" } else { "INET6" };
            expected += &format!("TCP {family}: {}\n", address.port());
            assert_ne!(address.port(), 0);
            clients.push(Client::tcp(*address));
        }
    }
    assert_eq!(fs::read_to_string(&port_file).unwrap(), expected);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o750
    );
    clients[0].ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    for client in &mut clients {
        client.ask("get k\r\n", "VALUE k 0 1\r\na\r\nEND\r\n");
    }
    let conns = clients[1].conns();
    assert!(conns.values().any(|value| value.starts_with("tcp6:[::1]:")));
    assert!(
        conns
            .values()
            .any(|value| *value == format!("unix:{}", path.display()))
    );
    server.stop();
    assert!(!path.exists());
    fs::remove_file(port_file).unwrap();
}

#[test]
fn a_path_at_which_a_server_listens_is_refused_to_another_one_until_it_ends() {
    let path = own_path("taken");
    let listen = || Config {
        listeners: vec![any_port(), Listen::unix(&path, 0o700)],
        ..config()
    };
    let first = Fixture::with(listen(), Wants::default());
    let refused = Server::start(listen(), crate::engine::engine(Wants::default()).any());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("another server listens there"), "{error}");
    assert!(error.contains(&path.display().to_string()), "{error}");
    Client::unix(&path).ask("set k 0 0 1\r\n1\r\n", "STORED\r\n");
    first.stop();
    let second = Fixture::with(listen(), Wants::default());
    Client::unix(&path).ask("get k\r\n", "END\r\n");
    second.stop();
    assert!(!path.exists());
}

#[test]
fn a_socket_left_by_a_dead_server_is_replaced_and_other_files_are_not() {
    let path = own_path("leftover");
    let listen = || Config {
        listeners: vec![Listen::unix(&path, 0o700)],
        ..config()
    };
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = Fixture::with(listen(), Wants::default());
    Client::unix(&path).ask("get k\r\n", "END\r\n");
    server.stop();
    fs::write(&path, "somebody's").unwrap();
    let refused = Server::start(listen(), crate::engine::engine(Wants::default()).any());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("cannot listen at"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
    fs::remove_file(path).unwrap();
}

#[test]
fn a_port_that_is_taken_is_an_error_with_its_name() {
    let server = Fixture::new();
    let config = Config {
        listeners: vec![Listen::tcp(server.address())],
        ..config()
    };
    let refused = Server::start(config, crate::engine::engine(Wants::default()).any());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains(&server.address().to_string()), "{error}");
}

#[test]
fn one_connection_too_many_is_told_so() {
    let limited = Config {
        connections_max: NonZeroUsize::new(3).unwrap(),
        ..config()
    };
    let server = Fixture::with(limited, Wants::default());
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        client.ask("get k\r\n", "END\r\n");
    }
    let mut fourth = server.client();
    clients[0].until("rejected_connections", |rejected| rejected > 0);
    // The client sends without reading first, and still gets the whole refusal.
    for _ in 0..3 {
        fourth.send("get k\r\n");
        clients[0].ask("get k\r\n", "END\r\n");
    }
    assert_eq!(fourth.line(), "ERROR Too many open connections");
    fourth.expect_orderly_end();
    assert_eq!(clients[0].stat("rejected_connections"), 1);
    clients.pop();
    clients[0].until("curr_connections", |connections| connections < 3);
    server.client().ask("get k\r\n", "END\r\n");
}

#[test]
fn workers_share_the_connections() {
    let server = Fixture::new();
    let mut clients: Vec<Client> = (0..40).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(format!("set k{number} 0 0 1\r\na\r\n"), "STORED\r\n");
    }
    assert_eq!(clients[0].stat("curr_connections"), 40);
    assert_eq!(clients[0].stat("cmd_set"), 40);
}

#[test]
fn the_silent_are_closed_and_the_busy_are_not() {
    let strict = Config {
        idle_timeout: Some(Duration::from_secs(2)),
        ..config()
    };
    let server = Fixture::with(strict, Wants::default());
    let mut busy = server.client();
    let mut silent = server.client();
    silent.ask("get k\r\n", "END\r\n");
    busy.until("idle_kicks", |kicks| kicks > 0);
    silent.expect_end();
    busy.ask("get k\r\n", "END\r\n");
}

/// Class of bug: silence measured by commands, where bytes still move.
#[test]
fn who_takes_a_long_reply_slowly_is_not_silent() {
    let path = own_path("idle");
    let strict = Config {
        listeners: vec![any_port(), Listen::unix(&path, 0o700)],
        idle_timeout: Some(Duration::from_secs(2)),
        ..config()
    };
    let server = Fixture::with(strict, Wants::default());
    let mut busy = server.client();
    let value = "v".repeat(1_000_000);
    busy.ask(format!("set k 0 0 1000000\r\n{value}\r\n"), "STORED\r\n");
    let mut unix = Client::unix(&path);
    unix.ask("get none\r\n", "END\r\n");
    // More than sockets hold, so that all of it cannot have left the server early.
    const REPLIES: usize = 100;
    let mut slow = server.client();
    slow.send("get k\r\n".repeat(REPLIES));
    let reply = format!("VALUE k 0 1000000\r\n{value}\r\nEND\r\n");
    // The slow client sends nothing for as long as these, and longer.
    let mut silent: Vec<Client> = Vec::new();
    let mut taken = 0;
    for round in 0..2 {
        let mut client = server.client();
        client.ask("get none\r\n", "END\r\n");
        silent.push(client);
        busy.until("idle_kicks", |kicks| {
            if taken < REPLIES / 2 {
                slow.expect(&reply);
                taken += 1;
            }
            std::thread::sleep(Duration::from_millis(50));
            kicks > round
        });
    }
    assert_eq!(busy.stat("idle_kicks"), 2);
    for client in &mut silent {
        client.expect_end();
    }
    for _ in taken..REPLIES {
        slow.expect(&reply);
    }
    // As memcached's, the timeout is not for clients on the same machine.
    unix.ask("get none\r\n", "END\r\n");
}

#[test]
fn ten_thousand_idle_connections_are_held_and_each_is_still_served() {
    const WANTED: usize = 10_000;
    // Both ends are in this process.
    let files = raise_file_limit(2 * WANTED as u64 + 500) as usize;
    let count = WANTED.min((files - 500) / 2);
    let many = Config {
        connections_max: NonZeroUsize::new(count + 10).unwrap(),
        ..config()
    };
    let server = Fixture::with(many, Wants::default());
    let mut clients: Vec<Client> = (0..count).map(|_| server.client()).collect();
    clients[0].ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    for client in clients.iter_mut().step_by(7) {
        client.ask("get k\r\n", "VALUE k 0 1\r\na\r\nEND\r\n");
    }
    assert_eq!(clients[0].stat("curr_connections") as usize, count);
    for client in &mut clients {
        client.send("get k\r\n");
    }
    for client in &mut clients {
        client.expect("VALUE k 0 1\r\na\r\nEND\r\n");
    }
}

#[test]
fn all_clients_of_unix_sockets_guess_passwords_as_one_peer() {
    let (path, users) = (own_path("guessed"), own_path("users"));
    fs::write(&users, "ann:secret\n").unwrap();
    let guarded = Config {
        listeners: vec![any_port(), Listen::unix(&path, 0o700)],
        auth_file: Some(users.clone()),
        login_guesses: NonZeroU32::new(3),
        ..config()
    };
    let server = Fixture::with(guarded, Wants::default());
    let login = |password: &str| {
        let said = format!("ann {password}");
        format!("set login 0 0 {}\r\n{said}\r\n", said.len())
    };
    let says = |password: &str| {
        let mut client = Client::unix(&path);
        client.send(login(password));
        client.line()
    };
    // If a minute ends during the guesses, the count begins again.
    let mut guesses = 0..;
    while says("secret") == "STORED" {
        for guess in guesses.by_ref().take(3) {
            let said = says(&format!("guess {guess}"));
            assert_eq!(said, "CLIENT_ERROR authentication failure");
        }
    }
    server.client().ask(login("secret"), "STORED\r\n");
    server.stop();
    fs::remove_file(users).unwrap();
}
