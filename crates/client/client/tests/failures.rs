//! Servers that are dead, slow, half closed, or lie.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nuthatch_client::{CarriedOut, Client, Error, Options, WhenFull};

mod servers;

use servers::*;

/// A server of one's own: what it does with each connection, once it has been greeted.
fn server(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let serve = serve.clone();
            thread::spawn(move || {
                let mut greeting = [0; 4];
                if socket.read_exact(&mut greeting).is_ok() {
                    assert_eq!(&greeting, b"mn\r\n");
                    socket.write_all(b"MN\r\n").unwrap();
                    serve(socket);
                }
            });
        }
    });
    address
}

/// A server that answers each request with these bytes, in which `@` stands for the request's number.
fn answers(bytes: &'static [u8]) -> String {
    server(move |mut socket| {
        let mut request = [0; 1000];
        while let Ok(length @ 1..) = socket.read(&mut request) {
            let line = String::from_utf8_lossy(&request[..length]).into_owned();
            let number = line
                .split(" O")
                .nth(1)
                .map(|number| number.split("\r\n").next().unwrap().to_owned());
            for &byte in bytes {
                let part = if byte == b'@' {
                    number.clone().unwrap_or_default().into_bytes()
                } else {
                    vec![byte]
                };
                if socket.write_all(&part).is_err() {
                    return;
                }
            }
        }
    })
}

fn patient() -> Options {
    let mut options = Options::default();
    options.timeout = running::PATIENCE;
    options
}

fn options() -> Options {
    let mut options = Options::default();
    options.timeout = Duration::from_millis(200);
    options
}

#[test]
fn a_server_that_is_not_there_is_down_and_left_alone_for_a_while() {
    let port = free_port();
    let client = Client::connect(&format!(
        "tcp://127.0.0.1:{port}?retry_least_ms=20000&retry_most_ms=20000"
    ))
    .unwrap();
    let first = client.get("k").unwrap_err();
    assert!(
        matches!(&first, Error::Down { reason, .. } if reason.contains("refused")),
        "{first}"
    );
    assert_eq!(first.carried_out(), CarriedOut::No);
    // Somebody listens now, but the pause is not over.
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let Err(Error::Down { retry_in, .. }) = client.get("k") else {
        panic!("it tried again");
    };
    assert!(retry_in > Duration::from_secs(5), "{retry_in:?}");
}

#[test]
fn a_server_that_comes_back_is_found() {
    let Some(first) = Memcached::start("") else {
        return;
    };
    let port = first.port();
    let client = Client::connect(&format!("tcp://127.0.0.1:{port}?retry_most_ms=50")).unwrap();
    client.set("k", "v", None).unwrap();
    drop(first);
    running::wait_until("an error", || client.set("k", "v", None).err());
    let _second = Memcached::start_at(port, "");
    running::wait_until("the second server", || client.set("k", "v", None).ok());
}

/// The kind of fault is an error for each restart of a server, though nothing is lost by asking again.
#[test]
fn a_get_is_asked_again_on_a_new_connection() {
    let Some(first) = Memcached::start("") else {
        return;
    };
    let port = first.port();
    let client = Client::connect(&format!("tcp://127.0.0.1:{port}")).unwrap();
    assert_eq!(client.get("k"), Ok(None));
    drop(first);
    let _second = Memcached::start_at(port, "");
    assert_eq!(client.get("k"), Ok(None));
}

/// The kind of fault is a change that fails because a server closes what nobody uses.
#[test]
fn a_connection_that_was_closed_while_nobody_used_it_is_made_anew() {
    let server = Server::nuthatch("-o idle_timeout=1");
    let client = Client::connect_with(&server.address(), patient()).unwrap();
    client.set("k", "v", None).unwrap();
    running::wait_until("the end of an idle connection", || {
        let stats = Client::connect(&server.address()).unwrap().stats("");
        let all = stats.into_iter().next().unwrap().1.unwrap();
        let closed = all.iter().find(|(name, _)| name == "idle_kicks").unwrap();
        (closed.1 != "0").then_some(())
    });
    client.set("k", "w", None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"w".to_vec())));
}

#[test]
fn a_change_whose_reply_is_lost_may_have_been_made() {
    let address = server(|mut socket| {
        let _ = socket.read(&mut [0; 1000]);
    });
    let client = Client::connect_with(&address, options()).unwrap();
    let error = client.set("k", "v", None).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Lost {
                carried_out: CarriedOut::Maybe,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("may have been carried out"),
        "{error}"
    );
}

