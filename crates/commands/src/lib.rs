//! From the bytes that clients send to requests in a batch, and from an engine's replies to bytes: memcached's text, its
//! binary protocol, CPServer's and Redis', a folder of [`protocols`] each. Sockets are not known here.
//!
//! ```text
//!   input bytes -> slice -> protocols::step -> stage -> batch  ==> the engine
//!  output bytes <- output <- protocols (Answers) <- answering <==
//! ```
//!
//! Reading order: [`slice`](mod@slice) (one connection's part in an iteration), [`stage`] (what a request can reach),
//! [`protocols`], [`batch`] and [`answering`] (the way there and back), [`output`], [`conversation`] (the log of requests).

pub mod answering;
pub mod batch;
pub mod conversation;
pub mod executing;
pub mod output;
pub mod protocols;
pub mod slice;
pub mod stage;
