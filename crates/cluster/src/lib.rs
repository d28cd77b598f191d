//! cluster
pub mod block;
pub mod bucket;
pub mod checksum;
pub mod classes;
pub mod config;
pub mod layout;
pub mod placement;
pub mod ring;
