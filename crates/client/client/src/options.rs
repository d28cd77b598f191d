//! How a client behaves: limits and times.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How a client behaves. The address may have the same, by the same names (see [`crate::Client::connect`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a call may take, a second by default. If it makes a connection first, that comes on top.
    pub timeout: Duration,
    /// How long a connection may take to be made, with its login, a second by default.
    pub connect_timeout: Duration,
    /// A connection whose oldest reply is late by more than this is closed: 3 seconds by default.
    pub late_max: Duration,
    /// How many requests may wait for replies on one connection, 4096 by default.
    pub requests_max: usize,
    /// A call that finds so many bytes waiting to be sent on its connection waits for room: 1 MiB by default.
    pub bytes_max: usize,
    /// What a call does that finds no room.
    pub when_full: WhenFull,
    /// The largest value that is sent, or taken from a server: 64 MiB by default.
    pub value_max: usize,
    /// How long no connection is attempted after the first failure, 50 ms by default. It doubles with each failure, and a random
    /// part of up to a half is taken off.
    pub retry_least: Duration,
    /// The longest of these times, 10 seconds by default.
    pub retry_most: Duration,
    /// How long calls wait for a connection to a server that has failed, or whose last replies did not come, from the moment when the
    /// attempt to make one begins: a thread of its own makes it, or a task that waits for it to its end. None, the default, or zero: the
    /// call that comes first makes the attempt, and all wait for it until it ends.
    pub retry_wait: Option<Duration>,
    /// After so many failures in a row the server's keys go to the other servers, until it answers again. 0, the default: never,
    /// because a server that returns has values that are out of date.
    pub eject_after: u32,
    /// Which server has which keys.
    pub distribution: Distribution,
    /// Values that [`crate::Client::get`] has read stay in this process for so long: other clients' changes are seen so much later.
    /// None, the default: they do not.
    #[cfg(feature = "near")]
    pub near: Option<Duration>,
    /// How many bytes of memory they take, 16 MiB by default.
    #[cfg(feature = "near")]
    pub near_bytes: usize,
    /// Name and password, for a server with `-Y`.
    pub login: Option<Login>,
    /// For `tls://`: whom to trust.
    pub tls: TlsFiles,
    /// The calls are those of others, which this program passes on. A server that does so, too, is refused: it might be this
    /// program, or pass them on to it.
    #[doc(hidden)]
    pub passes_on: bool,
}

/// What a call does that finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits for room, within its time.
    #[default]
    Wait,
    /// It fails with [`crate::Error::Full`].
    Fail,
}

/// Which server has which keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// As libmemcached with `KETAMA_WEIGHTED`, and most other clients: each server has some 160 places on a ring, and more of
    /// them the more weight it has.
    #[default]
    Ketama,
    /// As libmemcached with `KETAMA` and its default hash: each server has 100 places on a ring. Weights are an error.
    KetamaUnweighted,
    /// Each key's server is the one whose hash with the key is the highest. Keys are spread more evenly, and no other client
    /// has the same.
    Rendezvous,
}

/// A name and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A password does not belong into a log.
        out.debug_struct("Login")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Files of TLS, all in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of those who sign servers' certificates.
    pub ca: Option<PathBuf>,
    /// This client's certificate, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            late_max: Duration::from_secs(3),
            requests_max: 4096,
            bytes_max: 1 << 20,
            when_full: WhenFull::Wait,
            value_max: 64 << 20,
            retry_least: Duration::from_millis(50),
            retry_most: Duration::from_secs(10),
            retry_wait: None,
            eject_after: 0,
            distribution: Distribution::default(),
            #[cfg(feature = "near")]
            near: None,
            #[cfg(feature = "near")]
            near_bytes: 16 << 20,
            login: None,
            tls: TlsFiles::default(),
            passes_on: false,
        }
    }
}

impl Options {
    /// When a call that begins now has to be through.
    pub(crate) fn deadline(&self) -> Instant {
        deadline(self.timeout)
    }
}

/// The moment after this time. A longer time than a year is a year.
pub(crate) fn deadline(time: Duration) -> Instant {
    Instant::now() + time.min(Duration::from_secs(365 * 24 * 60 * 60))
}
