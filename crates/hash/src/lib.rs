//! Where a key goes.
//!
//! [`KeyHasher`] turns a key into 64 bits; [`split`] is the only place that cuts those bits into a
//! bucket, a tag and a partition, so that no two parts of a table are ever taken from the same
//! bits by accident; [`sizing`] tells how many buckets a table should have. This crate knows no
//! table.
//!
//! With the feature `analysis` (on by default; the engines do without) it also knows the functions
//! that others use ([`functions`]) and how keys spread under them ([`distribution`], which is to be had
//! alone).

#![forbid(unsafe_code)]

#[cfg(feature = "distribution")]
pub mod distribution;
mod function;
#[cfg(feature = "analysis")]
pub mod functions;
#[cfg(feature = "analysis")]
pub mod key;
pub mod sizing;
pub mod split;
#[cfg(feature = "analysis")]
pub mod table;

pub use function::KeyHasher;
