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

#![forbid(unsafe_code)]

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
