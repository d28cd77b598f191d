//! `refresh_certs`: a thread of its own reads the files.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use super::fixture::{Fixture, Wants, config};
use nuthatch_server::{Config, NewestTls, TlsSettings};

/// A server of one worker, and the two ends of its readings: each tells that it begins, and waits until it may go on.
fn slow() -> (Fixture, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/tls");
    let (begin, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let goes_on = Arc::new(Mutex::new(goes_on));
    let slow = Config {
        threads: NonZeroUsize::MIN,
        tls: Some(TlsSettings {
            chain_cert: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            ..TlsSettings::default()
        }),
        newest_tls: NewestTls::new(move || {
            // Both ends are gone when the test is over.
            let _ = begin.send(());
            let _ = goes_on.lock().unwrap().recv();
            None
        }),
        ..config()
    };
    (Fixture::with(slow, Wants::default()), begun, go_on)
}

/// Class of bug: a worker reads files, and all its connections wait.
#[test]
fn only_who_asks_for_a_reading_waits_for_it() {
    let (server, begun, go_on) = slow();
    let (mut first, mut other) = (server.client(), server.client());
    let (mut second, mut third) = (server.client(), server.client());
    first.send("refresh_certs\r\nversion\r\n");
    begun.recv().unwrap();
    // One that asks meanwhile and closes is forgotten, and what one sends behind it is not read before its end.
    let mut gone = server.client();
    gone.send("refresh_certs\r\n");
    drop(gone);
    second.send("refresh_certs\r\n");
    third.send("refresh_certs\r\n");
    let gets = "get none\r\n".repeat(1000);
    for _ in 0..50 {
        second.send(&gets);
    }
    other.until("curr_connections", |connections| connections <= 5);
    other.ask("get none\r\n", "END\r\n");
    assert!(!first.has_input() && !second.has_input() && !third.has_input());
    go_on.send(()).unwrap();
    first.expect("OK\r\nVERSION ");
    begun.recv().unwrap();
    other.ask("get none\r\n", "END\r\n");
    assert!(!second.has_input() && !third.has_input());
    go_on.send(()).unwrap();
    second.expect("OK\r\n");
    second.expect("END\r\n".repeat(50_000));
    third.expect("OK\r\n");
    // Both had waited for the same reading.
    assert!(begun.try_recv().is_err());
}

/// Class of bug: a file that cannot be read now, of a disk that hangs, keeps a server from its end.
#[test]
fn a_stop_waits_for_no_reading() {
    let (server, begun, _go_on) = slow();
    let mut client = server.client();
    client.send("refresh_certs\r\n");
    begun.recv().unwrap();
    server.stop();
    client.expect_end();
}
