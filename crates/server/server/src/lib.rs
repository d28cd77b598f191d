//! A memcached-compatible server that drives any Nuthatch engine. The engine is chosen at the start ([`AnyEngine`]), so
//! the server is compiled once.
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
//! Each listener has a protocol. Connections of all protocols go to the same workers, and their requests into the same
//! batches.
//!
//! No thread waits for another on the path of a request: the threads share only the engine, and counters with one
//! writer each.
//!
//! This crate has the threads and the sockets. It builds on these crates:
//!
//! * `nuthatch-commands`: from bytes to requests in a batch, and from replies to bytes; memcached's commands;
//! * `nuthatch-redis`: Redis' commands;
//! * `nuthatch-settings`: each setting, declared once ([`config`]);
//! * `nuthatch-state`: the state that all threads share: counters, metrics, watchers;
//! * `nuthatch-security`: which clients may use the server.
//!
//! Reading order: `server` (what is started), `worker` (the loop), `protocols` (which protocol a connection
//! speaks), `connection` (one client between two turns, and the
//! drawing of its state), `pending_input` (input that was not used up), `acceptor`, `listen`, `handover` (a new process
//! takes the place of this one).
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
mod connection;
mod datagrams;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod greeting;
mod handover;
mod holders;
mod leftovers;
mod listen;
mod maintenance;
mod metrics;
mod pending_input;
mod persistence;
mod pool;
mod port_file;
mod protocols;
mod rejected;
mod server;
mod sharing;
mod signals;
mod sys;
mod threads;
mod unix_path;
mod watchdog;
mod worker;

pub use listen::bind_each;
pub use nuthatch_security::SettingsError;
pub use nuthatch_security::ciphers::{Ciphers, UnknownCipher};
pub use nuthatch_settings::address;
pub use nuthatch_settings::config::{
    self, Actions, By, Config, Listen, ListenAddress, NewestTls, OnVerbosity, Persistence,
    Protocol, TlsSettings, Verify,
};
pub use nuthatch_settings::{self as settings, user};
pub use nuthatch_state::limits;
pub use nuthatch_state::live::Controls;
pub use nuthatch_state::shutdown::Shutdown;
pub use nuthatch_state::system::{OTHER_FILES, raise_file_limit};
pub use nuthatch_state::telemetry::Address;
pub use server::{Server, ServerHandle};
pub use signals::{Signals, ignore_meaningless, on_signals};
pub use sys::systemd;
