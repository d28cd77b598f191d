//! Linux.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Memory that the process holds.
pub fn resident_bytes() -> Option<u64> {
    bytes_of_line("/proc/self/status", "VmRSS:")
}

/// Bytes of the machine's memory.
pub fn memory_of_machine() -> Option<u64> {
    bytes_of_line("/proc/meminfo", "MemTotal:")
}

/// The bytes that a line of this file tells in kibibytes.
fn bytes_of_line(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The most connections that the kernel queues for a listener, if it tells.
pub fn backlog_max() -> Option<u32> {
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    text.trim().parse().ok()
}

/// Bytes that were written to this TCP socket and that the other side has not acknowledged. `None` if the
/// kernel does not tell.
pub fn untaken(socket: BorrowedFd<'_>) -> Option<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ stores one int at the place it is given, which is `bytes`.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if status == 0 {
        usize::try_from(bytes).ok()
    } else {
        None
    }
}

/// Returns whole pages of freed memory to the kernel. The allocator keeps them otherwise, because memory behind them is
/// in use.
pub fn trim_memory() {
    // musl has no such call, and less need of it.
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches only what is free, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_its_numbers() {
        let (process, machine) = (resident_bytes().unwrap(), memory_of_machine().unwrap());
        assert!(0 < process && process < machine);
        assert!(backlog_max().unwrap() > 0);
    }
}
