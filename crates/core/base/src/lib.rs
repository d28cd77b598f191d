//! What all parts of Nuthatch stand on. It contains no table.
//!
//! * [`hash`]: the hash function of keys, the use of its bits, the sizes of tables, checksums.
//! * [`sync`]: synchronisation between threads.
//! * [`memory`]: mapped memory, and how much of it there may be.
//! * [`spread`]: how full buckets are, and how full a perfect hash would make them.
//! * [`mod@file`]: files by their names.
//! * `sys`: what differs between systems, on which the others stand.
//!
//! This crate is below all crates that keep data, so it is the one that refuses to compile for a machine on which none
//! of them can run.

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!(
    "nuthatch runs on processors with 64-bit addresses, little-endian (x86-64, aarch64): it reserves address space, and \
     lends bytes out of 64-bit words"
);

pub mod file;
pub mod hash;
pub mod memory;
pub mod spread;
pub mod sync;
mod sys;
