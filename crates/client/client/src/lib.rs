//! A client of servers that speak memcached's meta protocol: memcached from 1.6 on, and Nuthatch.
//!
//! [`Client`] is for threads, `tasks::Client` (feature `tokio`) for tasks. Both have one connection to each server, on which all
//! calls travel together, without being told and without waiting for each other.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! let client = nuthatch_client::Client::connect("tcp://127.0.0.1:11211")?;
//! client.set("key", "value", Duration::from_secs(60))?;
//! assert_eq!(client.get("key")?, Some(b"value".to_vec()));
//! # Ok::<(), nuthatch_client::Error>(())
//! ```
//!
//! # How it works
//!
//! ```text
//!   Client, tasks::Client   calls (`calls.rs`: written once for both), operations and what replies mean (`operation.rs`)
//!            |
//!          pool             which server has a key (`ring.rs`), and who is passed over; what its memory answers (`memory`)
//!            |
//!       link, attempts      a connection, another one after it, pauses in between (`backoff.rs`); a child's own (`process.rs`)
//!            |
//!        connection         who sends and reads: callers' own threads (`roles.rs`), or two tasks
//!            |
//!          queue            requests as bytes, calls in the order of their replies
//!            |
//!      transport, wire      a socket that never waits (`socket.rs`), or a ring in memory; the protocol
//! ```

#![forbid(unsafe_code)]

mod address;
mod aside;
mod attempts;
mod backoff;
mod batches;
mod call;
mod calls;
mod client;
mod connection;
mod error;
mod input;
mod key;
mod lease;
mod lifetime;
mod link;
mod many;
mod memory;
pub mod meta;
mod names;
mod near;
mod operation;
mod options;
mod pool;
mod process;
mod queue;
mod ring;
mod roles;
mod site;
mod socket;
mod sync;
#[cfg(feature = "tokio")]
pub mod tasks;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod way;
mod wire;

pub use client::Client;
pub use error::{CarriedOut, Error};
pub use key::{BINARY_KEY_MAX, KEY_MAX};
pub use lease::{Compute, ComputeError, Leased};
pub use lifetime::Keep;
pub use many::Many;
pub use operation::{Item, Local, Outcome};
pub use options::{Distribution, Login, Options, TlsFiles, WhenFull};

/// The parser of replies, for its fuzz target.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;

/// The examples of the document are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/clients.md")]
struct Document;
