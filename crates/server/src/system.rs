//! What only the operating system knows or gives: processor time, file descriptors, room in
//! sockets, memory that the allocator keeps.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Processor time that the process has used: user, system.
pub(crate) fn cpu_time() -> Option<(Duration, Duration)> {
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

/// Lets the process open `wanted` files, or as many as it may; returns how many.
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
    // Above the hard limit only a privileged process may go: it is tried first.
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

/// True if this socket takes output: a good part of its buffer is free. Also if it is broken, which
/// the next use of it will tell.
pub(crate) fn takes_output(socket: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: `poll` is one valid pollfd, and the timeout of 0 makes this return at once.
    unsafe { libc::poll(&mut poll, 1, 0) != 0 }
}

/// Gives the kernel the whole pages among what was freed. The allocator keeps them otherwise, since
/// something in use lies behind them.
pub(crate) fn trim_memory() {
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
