//! Linux.

pub mod bound;
pub mod passing;
pub mod signals;
pub mod systemd;
