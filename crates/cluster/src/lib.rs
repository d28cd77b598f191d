//! The distributed store: key-value pairs in the symmetric memory of servers, read and written one-sidedly by clients
//! (SHMEMCache, IPDPS 2017).
mod block;
mod bucket;
mod checksum;
mod classes;
mod client;
mod config;
mod control;
mod engine;
mod layout;
mod message;
mod placement;
mod ring;
mod server;
mod stats;
mod store;

pub use checksum::Checksum;
pub use config::{Config, ConfigError, Fault, Operations};
pub use engine::{Cluster, ClusterHandle, LargeValue, Pending};
pub use placement::server as server_of;
pub use server::Server;
pub use stats::{ClientStats, ServerStats};
pub use store::{Member, in_process};
