//! What all Unix systems have.

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

pub mod open;
pub mod owners;

/// What a clock of the kernel shows, in nanoseconds.
#[inline]
pub fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("the systems have had these clocks for ten years");
    // A wall clock before 1970 shows 1970.
    time.tv_sec().max(0) as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Bytes of a page of this system: 4 KiB on x86-64, and 4, 16 or 64 KiB on aarch64.
pub fn page_bytes() -> usize {
    let bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .expect("every system has pages")
}
