//! The kernel's clocks.

use nix::time::ClockId;

use crate::sys::posix::nanos;

/// The exact clock, and the same as of the kernel's last look at it. Both count the time that the machine sleeps.
#[cfg(target_vendor = "apple")]
const CLOCKS: [ClockId; 2] = [
    ClockId::from_raw(libc::CLOCK_MONOTONIC_RAW),
    ClockId::from_raw(libc::CLOCK_MONOTONIC_RAW_APPROX),
];
#[cfg(target_os = "freebsd")]
const CLOCKS: [ClockId; 2] = [ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC_FAST];
/// Of others we know no coarse one.
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
const CLOCKS: [ClockId; 2] = [ClockId::CLOCK_MONOTONIC; 2];

/// Nanoseconds since some moment before this process began.
pub fn exact() -> u64 {
    nanos(CLOCKS[0])
}

/// [`exact`], some milliseconds ago at most.
#[inline]
pub fn coarse() -> u64 {
    nanos(CLOCKS[1])
}

/// Nanoseconds since 1970, by the wall clock.
pub fn unix() -> u64 {
    nanos(ClockId::CLOCK_REALTIME)
}

/// Both clocks count it.
pub fn note_sleep() {}

/// The name of this machine's last start: not known, so the time since then tells the next process nothing.
pub fn boot() -> [u8; 16] {
    [0; 16]
}
