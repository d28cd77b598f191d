//! One client computes for all, in one process and in several.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nuthatch_client::{Client, Compute, ComputeError, Error, Outcome};

mod servers;

use running::wait_until;
use servers::*;

const MINUTE: Duration = Duration::from_secs(60);
/// Where a child finds its server.
const ADDRESS: &str = "NUTHATCH_CLIENT_TEST_ADDRESS";

#[test]
fn of_many_threads_one_computes() {
    for server in both("") {
        let computed = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    // A client each, as in processes of their own.
                    let client = Client::connect(&server.address()).unwrap();
                    let value = client.get_or_compute("k", Compute::new(MINUTE), || {
                        computed.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(100));
                        Ok::<_, Error>(b"computed".to_vec())
                    });
                    assert_eq!(value, Ok(b"computed".to_vec()));
                });
            }
        });
        assert_eq!(computed.into_inner(), 1);
    }
}

/// What a process of the next test does.
#[test]
#[ignore = "a part of `of_many_processes_one_computes`"]
fn child() {
    let client = Client::connect(&std::env::var(ADDRESS).unwrap()).unwrap();
    for number in 0..10 {
        let value = client.get_or_compute(format!("k-{number}"), Compute::new(MINUTE), || {
            let _ = client.add("computed", "0", None)?;
            client.incr("computed", 1)?;
            thread::sleep(Duration::from_millis(50));
            Ok::<_, Error>(format!("value-{number}").into_bytes())
        });
        assert_eq!(value, Ok(format!("value-{number}").into_bytes()));
    }
}

#[test]
fn of_many_processes_one_computes() {
    for server in both("") {
        let start = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--ignored", "--exact", "child"])
                .env(ADDRESS, server.address());
            command.stdout(Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..4).map(|_| start()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let client = Client::connect(&server.address()).unwrap();
        assert_eq!(client.get("computed"), Ok(Some(b"10".to_vec())));
    }
}

#[test]
fn a_computation_that_fails_or_never_ends_lets_the_next_one_compute() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let how = Compute::new(MINUTE).lease(Duration::from_secs(1));
        let failed = client.get_or_compute("k", how, || Err("no database"));
        assert_eq!(failed, Err(ComputeError::Computation("no database")));
        let value = client.get_or_compute("k", how, || Ok::<_, Error>(b"1".to_vec()));
        assert_eq!(value, Ok(b"1".to_vec()));
        // Who won dies with its lease.
        let dead = thread::scope(|scope| {
            let won = scope.spawn(|| {
                let _ = client.get_or_compute("d", how, || -> Result<_, Error> {
                    panic!("the process that won dies")
                });
            });
            won.join()
        });
        assert!(dead.is_err());
        let value = client.get_or_compute("d", how, || Ok::<_, Error>(b"2".to_vec()));
        assert_eq!(value, Ok(b"2".to_vec()));
    }
}

/// The kind of fault: one dies that computes, and then all that wait compute.
#[test]
fn when_a_lease_is_over_one_computes_for_all() {
    for server in both("") {
        let how = Compute::new(MINUTE).lease(Duration::from_secs(1));
        let client = Client::connect(&server.address()).unwrap();
        let (won, has_won) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let computed = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                // As good as dead, until the others are through.
                let late = client.get_or_compute("k", how, || {
                    won.send(()).unwrap();
                    let _ = ends.recv();
                    Ok::<_, Error>(b"late".to_vec())
                });
                assert_eq!(late, Ok(b"late".to_vec()));
            });
            has_won.recv().unwrap();
            let waits = || {
                let client = Client::connect(&server.address()).unwrap();
                let value = client.get_or_compute("k", how, || {
                    computed.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(200));
                    Ok::<_, Error>(b"computed".to_vec())
                });
                assert_eq!(value, Ok(b"computed".to_vec()));
            };
            let all = [(); 8].map(|()| scope.spawn(waits));
            all.into_iter().for_each(|one| one.join().unwrap());
            end.send(()).unwrap();
        });
        assert_eq!(computed.into_inner(), 1);
        // Who came late has not stored.
        let client = Client::connect(&server.address()).unwrap();
        assert_eq!(client.get("k"), Ok(Some(b"computed".to_vec())));
    }
}

#[test]
fn a_computation_that_panics_makes_nobody_wait() {
    for server in both("") {
        let how = Compute::new(MINUTE).lease(MINUTE);
        let client = Client::connect(&server.address()).unwrap();
        let dead = thread::scope(|scope| {
            let won = scope.spawn(|| {
                let _ = client.get_or_compute("k", how, || -> Result<_, Error> {
                    panic!("a computation panics")
                });
            });
            won.join()
        });
        assert!(dead.is_err());
        let value = client.get_or_compute("k", how, || Ok::<_, Error>(b"v".to_vec()));
        assert_eq!(value, Ok(b"v".to_vec()));
    }
}

