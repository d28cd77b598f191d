//! Calls to the operating system: processor time, file descriptors, and what only some systems tell.

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use crate::sys::{resident_bytes, trim_memory, untaken};

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

/// Lets the process open `wanted` files, or as many as it may. Returns how many.
pub fn raise_file_limit(wanted: u64) -> u64 {
    // No number stands for no limit.
    let reaches = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    let before = getrlimit(Resource::Nofile);
    if reaches(before.current) {
        return before.current.unwrap_or(u64::MAX);
    }
    let hard = before.maximum.map(|hard| hard.max(wanted));
    let allowed = before.maximum.map_or(wanted, |hard| hard.min(wanted));
    // Only a privileged process may exceed the hard limit. This is tried first.
    for (current, maximum) in [(wanted, hard), (allowed, before.maximum)] {
        let attempt = Rlimit {
            current: Some(current),
            maximum,
        };
        if setrlimit(Resource::Nofile, attempt).is_ok() {
            return current;
        }
    }
    before.current.unwrap_or(u64::MAX)
}

/// Descriptors that the process needs besides its connections.
pub const OTHER_FILES: u64 = 64 + REJECTED_MAX as u64 + METRICS_CLIENTS_MAX as u64;

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
        let now = raise_file_limit(1);
        assert!(now > 1);
        assert_eq!(raise_file_limit(now), now);
    }
}
