//! CLIENT PAUSE, and clients of both protocols that wait.

use super::fixture::{Fixture, Wants, any_port, config};
use super::redis::{ask, both, line};
use nuthatch_server::{Config, Protocol};

#[test]
fn a_server_that_stops_keeps_nobody_waiting() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    let mut memcached = server.client();
    ask(&mut other, &line("SET k v"), b"+OK\r\n");
    client.send(line("CLIENT PAUSE 60000"));
    client.expect("+OK\r\n");
    // Read only once the server stops.
    other.send(line("GET k"));
    memcached.send("get none\r\n");
    server.stop();
    other.expect("$1\r\nv\r\n");
    memcached.expect("END\r\n");
}

#[test]
fn what_waits_keeps_its_order_and_goes_on_when_the_pause_ends() {
    let server = Fixture::with(both(), Wants::default());
    let (mut client, mut other) = (server.redis_client(), server.redis_client());
    let mut memcached = server.client();
    let long = "x".repeat(100_000);
    ask(&mut client, &line("CLIENT PAUSE 60000 WRITE"), b"+OK\r\n");
    ask(&mut client, &line("GET k"), b"$-1\r\n");
    // What is refused in any case does not wait.
    ask(
        &mut client,
        &line("SET k"),
        b"-ERR wrong number of arguments for 'set' command\r\n",
    );
    let said = [
        line("GET k"),
        line("SET k 1"),
        line("INCR k"),
        line(&format!("SET l {long}")),
        line("STRLEN l"),
        b"APPEND k 0\r\n".to_vec(),
        line("MULTI"),
        line("DEL l"),
        line("EXEC"),
        line("MGET k l"),
    ];
    other.send(said.concat());
    other.expect("$-1\r\n");
    memcached.send("add k 0 0 1\r\nm\r\n");
    // Nothing was stored meanwhile, by neither.
    ask(&mut client, &line("EXISTS k l"), b":0\r\n");
    ask(&mut client, &line("CLIENT PAUSE 60000 write"), b"+OK\r\n");
    ask(&mut client, &line("CLIENT UNPAUSE"), b"+OK\r\n");
    other.expect("+OK\r\n:2\r\n+OK\r\n:100000\r\n:2\r\n");
    other.expect("+OK\r\n+QUEUED\r\n*1\r\n:1\r\n*2\r\n$2\r\n20\r\n$-1\r\n");
    // It came before that SET, or behind it.
    let stored = memcached.line();
    assert!(["STORED", "NOT_STORED"].contains(&&*stored), "{stored}");
}

#[test]
fn a_pause_of_no_time_holds_nobody() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    ask(&mut client, &line("CLIENT PAUSE 0"), b"+OK\r\n");
    ask(&mut client, &line("SET k v"), b"+OK\r\n");
    let refused = b"-ERR a pause is 60000 milliseconds long at most here\r\n";
    ask(&mut client, &line("CLIENT PAUSE 60001 ALL"), refused);
}

/// Class of fault: who has not said what it speaks is taken for a client of the protocol whose requests all wait.
#[test]
fn a_pause_of_writes_holds_no_reader_who_comes_meanwhile() {
    let server = Fixture::with(
        Config {
            listeners: vec![any_port().of(Protocol::Any)],
            ..config()
        },
        Wants::default(),
    );
    let mut client = server.client();
    ask(&mut client, &line("CLIENT PAUSE 60000 WRITE"), b"+OK\r\n");
    let mut memcached = [server.client(), server.client()];
    for client in &mut memcached {
        client.send("set k 0 0 1\r\nv\r\n");
    }
    // On both workers.
    for _ in 0..4 {
        ask(&mut server.client(), &line("GET k"), b"$-1\r\n");
    }
    ask(&mut client, &line("CLIENT UNPAUSE"), b"+OK\r\n");
    for client in &mut memcached {
        client.expect("STORED\r\n");
    }
}
