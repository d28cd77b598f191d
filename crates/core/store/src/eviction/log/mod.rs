//! Policies of a log.

pub mod s3_fifo;
