//! The client for threads.

use std::convert::Infallible;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use crate::batches::batches;
use crate::calls::calls;
use crate::connection::Connection;
use crate::key::Key;
use crate::lease::{Compute, ComputeError, Leased, OnDrop, Pauses};
use crate::link::Link;
use crate::many::{Known, Many, Parts};
use crate::meta::{self, Answer, Command};
use crate::operation::{self, Item, Lease, Local, Operation, Outcome};
use crate::pool::Pool;
use crate::wire::Mode;
use crate::{Error, Keep, Options};

/// A client of one server or several, for threads.
///
/// All threads share it, by reference or by its clones. It has one connection to each server, on which the calls of all threads
/// travel together: a thread that finds nobody sending sends what waits, and nobody waits for others. A connection is made when a
/// call needs it, and made anew when it ended. A child of `fork` makes its own.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool<Connection, Condvar>>,
}

impl Client {
    calls!(FnOnce; ;);
    batches!(;);

    /// A client of the servers at this address:
    ///
    /// * `tcp://HOST[:PORT][*WEIGHT],…` one server or several; 11211 if no port is named
    /// * `tls://…` the same under TLS; it needs `ca=FILE` (feature `tls`)
    /// * `unix:///PATH` a socket in the file system
    /// * `shm:///PATH` a server of this machine with `--shared PATH`: this process reads its memory, and asks for all else by a ring
    ///   in memory (feature `shm`, on Linux). With `or=unix:///PATH` or `or=tcp://HOST[:PORT]` a server that gives no ring is
    ///   asked there
    ///
    /// Behind `?` there may be options, with `&` between them, by the names in [`Options`] and with times in milliseconds:
    /// `timeout_ms`, `connect_timeout_ms`, `late_max_ms`, `requests_max`, `bytes_max`, `when_full=wait|fail`, `value_max`,
    /// `retry_least_ms`, `retry_most_ms`, `retry_wait_ms`, `eject_after`, `distribution=ketama|ketama_unweighted|rendezvous`, `ca`,
    /// `cert` and `key` (files in PEM), with the feature `near` `near_ms` and `near_bytes`, and `login_file`, whose first line is
    /// `NAME:PASSWORD`.
    ///
    /// Nothing is connected yet. Errors: [`Error::Address`].
    pub fn connect(address: &str) -> Result<Self, Error> {
        Self::connect_with(address, Options::default())
    }

    /// The same, with options that the address does not name.
    pub fn connect_with(address: &str, options: Options) -> Result<Self, Error> {
        let pool = Arc::new(Pool::new(address, options)?);
        Ok(Self { pool })
    }

    /// The same as [`Client::get_or_compute`], for a caller that may have to leave: `go_on` is asked before each pause, of 50 ms
    /// at most, in which this call waits for another client's value. An error of it ends the call.
    pub fn get_or_compute_while<E>(
        &self,
        key: impl AsRef<[u8]>,
        how: Compute,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        self.compute_while(key.as_ref(), how, compute, go_on)
    }

    /// Leaves a place that was kept for a value.
    fn give_up(&self, key: &[u8], cas: u64) {
        let _ = self.run(key, |key| operation::delete(key, Some(cas)));
    }

    fn pause(time: Duration) {
        std::thread::sleep(time);
    }
}
