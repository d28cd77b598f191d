//! How long a set of 32 bytes takes by a ring pair and by a unix socket of the same server, in turn: when the client asks
//! again at once, and when both sides have slept before.
//!
//! ```text
//! cargo run --release -p nuthatch-direct --example ring
//! ```

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_direct::Direct;
use nuthatch_engine::Engine;
use nuthatch_ring::{End, Want};
use nuthatch_server::{Config, Listen, Server};

const SET: &[u8] = b"set key 0 0 32\r\n0123456789abcdef0123456789abcdef\r\n";
const STORED: &[u8] = b"STORED\r\n";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (shared, unix) = (folder.path().join("shared"), folder.path().join("unix"));
    let engine: Arc<Cuckoo<EightWay>> = Arc::new(Cuckoo::new(CuckooConfig {
        memory_limit: 64 << 20,
        shared: true,
        ..CuckooConfig::default()
    })?);
    let config = Config {
        listeners: vec![Listen::unix(unix.clone(), 0o700)],
        shared: Some(shared.clone()),
        ..Config::default()
    };
    let server = Server::start(config, engine.any())?;
    let (_direct, mut ring) = Direct::connect_with_ring(&shared, Duration::from_secs(5))?;
    let mut socket = UnixStream::connect(&unix)?;
    for (name, awake, sets, pause) in [
        (
            "at once, the client looks for 50 us",
            Duration::from_micros(50),
            20_000,
            Duration::ZERO,
        ),
        (
            "at once, the client sleeps",
            Duration::ZERO,
            20_000,
            Duration::ZERO,
        ),
        (
            "after 1 ms, both have slept",
            Duration::ZERO,
            500,
            Duration::from_millis(1),
        ),
    ] {
        let (mut by_ring, mut by_socket) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            by_ring.extend(measure(sets / 5, pause, || by_end(&mut ring, awake)));
            by_socket.extend(measure(sets / 5, pause, || {
                socket.write_all(SET).expect("the server is there");
                let mut answer = [0; STORED.len()];
                socket.read_exact(&mut answer).expect("it answers");
                assert_eq!(answer, STORED);
            }));
        }
        let told = |mut times: Vec<u64>| {
            times.sort_unstable();
            (times[times.len() / 2], times[times.len() * 99 / 100])
        };
        let (ring, socket) = (told(by_ring), told(by_socket));
        println!(
            "{name}: ring p50 {} p99 {} ns, unix socket p50 {} p99 {} ns, ratio of medians {:.2}",
            ring.0,
            ring.1,
            socket.0,
            socket.1,
            socket.0 as f64 / ring.0 as f64
        );
    }
    server.stopper().request();
    drop((ring, socket));
    server.join()?;
    Ok(())
}

fn measure(sets: usize, pause: Duration, mut set: impl FnMut()) -> Vec<u64> {
    let one = |_| {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let begun = Instant::now();
        set();
        begun.elapsed().as_nanos() as u64
    };
    (0..sets).map(one).collect()
}

/// A set by the ring; the client looks for its answer for a while before it sleeps.
fn by_end(end: &mut End, awake: Duration) {
    end.write_all(SET).expect("there is room");
    let mut answer = [0; STORED.len()];
    let mut got = 0;
    let begun = Instant::now();
    while got < answer.len() {
        if !end.has_input() {
            if begun.elapsed() < awake {
                std::hint::spin_loop();
            } else if end.may_sleep(Want::Bytes) {
                let mut bells = [PollFd::new(end.bell(), PollFlags::POLLIN)];
                poll(&mut bells, PollTimeout::NONE).expect("the bell is there");
            }
            continue;
        }
        match end.read(&mut answer[got..]) {
            Ok(count) => got += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(answer, STORED);
}
