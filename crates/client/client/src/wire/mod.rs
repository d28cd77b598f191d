//! Memcached's meta protocol: requests to bytes, bytes to replies. No I/O.

mod command;
mod reply;
mod request;

pub use command::{Command, Flags, Verb};
#[cfg(any(fuzzing, test))]
pub(crate) use reply::LINE_MAX;
pub use reply::Left;
pub(crate) use reply::{Code, Details, NO_META, Reply, parse};
pub(crate) use request::{Mode, Request, Want};
