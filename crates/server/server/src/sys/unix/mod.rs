//! Systems like macOS and FreeBSD.

pub mod bound;
pub mod passing;
pub mod signals;
pub mod systemd;
