//! The distributed store on any fabric under the checks of every engine.
//!
//! * [`Arena`]: a fabric whose memory is handed out again for each store
//! * [`histories`]: several PEs use a store at once, and what they saw is judged together
//! * [`rounds`]: one PE makes stores and sends requests, the first ones serve

#![forbid(unsafe_code)]

mod arena;
pub mod histories;
pub mod rounds;

pub use arena::Arena;
