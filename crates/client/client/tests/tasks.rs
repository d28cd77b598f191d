//! The client for tasks: the same calls, many tasks on one connection, and futures that are dropped.

#![cfg(feature = "tokio")]

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use nuthatch_client::tasks::Client;
use nuthatch_client::{CarriedOut, Compute, ComputeError, Error, Options, Outcome, WhenFull};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

mod servers;

use servers::*;

/// A runtime of one thread, and one of two.
fn runtimes() -> [Runtime; 2] {
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    [one, two]
}

fn patient() -> Options {
    let mut options = Options::default();
    options.timeout = running::PATIENCE;
    options
}

async fn each_call(client: Client) {
    let minute = Duration::from_secs(60);
    assert_eq!(client.get("k").await, Ok(None));
    client.set("k", "value", minute).await.unwrap();
    assert_eq!(client.add("k", "other", None).await, Ok(Outcome::NotStored));
    assert_eq!(client.append("k", ">").await, Ok(Outcome::Done));
    assert_eq!(
        client.get_and_touch("k", None).await,
        Ok(Some(b"value>".to_vec()))
    );
    let item = client.get_item("k").await.unwrap().unwrap();
    assert_eq!(item.left, None);
    assert_eq!(
        client.cas("k", "9", None, item.cas).await,
        Ok(Outcome::Done)
    );
    assert_eq!(client.incr("k", 3).await, Ok(Some(12)));
    let many = client.get_many(&["none", "k"]).await.complete();
    assert_eq!(many, Ok(vec![None, Some(b"12".to_vec())]));
    assert_eq!(client.delete("k").await, Ok(Outcome::Done));
    assert!(client.version().await[0].1.is_ok());
    client.flush_all(Duration::ZERO).await.unwrap();
    let computed = client
        .get_or_compute("c", Compute::new(minute), async || {
            Ok::<_, Error>(b"v".to_vec())
        })
        .await;
    assert_eq!(computed, Ok(b"v".to_vec()));
    assert_eq!(client.get("c").await, Ok(Some(b"v".to_vec())));
    let failed = client
        .get_or_compute("f", Compute::new(minute), async || Err(7))
        .await;
    assert_eq!(failed, Err(ComputeError::Computation(7)));
    assert_eq!(client.get("f").await, Ok(None));
}

#[test]
fn each_call_does_what_it_says() {
    for server in both("") {
        for runtime in runtimes() {
            let client = Client::connect(&server.address()).unwrap();
            runtime.block_on(each_call(client));
        }
    }
}

#[test]
fn each_task_gets_the_reply_to_its_own_request() {
    for server in both("") {
        for runtime in runtimes() {
            for requests_max in [4096, 3] {
                let mut options = patient();
                options.requests_max = requests_max;
                let client = Client::connect_with(&server.address(), options).unwrap();
                runtime.block_on(async {
                    let mut tasks = JoinSet::new();
                    for id in 0..64 {
                        let client = client.clone();
                        tasks.spawn(async move {
                            for number in 0..100_usize {
                                let key = format!("{id}-{}", number % 7);
                                let value = format!("{id}-{number}-")
                                    .repeat(1 + number % 50)
                                    .into_bytes();
                                client.set(&key, &value, None).await.unwrap();
                                assert_eq!(client.get(&key).await, Ok(Some(value)));
                            }
                        });
                    }
                    tasks.join_all().await;
                });
            }
        }
    }
}

/// The kind of fault is a reply that goes to the next call, because the one before was dropped.
#[test]
fn futures_that_are_dropped_take_their_replies_with_them() {
    let server = Server::nuthatch("");
    for runtime in runtimes() {
        let client = Client::connect_with(&server.address(), patient()).unwrap();
        runtime.block_on(async {
            for number in 0..500_u32 {
                let key = format!("{number}");
                client.set(&key, &key, None).await.unwrap();
                let dropped = client.get("0");
                let _ = tokio::time::timeout(Duration::from_micros((number % 50).into()), dropped)
                    .await;
                assert_eq!(client.get(&key).await, Ok(Some(key.into_bytes())));
            }
        });
    }
}

#[test]
fn more_than_the_socket_holds_travels_both_ways() {
    for server in both("") {
        for runtime in runtimes() {
            let client = Client::connect_with(&server.address(), patient()).unwrap();
            runtime.block_on(async {
                let mut tasks = JoinSet::new();
                for id in 0..8 {
                    let client = client.clone();
                    tasks.spawn(async move {
                        let (key, large) = (format!("large-{id}"), vec![b'x'; 900_000]);
                        for _ in 0..3 {
                            client.set(&key, &large, None).await.unwrap();
                            let values = client.get_many(&[&key; 20]).await.complete().unwrap();
                            assert!(values.iter().flatten().all(|value| *value == large));
                            // What is read from memory does not travel.
                            let touched = client.get_and_touch(&key, None).await.unwrap();
                            assert!(touched.as_ref() == Some(&large));
                        }
                    });
                }
                tasks.join_all().await;
            });
        }
    }
}

