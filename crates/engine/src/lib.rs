//! The seam that every engine stands behind: a batch of borrowed requests in, replies in request order out.
//!
//! * [`Engine`] and [`Handle`]: what an engine is, and a thread's session with it
//! * [`Inspect`] and [`Audit`]: what it shows to those who operate it and to those who check it
//! * [`ConfigError`] and [`LimitError`]: configurations and memory limits that cannot be
//! * [`request`], [`reply`]: what is asked and answered
//! * [`semantics`]: what a request means to the item that is there; every engine shares these rules
//! * [`stats`], [`index_stats`], [`counters`]: what an engine tells about itself, and how threads count
//! * [`number`]: decimal numbers as clients store them

mod any;
mod config_error;
pub mod counters;
mod engine;
pub mod index_stats;
mod inspect;
mod limit;
pub mod number;
pub mod reply;
pub mod request;
pub mod semantics;
pub mod stats;

pub use any::{AnyEngine, AnyHandle, AnyReservation, AnyValue};
pub use config_error::ConfigError;
pub use engine::{Cursor, Engine, Handle, Reservation, Value, Visit, assert_commits};
pub use inspect::{Audit, AuditError, Evicted, Evictions, Footprint, Inspect};
pub use limit::LimitError;
pub use nuthatch_hash::KeyHasher;
pub use nuthatch_sync::clock::{Clock, Time};
pub use reply::{Item, Replies, Reply};
pub use request::{
    Condition, Delta, Expiry, Key, Leave, Op, Read, Removal, Request, Store, StoreMode,
};
