//! Redis' commands that look before they change: what other clients do meanwhile is not lost, or told wrongly.

use super::client::Client;
use super::databases::in_threads;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

fn say_ok(client: &mut Client, words: &str) {
    ask(client, &line(words), b"+OK\r\n");
}

/// A dump of a value, by Redis 7.0.
const DUMP: &[u8] = b"\x00\x03bar\n\x00\xe6\xbeI`\xeef\xfd\x17";

#[test]
fn a_restore_of_what_is_over_removes_no_other_clients_key() {
    let server = Fixture::with(both(), Wants::default());
    let over = request(&[b"RESTORE", b"k", b"1", DUMP, b"ABSTTL"]);
    let mut client = server.redis_client();
    ask(&mut client, &over, b"+OK\r\n");
    say_ok(&mut client, "SET k v");
    ask(
        &mut client,
        &over,
        b"-BUSYKEY Target key name already exists.\r\n",
    );
    ask(&mut client, &line("DEL k"), b":1\r\n");
    let restores = |client: &mut Client, _: usize| {
        client.send(over.repeat(20));
        (0..20).for_each(|_| drop(client.line()));
    };
    let sets = |client: &mut Client, _: usize| {
        client.send([line("SET k v"), line("DEL k")].concat().repeat(10));
        client.expect("+OK\r\n:1\r\n".repeat(10));
    };
    in_threads(&server, &[&restores, &restores, &sets]);
    say_ok(&mut client, "SET k v");
    let replacing = request(&[b"RESTORE", b"k", b"1", DUMP, b"ABSTTL", b"REPLACE"]);
    ask(
        &mut client,
        &[replacing, line("EXISTS k")].concat(),
        b"+OK\r\n:0\r\n",
    );
}
