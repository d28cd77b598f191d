//! The shim: the standard library, or loom's model of it under `--cfg loom`.

#[cfg(not(loom))]
mod real {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use std::sync::{Condvar, Mutex, MutexGuard};
    pub use std::thread::yield_now;

    /// One turn of a short wait: busy at first, later it yields the core.
    #[inline]
    pub fn spin(turn: u32) {
        if turn < 64 {
            std::hint::spin_loop();
        } else {
            yield_now();
        }
    }
}

#[cfg(loom)]
mod real {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use loom::thread::yield_now;

    /// Tells loom that the waiting thread cannot go on by itself.
    pub fn spin(_turn: u32) {
        loom::thread::yield_now();
    }
}

pub use real::*;
