//! Signals that not all systems have.

use libc::c_int;

/// One that asks a server to stop: the power fails, or the manager of a container stops it.
pub const STOPPING: &[c_int] = &[libc::SIGPWR];

/// Those that mean nothing to a server: those of real time, and SIGSTKFLT, which no system raises.
pub fn meaningless() -> impl Iterator<Item = c_int> {
    // Not every processor's Linux has it; those of this project have.
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).chain([libc::SIGSTKFLT])
}
