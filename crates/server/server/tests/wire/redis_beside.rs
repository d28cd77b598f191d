//! Redis' commands that look before they change: what other clients do meanwhile is not lost, or told wrongly.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::client::Client;
use super::databases::in_threads;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

/// MSETEX of a key that is there always and, as the last, one that comes and goes.
fn said(condition: &str, value: usize) -> Vec<u8> {
    let others: String = (0..100).map(|at| format!("other:{at} v ")).collect();
    line(&format!(
        "MSETEX 102 first {value} {others}last v {condition}"
    ))
}

#[test]
fn a_msetex_of_keys_that_must_be_there_sets_all_or_none() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    ask(&mut client, &said("NX", 1), b":1\r\n");
    let [set, refused] = [(); 2].map(|()| AtomicU64::new(0));
    let sets = |client: &mut Client, turn: usize| {
        client.send([line("SET first old"), said("XX", turn), line("GET first")].concat());
        client.expect("+OK\r\n");
        let was_set = client.line() == ":1";
        client.line();
        let expected = if was_set {
            turn.to_string()
        } else {
            "old".to_owned()
        };
        assert_eq!(client.line(), expected);
        let count = if was_set { &set } else { &refused };
        count.fetch_add(1, Ordering::Relaxed);
    };
    let changes = |client: &mut Client, _: usize| {
        client.send([line("DEL last"), line("SET last v")].concat().repeat(5));
        (0..10).for_each(|_| drop(client.line()));
    };
    in_threads(&server, &[&sets, &changes, &changes]);
    assert!(set.into_inner() + refused.into_inner() > 100);
}

/// A client that looks meanwhile sees no value of a MSETEX that is refused.
#[test]
fn a_msetex_that_is_refused_is_never_seen() {
    let server = Fixture::with(both(), Wants::default());
    let [refused, seen] = [(); 2].map(|()| Mutex::new(HashSet::new()));
    let forget = (0..100).fold("DEL first".to_owned(), |said, at| {
        format!("{said} other:{at}")
    });
    let sets = |client: &mut Client, turn: usize| {
        client.send([line(&forget), said("NX", turn)].concat());
        client.line();
        if client.line() == ":0" {
            refused.lock().unwrap().insert(turn.to_string());
        }
    };
    let changes = |client: &mut Client, _: usize| {
        client.send([line("SET last v"), line("DEL last")].concat().repeat(5));
        (0..10).for_each(|_| drop(client.line()));
    };
    let looks = |client: &mut Client, _: usize| {
        for _ in 0..10 {
            client.send(line("GET first"));
            if client.line() != "$-1" {
                seen.lock().unwrap().insert(client.line());
            }
        }
    };
    in_threads(&server, &[&sets, &changes, &looks]);
    let (refused, seen) = (refused.into_inner().unwrap(), seen.into_inner().unwrap());
    assert!(refused.is_disjoint(&seen), "{refused:?} {seen:?}");
}

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