#[test]
fn a_server_that_does_not_answer_or_is_not_there_gives_clear_errors() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let mut options = Options::default();
    options.connect_timeout = Duration::from_millis(100);
    for runtime in runtimes() {
        runtime.block_on(async {
            // The kernel accepts, and nobody greets.
            let client = Client::connect_with(&address, options.clone()).unwrap();
            let error = client.get("k").await.unwrap_err();
            assert!(matches!(error, Error::Down { .. }), "{error}");
            let client = Client::connect(&format!("tcp://127.0.0.1:{}", free_port())).unwrap();
            let error = client.get("k").await.unwrap_err();
            assert!(
                matches!(&error, Error::Down { reason, .. } if reason.contains("refused")),
                "{error}"
            );
            assert_eq!(error.carried_out(), CarriedOut::No);
            // Without a server the value is computed all the same.
            let computed = client
                .get_or_compute("k", Compute::new(None), async || Ok::<_, ()>(vec![1]))
                .await;
            assert_eq!(computed, Ok(vec![1]));
        });
    }
}

#[test]
fn a_server_that_ends_and_returns_is_found_again() {
    for runtime in runtimes() {
        let Some(first) = Memcached::start("") else {
            return;
        };
        let port = first.port();
        let client = Client::connect(&format!("tcp://127.0.0.1:{port}?retry_most_ms=50")).unwrap();
        runtime.block_on(async {
            assert_eq!(client.get("k").await, Ok(None));
            drop(first);
            let second = Memcached::start_at(port, "");
            assert_eq!(client.get("k").await, Ok(None));
            drop(second);
            assert!(client.set("k", "v", None).await.is_err());
        });
    }
}

/// The kind of fault is a connection whose tasks are gone, and that waits for them for ever.
#[test]
fn a_client_outlives_its_first_runtime() {
    for server in both("") {
        let client = Client::connect_with(&server.address(), patient()).unwrap();
        for runtime in runtimes() {
            runtime.block_on(client.set("k", "v", None)).unwrap();
            assert_eq!(runtime.block_on(client.get("k")), Ok(Some(b"v".to_vec())));
        }
    }
}

#[test]
fn tasks_that_find_the_queue_full_fail_if_that_is_said() {
    let server = Server::nuthatch("");
    let mut options = patient();
    options.requests_max = 1;
    options.when_full = WhenFull::Fail;
    let [one, _] = runtimes();
    one.block_on(async {
        let client = Client::connect_with(&server.address(), options).unwrap();
        client.get("k").await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            let client = client.clone();
            tasks.spawn(async move { client.get("k").await });
        }
        let mut outcomes = tasks.join_all().await;
        outcomes.sort_by_key(Result::is_err);
        assert_eq!(outcomes, [Ok(None), Err(Error::Full), Err(Error::Full)]);
    });
}

/// The kind of fault is a call that is overtaken for ever by those that need less room, and work that grows with the square of
/// how many wait, because each of them is woken for each reply.
#[test]
fn tasks_that_find_the_queue_full_stand_in_line() {
    let server = Server::nuthatch("");
    let mut options = patient();
    options.requests_max = 4;
    for runtime in runtimes() {
        let client = Client::connect_with(&server.address(), options.clone()).unwrap();
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..16 {
                let client = client.clone();
                tasks.spawn(async move {
                    loop {
                        client.set("k", "v", None).await.unwrap();
                    }
                });
            }
            // It needs all the room there is.
            let values = client.get_many(&["none"; 4]).await.complete();
            assert_eq!(values, Ok(vec![None; 4]));
            tasks.shutdown().await;
            let mut tasks = JoinSet::new();
            for _ in 0..50_000 {
                let client = client.clone();
                tasks.spawn(async move { client.get("k").await });
            }
            let found = tasks.join_all().await;
            assert!(found.iter().all(|found| *found == Ok(Some(b"v".to_vec()))));
        });
    }
}

