//! A memcached-compatible server that drives any Nuthatch engine, chosen when it starts ([`AnyEngine`]): it is
//! compiled once.
//!
//! [`AnyEngine`]: nuthatch_engine::AnyEngine
//!
//! ```text
//!   clients
//!      |  connect
//!  acceptor ---- hands each connection to the worker with the fewest
//!      |                                                                   signals
//!  +---+-------------+------------------+                                     |
//!  worker-0          worker-1           ...         maintenance            Shutdown
//!  poll, read all,   the same, with     |           sweeps, moves memory,  wakes everybody
//!  parse all,        connections of     |           grows the index
//!  ONE batch,        its own            |                |
//!  write all            |               |                |
//!     | Handle          | Handle        | Handle         | Handle
//!  +--+-----------------+---------------+----------------+--+
//!  |                      engine (shared)                   |
//!  +--------------------------------------------------------+
//! ```
//!
//! Each listener has a protocol; connections of all go to the same workers, and their requests into the
//! same batches.
//!
//! No thread waits for another on the way of a request: what they share are the engine, and
//! counters with one writer each.
//!
//! Reading order: [`config`] (what can be set), `server` (what is started), `worker` (the loop), `connection` (one
//! client between two slices, and the drawing of its state), `slice` (one connection's part in an iteration),
//! `protocols` (a folder for each: what requests ask of the engine, and the words of answers), `stage`, `batch` and
//! `answering` (the way there and back), `waiting` and `output` (what is kept of input and output), `account` (what
//! buffers may hold), `conversation` (the log of requests), `live` (what can change while it runs), `watch` (clients
//! that are told what happens), `handover` (a new process takes the place of this one).
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use nuthatch_engine::AnyEngine;
//! use nuthatch_server::{Config, Server, on_signals};
//!
//! fn serve(engine: Arc<AnyEngine>) -> std::io::Result<()> {
//!     let server = Server::start(Config::default(), engine)?;
//!     on_signals(server.stopper())?;
//!     server.join()
//! }
//! ```

mod acceptor;
mod account;
mod answering;
mod batch;
pub mod config;
mod connection;
mod conversation;
mod datagrams;
mod error;
mod handover;
mod holders;
mod keeping;
mod listen;
mod live;
mod maintenance;
mod metrics;
mod output;
mod protocols;
mod rejected;
mod security;
mod server;
mod shared;
mod shutdown;
mod signals;
mod slice;
mod spare;
mod stage;
mod stats;
mod stream;
mod system;
mod waiting;
mod watch;
mod worker;

pub use config::{Config, Keeping, Listen, OnVerbosity, Place, Protocol, TlsSettings, Verify};
pub use error::SettingsError;
pub use listen::Address;
pub use live::Controls;
pub use server::{Server, ServerHandle};
pub use shutdown::Shutdown;
pub use signals::{Signals, on_signals};
pub use system::raise_file_limit;
