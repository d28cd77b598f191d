//! Synchronisation between threads, for all engines. It contains no table.
//!
//! * [`shim`]: the standard library's atomics, or loom's under `--cfg loom`.
//! * [`stripes`]: MemC3's striped version counters, which are also the writers' locks.
//! * [`versioned`]: reads of words between two versions, beside a writer.
//! * [`quiescence`]: a wait until a visitor has left what a notice takes away.
//! * [`ring`]: CPHash's message rings, the array of buffers and the single buffer.
//! * [`wait`]: spin, then yield, then park.
//! * [`lease`]: a value that one thread owns for long and hands over.
//! * [`spinlock`]: a lock that spins, then yields, then parks.
//! * [`counter`]: a number with one writer and many readers.
//! * [`clock`]: coarse time, handed to every operation as an argument.

//!
//! This crate is below all crates that keep data, so it is the one that refuses to compile for a machine on which none
//! of them can run.

#![forbid(unsafe_code)]

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
)))]
compile_error!(
    "nuthatch runs on Linux with 64-bit addresses, little-endian (x86-64, aarch64): it reserves address space, asks for \
     huge pages and reads the coarse clock as Linux offers them, and lends bytes out of 64-bit words"
);

pub mod clock;
pub mod counter;
pub mod lease;
pub mod mutex;
pub mod quiescence;
pub mod ring;
pub mod shim;
pub mod spinlock;
pub mod stripes;
pub mod versioned;
pub mod wait;
