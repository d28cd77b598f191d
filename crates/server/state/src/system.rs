//! Calls to the operating system: processor time, file descriptors, unacknowledged bytes of sockets, memory that the
//! allocator keeps.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The most rejected connections that are kept at a time until their clients have read why.
pub const REJECTED_MAX: usize = 64;

/// The most clients of the metrics' endpoint at a time.
pub const METRICS_CLIENTS_MAX: usize = 64;

/// Processor time that the process has used: user, system.
pub fn cpu_time() -> Option<(Duration, Duration)> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is a place for one rusage, which getrusage fills when it returns 0.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    let duration =
        |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Some((duration(usage.ru_utime), duration(usage.ru_stime)))
}

/// Memory that the process holds.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Lets the process open `wanted` files, or as many as it may. Returns how many.
pub fn raise_file_limit(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for one rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let before = limit;
    limit.rlim_cur = wanted;
    limit.rlim_max = limit.rlim_max.max(wanted);
    // Only a privileged process may exceed the hard limit. This is tried first.
    for attempt in [
        limit,
        libc::rlimit {
            rlim_cur: before.rlim_max.min(wanted),
            ..before
        },
    ] {
        // SAFETY: `attempt` is a valid rlimit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &attempt) } == 0 {
            return Ok(attempt.rlim_cur);
        }
    }
    Ok(before.rlim_cur)
}

/// Descriptors that the process needs besides its connections.
pub const OTHER_FILES: u64 = 64 + REJECTED_MAX as u64 + METRICS_CLIENTS_MAX as u64;

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
    // Other C libraries than glibc have no such call, and less need of it.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches only what is free, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_known() {
        let before = cpu_time().unwrap();
        assert!(before.0 + before.1 > Duration::ZERO);
    }

    #[test]
    fn a_limit_that_is_high_enough_stays() {
        let now = raise_file_limit(1).unwrap();
        assert!(now > 1);
        assert_eq!(raise_file_limit(now).unwrap(), now);
    }
}