#[test]
fn a_server_that_does_not_answer_costs_no_more_than_the_time_of_a_call() {
    let address = server(|socket| {
        thread::sleep(running::PATIENCE + Duration::from_secs(socket.ttl().unwrap_or(0).into()))
    });
    let client = Client::connect_with(&address, options()).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let start = Instant::now();
                let error = client.get("k").unwrap_err();
                assert!(
                    matches!(
                        error,
                        Error::Timeout {
                            carried_out: CarriedOut::Maybe
                        }
                    ),
                    "{error}"
                );
                assert!(start.elapsed() >= Duration::from_millis(200));
            });
        }
    });
}

#[test]
fn replies_that_come_too_late_are_dropped() {
    let address = server(|mut socket| {
        let mut request = [0; 1000];
        let mut is_first = true;
        let mut number = 0;
        while let Ok(length @ 1..) = socket.read(&mut request) {
            if std::mem::take(&mut is_first) {
                thread::sleep(Duration::from_millis(400));
            }
            let requests = String::from_utf8_lossy(&request[..length])
                .matches("mg ")
                .count();
            for _ in 0..requests {
                socket
                    .write_all(format!("VA 1 O{:x}\r\n{number}\r\n", number + 1).as_bytes())
                    .unwrap();
                number += 1;
            }
        }
    });
    let client = Client::connect_with(&address, options()).unwrap();
    assert!(matches!(client.get("k"), Err(Error::Timeout { .. })));
    let value = running::wait_until("an answer", || client.get("k").ok().flatten());
    // The second request, or a later one: never the first one's value.
    assert_ne!(value, b"0");
}

#[test]
fn a_connection_whose_replies_are_too_late_is_ended() {
    // Also if those that wait leave no room for another call.
    for requests_max in [4096, 1] {
        let (ended, has_ended) = std::sync::mpsc::channel();
        let address = server(move |mut socket| {
            let mut bytes = [0; 1000];
            while let Ok(1..) = socket.read(&mut bytes) {}
            // The test may be over.
            let _ = ended.send(());
        });
        let mut options = options();
        options.timeout = Duration::from_millis(20);
        options.late_max = Duration::from_millis(50);
        options.requests_max = requests_max;
        let client = Client::connect_with(&address, options).unwrap();
        let mut calls = 0;
        running::wait_until("the connection's end", || {
            let outcome = client.set("k", "v", None);
            assert!(
                matches!(outcome, Err(Error::Timeout { .. } | Error::Down { .. })),
                "{outcome:?}"
            );
            calls += 1;
            has_ended.try_recv().ok()
        });
        assert!(calls > 2, "{calls}");
    }
}

/// The kind of fault is a connection that nobody gives up: who finds no room for a call fails before it waits for a reply.
#[test]
fn a_connection_that_takes_nothing_is_ended_too() {
    for when_full in [WhenFull::Wait, WhenFull::Fail] {
        let connections = Arc::new(AtomicUsize::new(0));
        let seen = connections.clone();
        let address = server(move |socket| {
            seen.fetch_add(1, Ordering::Relaxed);
            thread::sleep(running::PATIENCE);
            drop(socket);
        });
        let mut options = options();
        (options.timeout, options.late_max) =
            (Duration::from_millis(20), Duration::from_millis(50));
        (options.requests_max, options.when_full) = (1, when_full);
        options.retry_least = Duration::from_millis(1);
        let client = Client::connect_with(&address, options).unwrap();
        running::wait_until("another connection", || {
            client.set("k", vec![0; 8 << 20], None).unwrap_err();
            (connections.load(Ordering::Relaxed) > 1).then_some(())
        });
    }
}

