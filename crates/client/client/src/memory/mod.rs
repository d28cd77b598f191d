//! A server's memory, which this process reads by itself (feature `shm`, on Linux).

#[cfg_attr(
    all(
        feature = "shm",
        target_os = "linux",
        not(any(loom, miri, nuthatch_unix, nuthatch_portable))
    ),
    path = "shared.rs"
)]
#[cfg_attr(
    not(all(
        feature = "shm",
        target_os = "linux",
        not(any(loom, miri, nuthatch_unix, nuthatch_portable))
    )),
    path = "none.rs"
)]
mod system;

pub(crate) use system::{ForkMark, Memory, View};

/// Whether this build reads memory.
pub(crate) const IS_POSSIBLE: bool = cfg!(all(
    feature = "shm",
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
));

/// Why not.
pub(crate) const IMPOSSIBLE: &str = "shm:// needs Linux, and the feature `shm` of this library";
