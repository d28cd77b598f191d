//! What the engines share to stay safe across threads. Knows no table.
//!
//! * [`shim`]: the standard library's atomics, or loom's under `--cfg loom`.
//! * [`stripes`]: MemC3's striped version counters, which are also the writers' locks.
//! * [`versioned`]: reads of words between two versions, beside a writer.
//! * [`ring`]: CPHash's message rings, the array of buffers and the single buffer.
//! * [`wait`]: spin, then yield, then park.
//! * [`lease`]: what one thread owns for long and hands over.
//! * [`spinlock`]: a lock that spins, then yields, then parks.
//! * [`clock`]: coarse time, handed to every operation as an argument.

#![forbid(unsafe_code)]

pub mod clock;
pub mod lease;
pub mod mutex;
pub mod ring;
pub mod shim;
pub mod spinlock;
pub mod stripes;
pub mod versioned;
pub mod wait;
