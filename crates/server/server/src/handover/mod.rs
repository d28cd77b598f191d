//! Handover: a new process takes the listening sockets and the items of a running one, and no client is refused.
//!
//! ```text
//!  successor                               the running server
//!   "nuthatch handover 2"     ------->      is it of the same user? of this version?
//!                             <-------      "socket NAME" with its descriptor, for each; "lock FILE" of -e;
//!                                         "alive"; "end"
//!   binds what else it needs
//!   "ready"                   ------->      accepts no more, answers what it has read, closes its connections
//!                             <-------      all items, as a snapshot
//!   "taken"                   ------->
//!                             <-------      "go"
//!   serves                                  ends
//! ```
//!
//! Both processes hold the sockets, so clients that connect meanwhile wait in the kernel's queue until either process
//! accepts them. Until the successor has all items and says so, the running server has lost nothing: if the successor
//! fails, refuses, falls silent or is too slow, the running server goes on where it was. After "go" only the successor
//! serves. A side that is to stop breaks off, but not when "taken" is under way: the other side then counts on it.
//!
//! If the running server is killed meanwhile, the successor alone has the sockets. It then serves without the items:
//! some of them may have come, but the running server may have gone on for a moment and changed them. "alive" comes with
//! a pipe whose other end only the running server has, so that the successor can tell a process that ended from one that
//! gave up.
//!
//! * `wire`: messages, and descriptors that go with them.
//! * [`pause`](nuthatch_state::pause): how the running server stops serving, and goes on.
//! * [`giving`], [`taking`]: the two sides.

pub(crate) mod giving;
pub(crate) mod taking;
mod wire;

use std::os::fd::OwnedFd;
use std::time::Duration;

/// A successor's first message. The number is the version of this protocol and of the snapshot's format.
pub(crate) const HELLO: &str = "nuthatch handover 2";

/// The same to a server of an earlier version, which refuses the other: this version reads what that one writes.
const HELLO_1: &str = "nuthatch handover 1";

/// How long one side waits for the other, in all, while its own clients are served or none are.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the running server waits for a successor to take the items, besides the time of all bytes at [`RATE`]: its
/// clients wait meanwhile.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(10);

/// Bytes of items that must go through in a second. A slow machine does several times as much.
const RATE: u64 = 32 << 20;

/// The message that comes with a pipe of which the sender has the only end to write to.
const ALIVE: &str = "alive";

/// The name of the socket at which successors ask for a handover.
const CONTROL: &str = "control";

/// The name of the socket that serves metrics.
pub(crate) const METRICS: &str = "metrics";

/// A socket that another process may take, and its name.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) socket: OwnedFd,
}
