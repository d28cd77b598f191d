//! Load of a workload on a real server over sockets, beside rivals in turn.
//!
//! ```text
//!  options            what was typed, checked
//!     |  run          servers started; rounds in turn; what was measured is kept if one stops
//!     |   |  round    the threads of one round on one server
//!     |   |   |  course        which action is due when: closed, or open by `Arrivals`
//!     |   |   |  client        the connections of a thread: sends what is due, follows up misses
//!     |   |   |    connection  bytes of one socket, and the requests that wait for answers
//!     |   |   |      wire      requests and answers of memcached's protocol and Redis'
//!     |   |   v
//!     |   |  tally    what was answered, and how long it took from the moment it was due
//!     v
//!  report             medians and spreads over rounds
//! ```
//!
//! In an open load a request's latency counts from the moment at which it should have been sent, not from that at which it
//! could be. A server that stands still delays all requests due meanwhile, and each of them shows it. (A load that waits for
//! answers before it asks again sends nothing meanwhile and sees one slow request: coordinated omission.)

#![forbid(unsafe_code)]

mod client;
mod connection;
mod content;
mod course;
mod items;
mod options;
mod report;
mod round;
mod run;
mod tally;
mod wire;

pub use options::Options;
pub use report::{Latency, Report, Side};
pub use run::run;
