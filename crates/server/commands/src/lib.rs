//! What the commands of all protocols share: requests in a batch on their way to the engine, and the engine's replies on
//! their way to bytes. Above it are the protocols: [`memcached`](mod@memcached)'s text, its [`binary`] one, and CPServer's
//! ([`cpserver`]) have a folder each here, Redis' is the crate `nuthatch-redis`. `nuthatch-server` chooses among them. There
//! are no sockets in this crate.
//!
//! ```text
//!   input bytes -> a protocol's step -> context -> batch ==> the engine
//!  output bytes <- output <- answers <- answering         <==
//! ```
//!
//! Reading order: [`turn`](mod@turn) (one connection's part in an iteration), [`work`](mod@work) (how much it may do),
//! [`context`] (what a request can use), [`partial`] (a value that arrives piece by piece), the protocols (the commands),
//! [`batch`], [`executing`] and [`answering`] (to the engine and back), [`answers`] (what is written), [`counting`] (the
//! statistics), [`output`], [`conversation`] (the log of requests). Imports run in one direction: the protocols are at the
//! top, and nothing outside of their folders knows them, but for the answers of each in [`answers`].

pub mod answering;
pub mod answers;
pub mod batch;
pub mod binary;
pub mod context;
pub mod conversation;
pub mod counting;
pub mod cpserver;
pub mod executing;
pub mod expiry;
pub mod memcached;
pub mod output;
pub mod partial;
pub mod tls;
pub mod turn;
pub mod work;
