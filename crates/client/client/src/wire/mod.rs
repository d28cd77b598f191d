//! Memcached's meta protocol: requests to bytes, bytes to replies. No I/O.

mod reply;
mod request;

pub(crate) use reply::{Code, Details, LINE_MAX, Left, Reply, parse};
pub(crate) use request::{Mode, Request, Want};
