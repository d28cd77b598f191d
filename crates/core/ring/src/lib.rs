//! A pair of byte streams between two processes, in memory that both write: a socket without the kernel.
//!
//! * [`stream`]: one direction: a ring of bytes, its [`Producer`] and its [`Consumer`].
//! * [`sleep`]: how one side waits for the other.
//! * [`End`]: both directions and the bell, as one of the two processes has them.
//! * [`Served`], [`SharedEnd`]: an end as the server has it, and as the threads of a client share it.
//!
//! ```text
//!  word 0     16        32        48        64           80           96 ...               96 + BYTES / 8
//!  | tail of  | head of | tail of | head of | the server | the client | bytes to the       | bytes to the
//!  | to the server      | to the client     | sleeps     | sleeps     | server             | client
//! ```
//!
//! Each word of the first six has two cache lines of its own, because the processor fetches lines in pairs.
//!
//! The models of it are in `lab/models/tests/loom/ring.rs`.
//!
//! Neither side believes the other. What it needs of its own, it keeps in its own memory; what the other claims is
//! checked, and a claim that cannot be true is the end ([`Broken`]).

#[cfg(all(
    unix,
    not(all(
        target_os = "linux",
        not(any(loom, miri, nuthatch_unix, nuthatch_portable))
    ))
))]
mod absent;
#[cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
mod end;
#[cfg(unix)]
mod served;
#[cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
mod shared_end;
pub mod sleep;
pub mod stream;

use std::fmt;

#[cfg(all(
    unix,
    not(all(
        target_os = "linux",
        not(any(loom, miri, nuthatch_unix, nuthatch_portable))
    ))
))]
pub use absent::{End, Offer};
#[cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
pub use end::{BYTES, End, Offer};
#[cfg(unix)]
pub use served::Served;
#[cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
pub use shared_end::SharedEnd;
pub use sleep::{Sleep, Want};
pub use stream::{Consumer, Producer};

/// Words from one of the shared counters to the next.
pub const APART: usize = if cfg!(loom) { 1 } else { 16 };

/// Words in front of the bytes of both directions.
pub const HEAD: usize = 6 * APART;

/// The other side claims what cannot be true: that it has written more than there is room for, or has taken back what it
/// had written or read. Nothing more is read from it or written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the other side of the ring in shared memory breaks its protocol")
    }
}

impl std::error::Error for Broken {}

/// Which of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that made the memory.
    Server,
    /// The one that was let in.
    Client,
}

impl Side {
    /// The number of the ring that it writes.
    fn writes(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