/// Linux lets a connect to a socket in the file system wait while the server accepts nobody. The kind of fault is a call that
/// has no end.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_accepts_nobody_takes_no_more_than_the_time_of_a_connection() {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: a call without addresses, on a descriptor that is open.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _first = UnixStream::connect(&path).unwrap();
    for scheme in ["unix", "shm"] {
        if scheme == "shm" && !HAS_SHARED {
            continue;
        }
        let address = format!("{scheme}://{}?connect_timeout_ms=20", path.display());
        let error = Client::connect(&address).unwrap().get("k").unwrap_err();
        assert!(
            matches!(&error, Error::Down { reason, .. } if reason.contains("the server ")),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_sends_no_more_has_closed() {
    let address = server(|mut socket| {
        socket.shutdown(Shutdown::Write).unwrap();
        let mut bytes = [0; 1000];
        while let Ok(1..) = socket.read(&mut bytes) {}
    });
    let client = Client::connect_with(&address, options()).unwrap();
    let error = client.set("k", "v", None).unwrap_err();
    assert!(
        matches!(&error, Error::Lost { reason, .. } if reason.contains("closed")),
        "{error}"
    );
}

/// The kind of fault is a value that is believed to be another key's, or memory that a server makes grow.
#[test]
fn a_server_that_lies_is_noticed_and_left() {
    for (bytes, part) in [
        (&b"VA 1 Offff\r\nx\r\n"[..], "in place of"),
        (b"VA 1\r\nx\r\n", "without its request's number"),
        (b"VA 1 O@\r\nxxx\r\n", "another length"),
        (b"VA 99999999 O@\r\n", "99999999 bytes"),
        (b"STORED\r\n", "STORED"),
        (b"MN\r\n", "Nothing"),
        (b"ERROR\r\n", "does not know the meta commands"),
        (b"\0\0\0\r\n", "\\0\" is no reply"),
        (&[b'x'; 5000], "a line of over 2048 bytes"),
        (b"HD O@\r\n", "Done"),
        (b"NF O@\r\n", "NotFound"),
    ] {
        let client = Client::connect_with(&answers(bytes), options()).unwrap();
        let error = client.get("k").unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    // What it sends comes into no error's words, however much it is.
    let long: &[u8] = [&b"VA 100000\r\n"[..], &[b'x'; 100_000], b"\r\n"]
        .concat()
        .leak();
    let many: &[u8] = [&b"STAT a b\r\n".repeat(10_000)[..], b"END\r\n"]
        .concat()
        .leak();
    for (bytes, part) in [
        (long, "a value of 100000 bytes"),
        (many, "10000 statistics"),
    ] {
        let client = Client::connect_with(&answers(bytes), patient()).unwrap();
        let words = client.flush_all(Duration::ZERO).unwrap_err().to_string();
        assert!(
            words.contains(part) && words.len() < 200,
            "{part}: {words:.300}"
        );
    }
    // The truth is believed, though it comes byte by byte.
    let client = Client::connect_with(&answers(b"VA 1 O@\r\nx\r\n"), patient()).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"x".to_vec())));
    // Nobody has asked for the second one.
    let client = Client::connect_with(&answers(b"EN\r\nEN\r\n"), options()).unwrap();
    for _ in 0..20 {
        let _ = client.get("k");
    }
    let error = client.set("k", "v", None).unwrap_err();
    assert!(
        matches!(error, Error::Lost { .. } | Error::Unexpected(_)),
        "{error}"
    );
}

#[test]
fn a_server_that_refuses_a_connection_is_told_from_one_without_the_meta_commands() {
    for (bytes, part) in [
        (&b"ERROR\r\n"[..], "does not know the meta commands"),
        (
            b"ERROR Too many open connections\r\n",
            "down: Too many open connections;",
        ),
        (b"", "down: the server closed the connection;"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 100]);
            socket.write_all(bytes).unwrap();
        });
        let client = Client::connect(&address).unwrap();
        let error = client.get("k").unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// A server that takes longer to greet than a call may take.
fn slow_to_greet() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 1000];
        let _ = socket.read(&mut request);
        thread::sleep(2 * options().timeout);
        socket.write_all(b"MN\r\n").unwrap();
        while let Ok(length @ 1..) = socket.read(&mut request) {
            let requests = String::from_utf8_lossy(&request[..length])
                .matches("mg ")
                .count();
            socket.write_all(&b"EN\r\n".repeat(requests)).unwrap();
        }
    });
    address
}

/// The kind of fault is a first call that fails wherever a connection takes long to make, though the server is well.
#[test]
fn the_time_to_connect_comes_on_top_of_that_of_the_call() {
    let mut options = options();
    options.connect_timeout = running::PATIENCE;
    let client = Client::connect_with(&slow_to_greet(), options.clone()).unwrap();
    assert_eq!(client.get("k"), Ok(None));
    let client = Client::connect_with(&slow_to_greet(), options.clone()).unwrap();
    assert_eq!(
        client.get_many(&["a", "b"]).complete(),
        Ok(vec![None, None])
    );
    #[cfg(feature = "tokio")]
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let client = nuthatch_client::tasks::Client::connect_with(&slow_to_greet(), options);
            assert_eq!(client.unwrap().get("k").await, Ok(None));
        });
}

/// A server that carries out all sets.
fn stores() -> String {
    server(|mut socket| {
        let mut lines = BufReader::new(socket.try_clone().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some((_, number)) = line.trim_end().split_once(" O") {
                let number = number.split(' ').next().unwrap();
                socket
                    .write_all(format!("HD O{number}\r\n").as_bytes())
                    .unwrap();
            }
            line.clear();
        }
    })
}