#[test]
fn who_waits_for_another_may_leave() {
    for server in both("") {
        let how = Compute::new(MINUTE).lease(MINUTE);
        let client = Client::connect(&server.address()).unwrap();
        let value = client.get_or_compute("k", how, || {
            let asked = AtomicU32::new(0);
            let go_on = || match asked.fetch_add(1, Ordering::Relaxed) {
                0..3 => Ok(()),
                _ => Err("called away"),
            };
            let waited = client.get_or_compute_while("k", how, || panic!("two compute"), go_on);
            assert_eq!(waited, Err(ComputeError::Computation("called away")));
            Ok::<_, Error>(b"v".to_vec())
        });
        assert_eq!(value, Ok(b"v".to_vec()));
    }
}

/// The kind of fault: the server takes somebody for the one that computes who has given up on its reply.
#[test]
fn who_runs_out_of_time_before_it_computes_makes_nobody_wait() {
    let how = Compute::new(MINUTE).lease(MINUTE);
    for server in [Some(Server::nuthatch("")), Server::shared("")] {
        let Some(server) = server else { continue };
        let address = server.address_with("timeout_ms=100&late_max_ms=600000");
        let client = Client::connect(&address).unwrap();
        let ask = || client.touch("other", None);
        let _ = wait_until("a connection", || ask().ok());
        server.running().signal(Signal::SIGSTOP);
        wait_until("a server that is stopped", || ask().err());
        let late = client.lease("k", how);
        assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
        server.running().signal(Signal::SIGCONT);
        let _ = wait_until("a server that goes on", || ask().ok());
        let found = || client.get_and_touch("k", Some(MINUTE)).ok();
        assert_eq!(wait_until("a reply", found), None);
    }
}

/// The kind of fault is a value that no server takes, for which all wait until the lease is over.
#[test]
fn a_value_that_is_not_stored_makes_nobody_wait() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let how = Compute::new(MINUTE).lease(MINUTE);
        for _ in 0..3 {
            let value = client.get_or_compute("large", how, || Ok::<_, Error>(vec![b'x'; 5 << 20]));
            assert_eq!(value.map(|value| value.len()), Ok(5 << 20));
        }
    }
}

#[test]
fn a_stale_value_is_given_to_all_but_the_one_that_computes() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let other = Client::connect(&server.address()).unwrap();
        let how = Compute::new(MINUTE);
        client.set("k", "old", MINUTE).unwrap();
        assert_eq!(client.make_stale("k", MINUTE), Ok(Outcome::Done));
        let value = client.get_or_compute("k", how, || {
            let meanwhile =
                other.get_or_compute("k", how, || -> Result<_, Error> { panic!("two compute") });
            assert_eq!(meanwhile, Ok(b"old".to_vec()));
            Ok::<_, Error>(b"new".to_vec())
        });
        assert_eq!(value, Ok(b"new".to_vec()));
        assert_eq!(other.get("k"), Ok(Some(b"new".to_vec())));
    }
}

#[test]
fn a_value_that_will_expire_is_computed_early_by_one() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let early = Compute::new(MINUTE).early(Duration::from_secs(30));
        client.set("k", "old", Duration::from_secs(20)).unwrap();
        let value = client.get_or_compute("k", early, || {
            let meanwhile =
                client.get_or_compute("k", early, || -> Result<_, Error> { panic!("two compute") });
            assert_eq!(meanwhile, Ok(b"old".to_vec()));
            Ok::<_, Error>(b"new".to_vec())
        });
        assert_eq!(value, Ok(b"new".to_vec()));
        let value =
            client.get_or_compute("k", early, || -> Result<_, Error> { panic!("it has time") });
        assert_eq!(value, Ok(b"new".to_vec()));
    }
}

#[test]
fn without_a_server_the_value_is_computed() {
    let client = Client::connect(&format!("tcp://127.0.0.1:{}", free_port())).unwrap();
    let how = Compute::new(MINUTE);
    assert_eq!(
        client.get_or_compute("k", how, || Ok::<_, Error>(vec![1])),
        Ok(vec![1])
    );
    let key = client.get_or_compute("", how, || Ok::<_, Error>(vec![1]));
    assert!(matches!(key, Err(ComputeError::Key(Error::Key { .. }))));
}
