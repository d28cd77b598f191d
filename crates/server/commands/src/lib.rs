//! The commands of all protocols: this crate turns the bytes that clients send into requests in a batch, and an
//! engine's replies into bytes. memcached's text, its binary protocol, CPServer's and Redis' have a folder of
//! [`protocols`] each. There are no sockets in this crate.
//!
//! ```text
//!   input bytes -> protocols::run -> stage -> batch  ==> the engine
//!  output bytes <- output <- answers <- answering   <==
//! ```
//!
//! Reading order: [`slice`](mod@slice) (one connection's part in an iteration), [`work`](mod@work) (how much it may do), [`stage`] (what a request can use),
//! [`partial`] (a value that arrives piece by piece), [`protocols`], [`batch`] and [`answering`] (the way there and
//! back), [`output`], [`conversation`] (the log of requests).

pub mod answering;
pub mod answers;
pub mod batch;
pub mod conversation;
mod counting;
pub mod executing;
mod expiry;
pub mod output;
pub mod partial;
pub mod protocols;
pub mod slice;
pub mod stage;
mod tls;
pub mod work;