/// Class of bug: keys that fail because another server has.
#[test]
fn a_server_that_hangs_takes_nothing_from_the_others_of_a_call() {
    let hangs = server(|socket| {
        thread::sleep(running::PATIENCE + Duration::from_secs(socket.ttl().unwrap_or(0).into()))
    });
    // The system accepts for it, and nobody greets.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    for bad in [hangs.trim_start_matches("tcp://"), &silent] {
        let mut options = options();
        options.connect_timeout = options.timeout;
        let client = Client::connect_with(&format!("{},{bad}", stores()), options).unwrap();
        let mut items: Vec<_> = (0..100)
            .map(|n| (format!("k{n}"), "v", None.into()))
            .collect();
        // The one that fails is asked first.
        items.sort_by_key(|(key, ..)| client.server_of(key.as_bytes()) != bad);
        let of_bad = items
            .iter()
            .filter(|(key, ..)| client.server_of(key.as_bytes()) == bad);
        let of_bad: Vec<_> = (0..of_bad.count()).collect();
        let failed = client.set_many(&items).failed;
        let failed: Vec<_> = failed.into_iter().map(|(place, _)| place).collect();
        assert_eq!(failed, of_bad);
    }
}

/// Class of bug: a server that is given up again and again, and each time costs a call's whole time.
#[test]
fn a_server_that_greets_and_answers_nothing_is_left_alone() {
    let address = server(|mut socket| {
        let mut bytes = [0; 1000];
        while let Ok(1..) = socket.read(&mut bytes) {}
    });
    let mut options = options();
    options.timeout = Duration::from_millis(20);
    options.late_max = Duration::ZERO;
    options.retry_least = running::PATIENCE * 2;
    options.retry_most = options.retry_least;
    let client = Client::connect_with(&address, options).unwrap();
    let down = running::wait_until("a pause", || {
        let error = client.get("k").unwrap_err();
        matches!(error, Error::Down { .. }).then_some(error)
    });
    assert!(down.to_string().contains("answers nothing"), "{down}");
}

/// A server that closes its first connection, and has no more to do with the others than that it listens.
fn fails_first() -> (JoinHandle<TcpListener>, String, Options) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let mut options = patient();
    // An attempt outlasts the test.
    options.connect_timeout = 2 * running::PATIENCE;
    options.retry_least = Duration::from_millis(1);
    options.retry_most = options.retry_least;
    options.retry_wait = Some(Duration::from_millis(1));
    let server = thread::spawn(move || {
        drop(listener.accept());
        listener
    });
    (server, address, options)
}

/// Greets a connection, and misses all that is asked on it.
fn greet_and_miss(mut socket: TcpStream) {
    socket.read_exact(&mut [0; 4]).unwrap();
    socket.write_all(b"MN\r\n").unwrap();
    thread::spawn(move || {
        let mut request = [0; 1000];
        while let Ok(1..) = socket.read(&mut request) {
            let _ = socket.write_all(b"EN\r\n");
        }
    });
}

/// Whether this is the error of a call that found an attempt under way.
fn is_under_way(error: Error) -> bool {
    assert_eq!(error.carried_out(), CarriedOut::No);
    matches!(error, Error::Down { retry_in, .. } if retry_in.is_zero())
}

/// Class of bug: a server that hangs costs somebody the time of a connection at each attempt to reach it again.
#[test]
fn after_a_failure_nobody_waits_for_the_next_connection() {
    let (server, address, options) = fails_first();
    let client = Client::connect_with(&address, options).unwrap();
    assert!(client.get("k").is_err());
    let listener = server.join().unwrap();
    running::wait_until("an attempt", || {
        is_under_way(client.get("k").unwrap_err()).then_some(())
    });
    for _ in 0..10 {
        assert!(is_under_way(client.set("k", "v", None).unwrap_err()));
    }
    greet_and_miss(listener.accept().unwrap().0);
    running::wait_until("an answer", || client.get("k").ok());
}

#[cfg(feature = "tokio")]
#[test]
fn after_a_failure_no_task_waits_for_the_next_connection() {
    let (server, address, options) = fails_first();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = nuthatch_client::tasks::Client::connect_with(&address, options).unwrap();
    runtime.block_on(async {
        assert!(client.get("k").await.is_err());
        let listener = server.join().unwrap();
        let maker = tokio::spawn({
            let client = client.clone();
            async move { while client.get("k").await.is_err() {} }
        });
        let accepted = tokio::task::spawn_blocking(move || listener.accept().unwrap().0);
        let socket = accepted.await.unwrap();
        for _ in 0..10 {
            assert!(is_under_way(client.set("k", "v", None).await.unwrap_err()));
        }
        greet_and_miss(socket);
        maker.await.unwrap();
    });
}
