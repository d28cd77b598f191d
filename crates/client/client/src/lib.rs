//! A client of servers that speak memcached's meta protocol: memcached from 1.6 on, and Nuthatch.

#![forbid(unsafe_code)]

mod address;
mod attempts;
mod backoff;
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
mod names;
mod near;
mod operation;
mod options;
mod pool;
mod queue;
mod ring;
mod roles;
mod site;
#[cfg(feature = "tokio")]
pub mod tasks;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod wire;

pub use client::Client;
pub use error::{CarriedOut, Error};
pub use key::{BINARY_KEY_MAX, KEY_MAX};
pub use lease::{Compute, ComputeError};
pub use lifetime::Keep;
pub use many::Many;
pub use operation::{Item, Outcome};
pub use options::{Distribution, Login, Options, TlsFiles, WhenFull};

/// The parser of replies, for its fuzz target.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
