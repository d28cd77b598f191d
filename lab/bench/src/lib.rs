//! Measurements: engines in process, and servers over the wire, ours beside rivals in one run.
//!
//! * [`engine`]: operations a second, beside the memory's own limit and other crates.
//! * [`working_set`]: the CPHash paper's benchmark, engines side by side.
//! * [`growth`]: the longest request while the index grows, and what the machine alone does ([`machine`]).
//! * [`fill`]: how many items a memory limit holds.
//! * [`full`]: how long sets take when the memory is full.
//! * [`server`]: load on any server that speaks memcached's text protocol.
//! * [`versus`]: servers in turn under the same load.
//! * [`started`]: servers that a run starts and ends, [`cores`]: where they run, and [`os`]: calls to the system, for other
//!   measuring crates too.
//!
//! Lists of operations are made before the clock starts, every answer is checked, and a result is a median over rounds
//! with its spread: machines are shared, and a ratio of two things measured side by side says more than either of them.

pub mod cores;
pub mod engine;
pub mod fill;
pub mod fill_server;
pub mod full;
pub mod growth;
pub mod host;
pub mod limit;
pub mod machine;
pub mod os;
pub mod report;
pub mod server;
pub mod started;
pub mod times;
pub mod versus;
pub mod working_set;

pub use nuthatch_program::Failure;
