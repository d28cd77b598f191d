//! A server's memory, which this process reads by itself, and a ring in memory for all else (feature `shm`, on Linux).

#[cfg(not(all(
    feature = "shm",
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
)))]
mod none;
#[cfg(all(
    feature = "shm",
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
mod shared;

#[cfg(not(all(
    feature = "shm",
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
)))]
pub(crate) use none::{IS_POSSIBLE, Memory, SharedEnd, View};
#[cfg(all(
    feature = "shm",
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
pub(crate) use shared::{IS_POSSIBLE, Memory, SharedEnd, View};

/// Why there may be none.
pub(crate) const IMPOSSIBLE: &str = "shm:// needs Linux, and the feature `shm` of this library";
