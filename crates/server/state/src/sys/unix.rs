//! Systems like macOS and FreeBSD, which tell these things by other calls, if at all.

use std::os::fd::BorrowedFd;

/// Not known: memory that the process holds.
pub fn resident_bytes() -> Option<u64> {
    None
}

/// Not known: bytes of the machine's memory.
pub fn memory_of_machine() -> Option<u64> {
    None
}

/// Not known: the most connections that the kernel queues for a listener.
pub fn backlog_max() -> Option<u32> {
    None
}

/// Not known: bytes that were written to this socket and that the other side has not acknowledged.
pub fn untaken(_socket: BorrowedFd<'_>) -> Option<usize> {
    None
}

/// The allocator is left to itself.
pub fn trim_memory() {}
