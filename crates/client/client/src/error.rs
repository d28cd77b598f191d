//! What can go wrong, in words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::key::BINARY_KEY_MAX;

/// Whether the server may have carried out a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedOut {
    /// Nothing of it was sent.
    No,
    /// It was sent, at least in part, and no reply came.
    Maybe,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key is empty or too long. Nothing was sent.
    Key {
        /// Its length in bytes.
        length: usize,
        /// How long it may be, given the bytes that it has.
        limit: usize,
    },
    /// The value is longer than `value_max`. Nothing was sent.
    Value {
        /// Its length in bytes.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The address or one of its options is invalid.
    Address(String),
    /// There is no connection, and this call does not wait for one. Nothing was sent.
    Down {
        /// The server's address.
        server: Arc<str>,
        /// Why the last attempt failed.
        reason: Arc<str>,
        /// When the next attempt will be made. Zero: it is under way ([`crate::Options::retry_wait`]).
        retry_in: Duration,
    },
    /// The connection ended before the reply came.
    Lost {
        /// Why it ended.
        reason: Arc<str>,
        /// Whether the server may have carried the call out.
        carried_out: CarriedOut,
    },
    /// The reply did not come in time.
    Timeout {
        /// Whether the server may have carried the call out, or may still do so.
        carried_out: CarriedOut,
    },
    /// As many calls wait already as may wait, and the options say not to wait for room. Nothing was sent.
    Full,
    /// The server refused the request, with these words.
    Refused(String),
    /// The value under the key is no number, so it cannot be incremented.
    NotANumber,
    /// The server sent what is no reply to this request. The connection is closed.
    Unexpected(String),
}

impl Error {
    /// Whether the server may have carried out the call that failed.
    pub fn carried_out(&self) -> CarriedOut {
        match self {
            Self::Lost { carried_out, .. } | Self::Timeout { carried_out } => *carried_out,
            Self::Unexpected(_) => CarriedOut::Maybe,
            _ => CarriedOut::No,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |carried_out| match carried_out {
            CarriedOut::No => "the request was not sent",
            CarriedOut::Maybe => "the request may have been carried out",
        };
        match self {
            Self::Key {
                length,
                limit: BINARY_KEY_MAX,
            } => write!(
                out,
                "a key of {length} bytes: one with white space or control characters has 1 to {BINARY_KEY_MAX} bytes"
            ),
            Self::Key { length, limit } => write!(
                out,
                "a key of {length} bytes: a key has 1 to {limit} bytes, and fewer with white space or control characters"
            ),
            Self::Value { length, limit } => {
                write!(
                    out,
                    "a value of {length} bytes, where at most {limit} are allowed"
                )
            }
            Self::Address(reason) => write!(out, "invalid address: {reason}"),
            Self::Down {
                server,
                reason,
                retry_in,
            } => {
                write!(out, "{server} is down: {reason}; the next attempt is ")?;
                match retry_in.is_zero() {
                    true => write!(out, "under way"),
                    false => write!(out, "in {} ms", retry_in.as_millis()),
                }
            }
            Self::Lost {
                reason,
                carried_out,
            } => write!(out, "connection lost: {reason}; {}", after(*carried_out)),
            Self::Timeout { carried_out } => {
                write!(out, "no reply in time; {}", after(*carried_out))
            }
            Self::Full => write!(out, "too many calls wait for this server"),
            Self::Refused(words) => write!(out, "the server refused the request: {words}"),
            Self::NotANumber => write!(out, "the value is not a number"),
            Self::Unexpected(what) => write!(out, "not a reply to this request: {what}"),
        }
    }
}

impl std::error::Error for Error {}
