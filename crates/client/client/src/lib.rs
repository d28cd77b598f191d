//! A client of servers that speak memcached's meta protocol: memcached from 1.6 on, and Nuthatch.

#![forbid(unsafe_code)]

mod error;
mod key;
mod lifetime;
mod wire;

pub use error::{CarriedOut, Error};
pub use key::{BINARY_KEY_MAX, KEY_MAX};
pub use lifetime::Keep;

/// The parser of replies, for its fuzz target.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
