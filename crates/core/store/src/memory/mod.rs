//! The memory in which items lie, whether in size classes or in a log.
//!
//! * [`arena`]: all pages, as one array of [`words`]; [`bytes`]: copies out of it and into it
//! * [`sizes`], [`limits`]: how large pages and items are
//! * [`pool`]: free pages, and the account of all memory
//! * [`recency`]: the bits that mark the items that were used
//! * [`pins`]: large values that stay in place while they are read

pub mod arena;
pub mod bytes;
pub mod limits;
pub mod pins;
pub mod pool;
pub mod recency;
pub mod sizes;
pub mod words;
