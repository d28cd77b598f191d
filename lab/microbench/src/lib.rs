//! Measurements of tables by themselves, with no engine or server around them.
//!
//! * [`memc3`]: the tables and caches that the MemC3 paper compares.
//! * [`directory`]: the distributed store's pointer directory beside one on the flow cache's layout.

#![forbid(unsafe_code)]

pub mod directory;
pub mod memc3;
