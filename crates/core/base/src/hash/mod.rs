//! The hash function of keys, and the use of its bits; and a checksum of content.
//!
//! [`KeyHasher`] turns a key into 64 bits. [`split`] is the only place that cuts those bits into a bucket, a tag and a
//! partition, so that no two parts of a table are ever taken from the same bits by accident. [`Checksum`] is for what is
//! longer than a key. [`sizing`] computes how many buckets a table should have. [`random`] has numbers for tables that
//! need any. This module contains no table.

#![forbid(unsafe_code)]

mod checksum;
mod function;
pub mod random;
pub mod sizing;
pub mod split;

pub use checksum::Checksum;
pub use function::KeyHasher;
