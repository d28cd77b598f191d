//! Memcached's meta protocol: requests to bytes, bytes to replies. No I/O.

mod reply;
mod request;

#[cfg(any(fuzzing, test))]
pub(crate) use reply::LINE_MAX;
pub(crate) use reply::{Code, Details, Left, NO_META, Reply, parse};
pub(crate) use request::{Mode, Request, Want};
