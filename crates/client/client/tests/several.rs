//! Several servers: which has a key, and what happens when one of them is dead.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nuthatch_client::{Client, Error};

mod servers;

use servers::*;

/// Asks libmemcached for the servers of 1,000 keys, each by its number: `ketama WEIGHTED HOST PORT WEIGHT …`.
const PROGRAM: &str = r#"
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    memcached_st *all = memcached_create(NULL);
    memcached_behavior_t how = atoi(words[1]) ? MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED : MEMCACHED_BEHAVIOR_KETAMA;
    memcached_behavior_set(all, how, 1);
    memcached_server_st *servers = NULL;
    memcached_return_t error;
    for (int at = 2; at + 2 < count; at += 3)
        servers = memcached_server_list_append_with_weight(servers, words[at], atoi(words[at + 1]), atoi(words[at + 2]), &error);
    if (memcached_server_push(all, servers) != MEMCACHED_SUCCESS) return 1;
    for (int number = 0; number < 1000; number++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", number);
        printf("%u\n", memcached_generate_hash(all, key, strlen(key)));
    }
    return 0;
}
"#;

/// Host, port and weight of each.
type Servers = &'static [(&'static str, u16, u32)];

/// Servers, and whether weights count.
const SERVERS: &[(Servers, bool)] = &[
    (
        &[
            ("127.0.0.1", 11211, 1),
            ("127.0.0.1", 11212, 1),
            ("10.0.0.3", 11211, 1),
        ],
        true,
    ),
    (
        &[
            ("127.0.0.1", 11211, 1),
            ("127.0.0.1", 11212, 2),
            ("10.0.0.3", 11211, 5),
        ],
        true,
    ),
    (
        &[
            ("a.example", 1, 7),
            ("b.example", 2, 3),
            ("c.example", 11211, 1),
            ("d.example", 4, 9),
            ("e.example", 5, 1),
        ],
        true,
    ),
    (
        &[
            ("127.0.0.1", 11211, 1),
            ("127.0.0.1", 11212, 1),
            ("10.0.0.3", 11211, 1),
        ],
        false,
    ),
    (&[("a.example", 1, 1), ("b.example", 2, 1)], false),
];

/// The kind of fault is a client that looks for a key where no other one has put it.
#[test]
fn keys_are_where_libmemcached_puts_them() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("ketama.c"), folder.path().join("ketama"));
    std::fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .arg("-lmemcached")
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        println!("skipped: libmemcached or a C compiler is not installed");
        return;
    }
    for (servers, weighted) in SERVERS {
        compare(&program, servers, *weighted);
    }
}

