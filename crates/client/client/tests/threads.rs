//! Many threads on one connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nuthatch_client::{Client, Error, Options, WhenFull};

mod servers;

use servers::*;

fn patient() -> Options {
    let mut options = Options::default();
    options.timeout = running::PATIENCE;
    options
}

/// What a thread stores under a key, so that another one's value would be noticed.
fn value(thread: usize, number: usize) -> Vec<u8> {
    format!("{thread}-{number}-")
        .repeat(1 + number % 50)
        .into_bytes()
}

fn sets_and_gets(client: &Client, threads: usize, rounds: usize) {
    thread::scope(|scope| {
        for id in 0..threads {
            scope.spawn(move || {
                for number in 0..rounds {
                    let key = format!("{id}-{}", number % 7);
                    client.set(&key, value(id, number), None).unwrap();
                    assert_eq!(client.get(&key), Ok(Some(value(id, number))), "{key}");
                }
            });
        }
    });
}

#[test]
fn each_thread_gets_the_reply_to_its_own_request() {
    for server in both("") {
        let client = Client::connect_with(&server.address(), patient()).unwrap();
        sets_and_gets(&client, 64, 200);
    }
}

/// The kind of fault is a thread that waits for room, and is not woken or reads for nobody.
#[test]
fn threads_that_find_the_queue_full_wait_for_room() {
    for server in both("") {
        for (requests_max, bytes_max) in [(1, 1 << 20), (3, 1 << 20), (4096, 1)] {
            let mut options = patient();
            options.requests_max = requests_max;
            options.bytes_max = bytes_max;
            let client = Client::connect_with(&server.address(), options).unwrap();
            sets_and_gets(&client, 16, 100);
        }
    }
}

#[test]
fn threads_that_find_the_queue_full_fail_if_that_is_said() {
    let server = Server::nuthatch("");
    let mut options = patient();
    options.requests_max = 1;
    options.when_full = WhenFull::Fail;
    let client = Client::connect_with(&server.address(), options).unwrap();
    client.get("k").unwrap();
    let (full, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..500 {
                    match client.get("k") {
                        Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error, Error::Full);
                            full.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            });
        }
    });
    let (full, done) = (full.into_inner(), done.into_inner());
    assert_eq!(full + done, 16 * 500);
    assert!(done > 0, "{full}");
}

/// The kind of fault is a client that sends and does not read meanwhile, to a server that does the same.
#[test]
fn more_than_the_sockets_hold_travels_both_ways() {
    for server in both("") {
        let client = Client::connect_with(&server.address(), patient()).unwrap();
        let large = vec![b'x'; 900_000];
        thread::scope(|scope| {
            for id in 0..8 {
                let (client, large) = (&client, &large);
                scope.spawn(move || {
                    let key = format!("large-{id}");
                    for _ in 0..5 {
                        client.set(&key, large, None).unwrap();
                        let values = client.get_many(&[&key; 20]).complete().unwrap();
                        assert!(values.iter().flatten().all(|value| value == large));
                    }
                });
            }
        });
    }
}

#[test]
fn a_call_in_time_is_no_worse_for_others_that_are_not() {
    for server in both("") {
        let mut options = Options::default();
        // So short that most calls run out of it, at any point.
        options.timeout = Duration::from_micros(50);
        let hasty = Client::connect_with(&server.address(), options.clone()).unwrap();
        thread::scope(|scope| {
            for id in 0..16 {
                let hasty = &hasty;
                scope.spawn(move || {
                    for number in 0..300 {
                        let key = format!("{id}");
                        let (now, then) = (value(id, number), value(id, number.max(1) - 1));
                        if hasty.set(&key, &now, None).is_ok()
                            && let Ok(found) = hasty.get(&key)
                        {
                            assert!(found.as_ref() == Some(&now), "{found:?} {then:?}");
                        }
                    }
                });
            }
        });
    }
}