#[cfg(feature = "tls")]
/// As for threads: who finds no room asks whether the connection is of any more use.
#[test]
fn a_connection_that_takes_nothing_is_ended() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let (accepted, are_accepted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut socket, b"MN\r\n");
            if accepted.send(socket).is_err() {
                return;
            }
        }
    });
    for runtime in runtimes() {
        let mut options = Options::default();
        (options.timeout, options.late_max) =
            (Duration::from_millis(20), Duration::from_millis(50));
        options.requests_max = 1;
        options.retry_least = Duration::from_millis(1);
        let client = Client::connect_with(&address, options).unwrap();
        let mut sockets = Vec::new();
        running::wait_until("another connection", || {
            let stored = runtime.block_on(client.set("k", vec![0; 8 << 20], None));
            stored.unwrap_err();
            sockets.extend(are_accepted.try_iter());
            (sockets.len() > 1).then_some(())
        });
    }
}

#[test]
fn tls_is_the_same_for_tasks() {
    let Some((server, ca)) = with_tls() else {
        return;
    };
    for runtime in runtimes() {
        let client = Client::connect_with(
            &format!("tls://{}?ca={}", server.place(), ca.display()),
            patient(),
        )
        .unwrap();
        runtime.block_on(async {
            let large = vec![b'x'; 500_000];
            client.set("k", &large, None).await.unwrap();
            let values = client.get_many(&vec!["k"; 100]).await.complete().unwrap();
            assert!(values.iter().all(|value| value.as_ref() == Some(&large)));
        });
    }
}

/// Class of fault: a task that is given up, as one of a web server is whose client has left, makes others wait for its lease.
#[test]
fn a_computation_that_is_dropped_makes_nobody_wait() {
    let minute = Duration::from_secs(60);
    for (runtime, server) in runtimes().into_iter().zip(both("")) {
        runtime.block_on(async {
            let client = Client::connect_with(&server.address(), patient()).unwrap();
            let how = Compute::new(minute).lease(minute);
            let (computes, has_begun) = tokio::sync::oneshot::channel();
            let of_task = client.clone();
            let task = tokio::spawn(async move {
                let never = async || {
                    computes.send(()).unwrap();
                    std::future::pending::<Result<Vec<u8>, ()>>().await
                };
                of_task.get_or_compute("k", how, never).await
            });
            has_begun.await.unwrap();
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            let value = client.get_or_compute("k", how, async || Ok::<_, ()>(b"v".to_vec()));
            assert_eq!(value.await, Ok(b"v".to_vec()));
        });
    }
}

/// Lets a call go on for as long as it does not wait.
async fn begun<F: Future>(mut call: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await
}

/// The same class of fault, before the server has said that this task is the one that computes, or before the task has heard it.
#[test]
fn a_call_that_is_dropped_before_it_computes_makes_nobody_wait() {
    let minute = Duration::from_secs(60);
    let how = Compute::new(minute).lease(minute);
    for server in both("") {
        for is_answered in [false, true] {
            let [runtime, _] = runtimes();
            runtime.block_on(async {
                let client = Client::connect_with(&server.address(), patient()).unwrap();
                let asked = async || {
                    let touched = client.touch("other", None).await;
                    assert_eq!(touched, Ok(Outcome::NotFound));
                };
                asked().await;
                {
                    let never = async || -> Result<Vec<u8>, ()> { panic!("it was dropped") };
                    let mut call = pin!(client.get_or_compute("k k", how, never));
                    assert!(begun(call.as_mut()).await.is_pending());
                    if is_answered {
                        // Its reply comes after that of the call.
                        asked().await;
                    }
                }
                asked().await;
                let found = client.get_and_touch("k k", minute.into()).await;
                assert_eq!(found, Ok(None), "{is_answered} {}", server.address());
            });
        }
    }
}

/// The same class of fault, when the value is computed and was not sent yet, because there is no room for it.
#[test]
fn a_call_that_is_dropped_before_it_stores_makes_nobody_wait() {
    let hour = Duration::from_secs(3600);
    let how = Compute::new(hour).lease(hour);
    let mut options = patient();
    options.requests_max = 1;
    for server in both("") {
        let [runtime, _] = runtimes();
        runtime.block_on(async {
            let client = Client::connect_with(&server.address(), options.clone()).unwrap();
            assert_eq!(client.touch("k", None).await, Ok(Outcome::NotFound));
            {
                let computed = async || Ok::<_, ()>(b"v".to_vec());
                let mut call = pin!(client.get_or_compute("k", how, computed));
                assert!(begun(call.as_mut()).await.is_pending());
                assert_eq!(client.touch("k", None).await, Ok(Outcome::Done));
                let mut other = pin!(client.touch("k", None));
                assert!(begun(other.as_mut()).await.is_pending());
                assert!(begun(call.as_mut()).await.is_pending());
            }
            let given_up = async { while client.get_and_touch("k", None).await != Ok(None) {} };
            let in_time = tokio::time::timeout(running::PATIENCE, given_up).await;
            in_time.expect("the place is given up");
        });
    }
}
