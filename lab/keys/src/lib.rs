//! Collects real keys, and analyses how they spread over a hash table.
//!
//! * [`collect`]: keys of this machine's file systems, as the tables of the Linux paper have them.
//! * [`analyze`]: which function and which table size suit a file of keys, and why.
//! * [`size`]: how many buckets each rule gives a machine.
//! * [`live`]: the histogram of a running server's index.
//! * [`figures`]: the paper's histograms and tables, in kind.
//!
//! A key file is text, one key a line ([`mod@format`]); it is read as a stream, so that a collector and an
//! analysis can be joined by a pipe.

mod address;
pub mod analyze;
mod bucket_sizes;
pub mod collect;
pub mod figures;
pub mod format;
mod kernel_size;
mod keys;
pub mod live;
mod measure;
mod rank;
mod report;
pub mod size;
mod source;

pub use nuthatch_program::Failure;
