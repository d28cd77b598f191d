//! The distributed store on any fabric under the checks of every engine.
//!
//! * [`Arena`]: a fabric whose memory is handed out again for each store
//! * [`rounds`]: one PE makes stores and asks them, the first ones serve

#![forbid(unsafe_code)]

mod arena;
pub mod rounds;

pub use arena::Arena;
