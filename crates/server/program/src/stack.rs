//! The stack that a program's own work runs on.

/// Bytes of it: address space, of which memory is taken only where it is used. Building and parsing a command line takes most:
/// some 700 KiB where it is not optimised.
const BYTES: usize = 4 << 20;

/// Runs a program's work on a stack whose size does not depend on the limit of the process (`ulimit -s`, `LimitSTACK=`).
/// The thread stays the same: what must run on a process's first thread, or while there is no other, may run in it.
pub fn on_own_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::grow(BYTES, work)
}
