//! lib
#![forbid(unsafe_code)]
pub mod capture;
pub mod classifier;
pub mod key;
mod key_table;
pub mod megaflow;
pub mod packet;
pub mod rules;
