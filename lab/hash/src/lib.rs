//! Hash functions of other programs, real keys, and how these spread over a hash table. The engines have one function of
//! their own, in `nuthatch_base::hash`.
//!
//! * [`collect`]: keys of this machine's file systems, as the tables of the Linux paper have them.
//! * [`functions`]: the Linux paper's and later ones, by name.
//! * [`key`]: the keys that they take; [`table`]: the tables that they spread keys over.
//! * [`distribution`]: how they spread, and what a search costs.
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
pub mod distribution;
pub mod figures;
pub mod format;
pub mod functions;
mod kernel_size;
pub mod key;
mod keys;
pub mod live;
mod measure;
mod rank;
mod report;
pub mod size;
mod source;
pub mod table;

pub use nuthatch_program::Failure;
