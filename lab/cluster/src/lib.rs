//! Fabrics, and the distributed store on any fabric, under every check.
//!
//! * [`fabric`]: fabrics under examination, with nothing on top of them
//! * [`Arena`]: a fabric whose memory is handed out again for each store
//! * [`histories`]: several PEs use a store at once, and what they saw is judged together
//! * [`rounds`]: one PE makes stores and sends requests, the first ones serve

#![forbid(unsafe_code)]

mod arena;
pub mod fabric;
pub mod histories;
pub mod rounds;

pub use arena::Arena;
