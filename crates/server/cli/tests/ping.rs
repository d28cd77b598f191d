//! `nuthatch ping`, with servers that answer and with such as do not. TLS: tests/clients/test_ping.py.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use nix::sys::signal::Signal;

mod running;

use running::*;

/// The exit code, and what was said.
fn ping(line: &str) -> (Option<i32>, String) {
    let output = run(&format!("ping {line}"));
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn answers(line: &str, words: &str) {
    let (code, said) = ping(line);
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{line}: {said}");
    assert!(said.contains(words), "{line}: {said}");
}

fn fails(line: &str, words: &str) {
    let (code, said) = ping(line);
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{line}: {said}");
    assert!(said.contains(words), "{line}: {said}");
}

#[test]
fn a_server_answers_in_each_protocol_and_no_longer_when_it_has_ended() {
    let server = Running::start("-l 127.0.0.1 -p 0 -t 1 --redis-port -1");
    let (memcached, redis) = (
        server.address().to_owned(),
        server.redis_address().to_owned(),
    );
    answers(&memcached, ": VERSION ");
    answers(&format!("{memcached} --protocol binary"), ": VERSION ");
    answers(&format!("--protocol=redis {redis}"), ": +PONG");
    // Who asks in another protocol learns that.
    fails(&redis, "(--protocol); it answers `-ERR");
    fails(
        &format!("{memcached} --protocol redis"),
        "no answer of Redis' protocol (--protocol); it answers `",
    );
    assert_eq!(server.end(Signal::SIGTERM).0, Some(0));
    fails(&memcached, "refused");
    fails(&format!("{redis} --protocol redis"), "refused");
}

#[test]
fn a_server_that_wants_a_password_answers() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    fs::write(&users, "ann:secret\n").unwrap();
    let users = users.display();
    let server = Running::start(&format!(
        "-l 127.0.0.1 -p 0 -t 1 --redis-port -1 -Y {users}"
    ));
    answers(server.address(), "unauthenticated");
    answers(
        &format!("{} --protocol redis", server.redis_address()),
        "NOAUTH",
    );
    answers(&format!("{} --protocol binary", server.address()), ": ");
    // A question is no guess.
    assert_eq!(server.end(Signal::SIGTERM).0, Some(0));
}

#[test]
fn the_server_of_a_file_and_of_a_socket_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (file, socket) = (place("nuthatch.toml"), place("socket"));
    fs::write(&file, format!("unix-socket = \"{socket}\"\nthreads = 1\n")).unwrap();
    fails(&format!("--config {file}"), "No such file");
    let server = Running::start(&format!("--config {file}"));
    answers(&format!("--config {file}"), &format!("{socket}: VERSION "));
    answers(&socket, ": VERSION ");
    assert_eq!(server.end(Signal::SIGTERM).0, Some(0));
    fails(&socket, "No such file");

    fs::write(&file, "port = 0\n").unwrap();
    for (line, words) in [
        (format!("--config {file}"), "system's choice"),
        (format!("--config {}", place("none")), "none"),
        (format!("--config {file} {socket}"), "cannot be used with"),
        ("--timeout 0".to_owned(), "--timeout: from 0.1"),
    ] {
        let (code, said) = ping(&line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
}

/// The kernel accepts for it, and nobody reads.
#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for how in ["", "--protocol redis", "--protocol binary", "--tls"] {
        fails(
            &format!("{address} --timeout 0.2 {how}"),
            "no answer within 0.2 s",
        );
    }
}

#[test]
fn a_server_that_talks_otherwise_is_no_cache() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let answers = ["HTTP/1.1 400 Bad Request\r\n", "VERSION", ""];
    let serving = thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = other.accept().unwrap();
            let mut request = [0; 9];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    fails(
        &address.to_string(),
        "it answers `HTTP/1.1 400 Bad Request`",
    );
    fails(&address.to_string(), "it answers `VERSION`");
    fails(&address.to_string(), "closed the connection");
    serving.join().unwrap();
}
