//! The engine interface, which every engine implements: a batch of borrowed requests in, replies in request order out.
//!
//! * [`Engine`] and [`Handle`]: an engine, and a thread's session with it
//! * [`Inspect`] and [`Audit`]: the state that it shows to its operators and to its tests
//! * [`settings`]: the settings that every engine has
//! * [`ConfigError`] and [`LimitError`]: configurations and memory limits that are not possible
//! * [`request`], [`reply`]: the requests and their answers
//! * [`semantics`]: the effect of a request on the present item; every engine shares these rules
//! * [`sharing`], [`hints`]: memory that other processes read, and what they tell of their use
//! * [`stats`], [`index_stats`], [`counters`]: an engine's statistics, and the counters of its threads
//! * [`number`]: decimal numbers as clients store them

mod any;
mod config_error;
pub mod counters;
mod engine;
pub mod hints;
pub mod index_stats;
mod inspect;
mod limit;
pub mod namespace;
pub mod number;
pub mod reply;
pub mod request;
pub mod semantics;
pub mod settings;
pub mod sharing;
pub mod stats;

pub use any::{AnyEngine, AnyHandle, AnyReservation, AnyValue, has_unwound};
pub use config_error::ConfigError;
pub use engine::{Cursor, Engine, Handle, Reservation, Value, Visit, assert_commits};
pub use inspect::{Audit, AuditError, Evicted, Evictions, Footprint, Inspect};
pub use limit::LimitError;
pub use nuthatch_base::hash::KeyHasher;
pub use nuthatch_base::sync::clock::{
    Clock, Present, TICK, Time, Wall, boot, note_sleep, since_boot,
};
pub use reply::{Item, Replies, Reply};
pub use request::{
    Condition, Delta, Expiry, Key, Leave, Op, Read, Removal, Request, Store, StoreMode, TouchIf,
};
pub use settings::CommonSettings;
pub use sharing::Sharing;
