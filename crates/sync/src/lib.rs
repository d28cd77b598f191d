//! What the engines share to stay safe across threads. Knows no table.
//!
//! * [`shim`]: the standard library's atomics, or loom's under `--cfg loom`.
//! * [`stripes`]: MemC3's striped version counters, which are also the writers' locks.
//! * [`spinlock`]: a lock that spins, then yields, then parks.
//! * [`clock`]: coarse time, handed to every operation as an argument.

#![forbid(unsafe_code)]

pub mod clock;
pub mod shim;
pub mod spinlock;
pub mod stripes;
