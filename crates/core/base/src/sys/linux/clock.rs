//! The kernel's clocks. Reading the coarse one takes 10 ns where the exact clock takes 35, twice as long as a get that hits
//! the processor's caches.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use nix::time::ClockId;

use crate::sys::posix::nanos;

/// How far [`exact`] is ahead of the clock that does not count sleep, in nanoseconds, as of the last look: the kernel has
/// no coarse clock that counts it. In a time namespace, which sets both clocks as it likes, it may be behind.
/// (An atomic of the standard library, not of the models: it orders nothing.)
static AHEAD: AtomicI64 = AtomicI64::new(i64::MIN);

/// Nanoseconds that the machine has been up, asleep or awake. 64 bits of them are 584 years.
pub fn exact() -> u64 {
    nanos(ClockId::CLOCK_BOOTTIME)
}

/// [`exact`] as of the kernel's last tick and the last look at [`AHEAD`]. Never ahead of it.
#[inline]
pub fn coarse() -> u64 {
    // Relaxed: the number is all there is to see.
    nanos(ClockId::CLOCK_MONOTONIC_COARSE).saturating_add_signed(AHEAD.load(Ordering::Relaxed))
}

/// Nanoseconds since 1970, by the wall clock.
pub fn unix() -> u64 {
    nanos(ClockId::CLOCK_REALTIME)
}

/// Looks whether the machine has slept, so that [`coarse`] counts that time.
#[cold]
pub fn note_sleep() {
    // In this order: a pause of this thread between the two makes the difference smaller. So [`coarse`] is never ahead of
    // the exact present.
    let exact = exact();
    let awake = nanos(ClockId::CLOCK_MONOTONIC);
    // Relaxed: the number is all there is to see.
    AHEAD.fetch_max(exact.cast_signed() - awake.cast_signed(), Ordering::Relaxed);
}

/// The kernel's name of the first time namespace (`PROC_TIME_INIT_INO`).
const FIRST_NAMESPACE: &str = "time:[4026531834]";

/// The kernel's name of this machine's last start, from which [`exact`] counts, all zero if it does not tell. In a time
/// namespace of its own a process counts from another start, of which nothing tells the next process.
pub fn boot() -> [u8; 16] {
    static BOOT: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT.get_or_init(|| {
        // Before 5.6 Linux had no others.
        let namespace = fs::read_link("/proc/self/ns/time");
        if namespace.is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE) {
            return [0; 16];
        }
        let name = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        name.ok().and_then(|name| parse(&name)).unwrap_or_default()
    })
}

/// The bytes of a name such as `2cd3c752-ebe5-420d-a461-9a6679860d72`.
fn parse(name: &str) -> Option<[u8; 16]> {
    let digits = name.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_starts_have_16_bytes() {
        let name = "2cd3c752-ebe5-420d-a461-9a6679860d72\n";
        assert_eq!(
            parse(name).map(|bytes| bytes[..3].to_vec()),
            Some(vec![0x2c, 0xd3, 0xc7])
        );
        for bad in ["", "2cd3c752", "2cd3c752-ebe5-420d-a461-9a6679860dzz"] {
            assert_eq!(parse(bad), None);
        }
        let namespace = fs::read_link("/proc/self/ns/time");
        let is_apart = namespace.is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE);
        assert_eq!(boot() == [0; 16], is_apart);
    }
}
