//! A model of the threads that send and read for each other (`src/roles.rs`): in every interleaving each call that waits gets its
//! reply. A thread that nobody wakes is a deadlock, which loom reports.
//!
//! A full socket is not part of it: there threads look again after a while, and a model has no time.
//!
//! What runs is the client's own code, over a socket of the model's: a server that answers at once.

#![cfg(loom)]
#![allow(dead_code, unused_imports)] // Of each file the model uses a part.

#[path = "../src/call.rs"]
mod call;
#[path = "../src/connection.rs"]
mod connection;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/input.rs"]
mod input;
#[path = "../src/key.rs"]
mod key;
#[path = "../src/options.rs"]
mod options;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/roles.rs"]
mod roles;
#[path = "../src/sync.rs"]
mod sync;
#[path = "../src/wire/mod.rs"]
mod wire;

pub use error::{CarriedOut, Error};
pub use options::Options;

/// The socket of the model.
mod transport {
    use std::io;
    use std::time::Instant;

    use loom::sync::{Condvar, Mutex};

    /// What a request for nothing and its reply have in bytes.
    const LENGTH: usize = 4;

    #[derive(Debug)]
    pub(crate) struct Transport {
        /// Bytes that the server has not answered yet, and replies that nobody has read yet.
        bytes: Mutex<(usize, usize)>,
        changed: Condvar,
    }

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Ready {
        pub to_read: bool,
        pub to_write: bool,
    }

    impl Transport {
        pub fn new() -> Self {
            Self {
                bytes: Mutex::new((0, 0)),
                changed: Condvar::new(),
            }
        }

        pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.bytes.lock().unwrap();
            state.0 += bytes.len();
            state.1 += state.0 / LENGTH;
            state.0 %= LENGTH;
            self.changed.notify_all();
            Ok(bytes.len())
        }

        pub fn flush(&self) -> io::Result<bool> {
            Ok(true)
        }

        pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
            let mut state = self.bytes.lock().unwrap();
            let replies = std::mem::take(&mut state.1);
            for reply in room.chunks_mut(LENGTH).take(replies) {
                reply.copy_from_slice(b"MN\r\n");
            }
            self.changed.notify_all();
            Ok((replies > 0).then_some(replies * LENGTH))
        }

        /// The server closes nothing.
        pub fn is_over(&self) -> bool {
            false
        }

        pub fn tells_of_room(&self) -> bool {
            false
        }

        pub fn may_have_more(&self, _: usize, _: usize) -> bool {
            false
        }

        pub fn wait(&self, _: Ready, _: Instant) -> io::Result<Ready> {
            let mut state = self.bytes.lock().unwrap();
            while state.1 == 0 {
                state = self.changed.wait(state).unwrap();
            }
            Ok(Ready {
                to_read: true,
                to_write: false,
            })
        }

        pub fn shut_down(&self) {}
    }
}

use std::time::{Duration, Instant};

use connection::Connection;
use loom::sync::Arc;
use loom::thread;
use transport::Transport;
use wire::{Code, Request};

/// How long a call waits.
#[derive(Clone, Copy)]
enum Patience {
    /// Until its reply comes.
    Endless,
    /// Not at all: it gives up when it would have to wait.
    None,
}

fn call(connection: &Connection, patience: Patience) {
    let deadline = match patience {
        Patience::Endless => Instant::now() + Duration::from_secs(1_000_000),
        Patience::None => Instant::now(),
    };
    let replies = connection
        .start(&[Request::Nothing], deadline)
        .and_then(|call| connection.finish(&call, deadline));
    match (replies, patience) {
        (Ok(replies), _) => assert!(replies.len() == 1 && replies[0].code == Code::Nothing),
        (Err(Error::Timeout { .. }), Patience::None) => {}
        (Err(error), _) => panic!("{error}"),
    }
}

/// Threads with a call each, the first of which is the model's own.
fn model(preemptions: usize, requests_max: usize, calls: &'static [Patience]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(move || {
        let mut options = Options::default();
        options.requests_max = requests_max;
        // Nobody is late: the models have no time.
        options.late_max = Duration::from_secs(1_000_000);
        let connection = Arc::new(Connection::new(
            Transport::new(),
            std::sync::Arc::new(options),
        ));
        let (first, others) = calls.split_first().unwrap();
        let threads: Vec<_> = others
            .iter()
            .map(|&patience| {
                let connection = connection.clone();
                thread::spawn(move || call(&connection, patience))
            })
            .collect();
        call(&connection, *first);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

use Patience::{Endless, None as Hasty};

#[test]
fn two_calls_end() {
    model(4, 9, &[Endless, Endless]);
}

#[test]
fn three_calls_end() {
    model(2, 9, &[Endless, Endless, Endless]);
}

#[test]
fn who_gives_up_leaves_nobody_behind() {
    model(2, 9, &[Endless, Endless, Hasty]);
}

#[test]
fn who_waits_for_room_gets_it() {
    model(2, 1, &[Endless, Endless, Hasty]);
}
