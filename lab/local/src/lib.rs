//! How processes of one machine reach a cache, side by side: from a server's memory, through sockets, in the library, and by
//! other programs' clients.
//!
//! ```text
//!   run          for each number of keys: servers (`servers.rs`), the ways to reach them (`ways.rs`); rounds in turn
//!    |
//!   process      a client's process: is ready, is told to begin, says what it found
//!    |
//!   client, python/client.py      the process' own side: one call after the other, or many callers at once
//! ```
//!
//! Each client is a process, as where it is used, and no process is pinned: a call through a socket takes its time from both
//! sides' cores, and a machine has as many as it has.

#![forbid(unsafe_code)]

mod client;
mod found;
mod items;
mod options;
mod process;
mod report;
mod run;
mod servers;
mod socket;
mod ways;

pub use client::{Job, Operation, run as client};
pub use options::Options;
pub use report::{Report, Row, Skipped};
pub use run::run;