/// Asks both for the servers of all keys.
fn compare(program: &Path, servers: Servers, weighted: bool) {
    let words = servers
        .iter()
        .map(|(host, port, weight)| format!("{host} {port} {weight}"));
    let line = format!(
        "{} {}",
        u8::from(weighted),
        words.collect::<Vec<_>>().join(" ")
    );
    let output = Command::new(program)
        .args(line.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let theirs = String::from_utf8(output.stdout).unwrap();
    let places = servers
        .iter()
        .map(|(host, port, weight)| format!("{host}:{port}*{weight}"));
    let option = if weighted {
        "ketama"
    } else {
        "ketama_unweighted"
    };
    let address = format!(
        "tcp://{}?distribution={option}",
        places.collect::<Vec<_>>().join(",")
    );
    let client = Client::connect(&address).unwrap();
    let ours = (0..1000).map(|number| client.server_of(format!("key-{number}")));
    let names = theirs.lines().map(|number| {
        let (host, port, _) = servers[number.parse::<usize>().unwrap()];
        format!("{host}:{port}")
    });
    for (number, (ours, theirs)) in ours.zip(names).enumerate() {
        assert_eq!(ours, theirs, "key-{number} of {line}");
    }
    assert_eq!(theirs.lines().count(), 1000);
}

#[test]
fn keys_are_spread_and_found_again() {
    let servers: Vec<_> = (0..3).map(|_| Server::nuthatch("")).collect();
    let places: Vec<_> = servers.iter().map(Server::place).collect();
    for distribution in ["ketama", "ketama_unweighted", "rendezvous"] {
        let client = Client::connect(&format!(
            "tcp://{}?distribution={distribution}",
            places.join(",")
        ))
        .unwrap();
        let keys: Vec<String> = (0..3000)
            .map(|number| format!("{distribution}-{number}"))
            .collect();
        for key in &keys {
            client.set(key, key, None).unwrap();
        }
        let values = client.get_many(&keys).complete().unwrap();
        assert!(
            values
                .iter()
                .zip(&keys)
                .all(|(value, key)| value.as_deref() == Some(key.as_bytes()))
        );
        let mut shares = BTreeMap::new();
        keys.iter()
            .for_each(|key| *shares.entry(client.server_of(key)).or_insert(0) += 1);
        assert!(
            shares.len() == 3 && shares.values().all(|&share| share > 500),
            "{shares:?}"
        );
        for place in &places {
            let alone = Client::connect(&format!("tcp://{place}")).unwrap();
            let there = alone
                .get_many(&keys)
                .complete()
                .unwrap()
                .iter()
                .flatten()
                .count();
            assert_eq!(there, shares[place]);
        }
        client.flush_all(Duration::ZERO).unwrap();
        assert!(
            client
                .get_many(&keys)
                .complete()
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
        assert_eq!(client.version().len(), 3);
    }
}

#[test]
fn keys_of_a_dead_server_fail_or_go_to_others() {
    let Some(dying) = Memcached::start("") else {
        return;
    };
    let (port, staying) = (dying.port(), Server::nuthatch(""));
    let places = format!(
        "tcp://127.0.0.1:{port},{}?retry_least_ms=100&retry_most_ms=100",
        staying.place()
    );
    let strict = Client::connect(&places).unwrap();
    let lenient = Client::connect(&format!("{places}&eject_after=2")).unwrap();
    let dead = format!("127.0.0.1:{port}");
    let keys: Vec<String> = (0..100).map(|number| format!("key-{number}")).collect();
    let lost: Vec<_> = keys
        .iter()
        .filter(|key| lenient.server_of(key) == dead)
        .collect();
    assert!(!lost.is_empty() && lost.len() < keys.len());
    for key in &keys {
        lenient.set(key, "old", None).unwrap();
    }
    drop(dying);
    // Each key fails by itself.
    let many = strict.get_many(&keys);
    assert_eq!(many.failed.len(), lost.len());
    assert_eq!(
        many.values.iter().flatten().count(),
        keys.len() - lost.len()
    );
    assert!(matches!(many.complete(), Err(Error::Down { .. })));
    running::wait_until("the ejection", || {
        (lenient.server_of(lost[0]) != dead || lenient.set(lost[0], "new", None).is_ok())
            .then_some(())
    });
    // While it is left alone, its keys are others'; when it is tried, who tries it goes on at another one.
    for key in &keys {
        lenient.set(key, "new", None).unwrap();
        assert_eq!(lenient.get(key), Ok(Some(b"new".to_vec())));
    }
    let Some(_returned) = Memcached::start_at(port, "") else {
        return;
    };
    running::wait_until("the re-entry", || {
        let _ = lenient.get(lost[0]);
        let is_there = Client::connect(&format!("tcp://{dead}")).unwrap();
        lenient.set(lost[0], "back", None).unwrap();
        is_there.get(lost[0]).unwrap()
    });
    assert_eq!(lenient.server_of(lost[0]), dead);
}

#[cfg(feature = "near")]
#[test]
fn a_near_value_stays_until_its_time_or_this_clients_change() {
    let server = Server::nuthatch("");
    let other = Client::connect(&server.address()).unwrap();
    let near = Client::connect(&format!("{}?near_ms=60000", server.address())).unwrap();
    let short = Client::connect(&format!(
        "{}?near_ms=1&near_bytes=1048576",
        server.address()
    ))
    .unwrap();
    other.set("k", "1", None).unwrap();
    for client in [&near, &short] {
        assert_eq!(client.get("k"), Ok(Some(b"1".to_vec())));
    }
    other.set("k", "2", None).unwrap();
    assert_eq!(near.get("k"), Ok(Some(b"1".to_vec())));
    assert_eq!(
        near.get_local("k"),
        Ok(nuthatch_client::Local::Value(b"1".to_vec()))
    );
    assert_eq!(near.get_local("none"), Ok(nuthatch_client::Local::Unknown));
    running::wait_until("the end of its time", || {
        (short.get("k") == Ok(Some(b"2".to_vec()))).then_some(())
    });
    assert_eq!(near.incr("k", 1), Ok(Some(3)));
    assert_eq!(near.get("k"), Ok(Some(b"3".to_vec())));
    near.flush_all(Duration::ZERO).unwrap();
    assert_eq!(near.get("k"), Ok(None));
    let error = Client::connect("tcp://a?near_ms=1&near_bytes=1").unwrap_err();
    assert!(error.to_string().contains("near cache"), "{error}");
}
