//! Graceful stops.

use std::net::TcpStream;

use super::fixture::{Fixture, Wants, config};
use nuthatch_server::Config;

#[test]
fn what_was_read_is_answered_and_everybody_is_closed() {
    let server = Fixture::new();
    let address = server.address();
    let (mut client, mut idle) = (server.client(), server.client());
    idle.ask("get k\r\n", "END\r\n");
    const REQUESTS: usize = 10_000;
    let request = "get k\r\n".repeat(REQUESTS);
    let before = idle.stat("cmd_get");
    client.send(&request);
    // The system decides how much of it one read returns, so the test asks the server.
    idle.until("cmd_get", |gets| gets >= before + REQUESTS as u64);
    server.stop();
    // Whole replies to all of them, and then the end.
    let mut replies = 0;
    while let Some(line) = client.next_line() {
        assert_eq!(line, "END");
        replies += 1;
    }
    assert_eq!(replies, REQUESTS);
    idle.expect_end();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn clients_who_do_not_read_do_not_hold_it_up() {
    let server = Fixture::new();
    let mut client = server.client();
    let value = "v".repeat(1_000_000);
    client.ask(format!("set k 0 0 1000000\r\n{value}\r\n"), "STORED\r\n");
    client.send("get k\r\n".repeat(100));
    client.expect("VALUE k 0 1000000\r\n");
    server.stop();
}

#[test]
fn the_shutdown_command_stops_where_it_is_allowed() {
    let allowed = Config {
        allow_shutdown: true,
        ..config()
    };
    let server = Fixture::with(allowed, Wants::default());
    let mut client = server.client();
    client.ask("shutdown now\r\n", "CLIENT_ERROR invalid shutdown mode\r\n");
    client.send("get k\r\nshutdown graceful\r\n");
    client.expect("END\r\n");
    client.expect_end();
    server.join();
}
