//! The commands of all protocols: this crate turns the bytes that clients send into requests in a batch, and an
//! engine's replies into bytes. memcached's text, its binary protocol, CPServer's and Redis' have a folder of
//! [`protocols`] each. There are no sockets in this crate.
//!
//! ```text
//!   input bytes -> protocols::run -> context -> batch ==> the engine
//!  output bytes <- output <- answers <- answering      <==
//! ```
//!
//! Reading order: [`turn`](mod@turn) (one connection's part in an iteration), [`work`](mod@work) (how much it may do),
//! [`context`] (what a request can use), [`partial`] (a value that arrives piece by piece), [`protocols`] (the
//! commands), [`batch`], [`executing`] and [`answering`] (to the engine and back), [`answers`] (what is written),
//! `counting` (the statistics), [`output`], [`conversation`] (the log of requests). Imports run in one direction:
//! `protocols` are at the top, and nothing outside of that folder knows them.

pub mod answering;
pub mod answers;
pub mod batch;
pub mod context;
pub mod conversation;
mod counting;
pub mod executing;
mod expiry;
pub mod output;
pub mod partial;
pub mod protocols;
mod tls;
pub mod turn;
pub mod work;
