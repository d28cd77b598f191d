//! Time in ticks of the processor's counter.

use std::time::Instant;

/// What [`now`] counts.
#[cfg(target_arch = "x86_64")]
pub const UNIT: &str = "cycles";
/// What [`now`] counts.
#[cfg(not(target_arch = "x86_64"))]
pub const UNIT: &str = "ns";

/// The time-stamp counter: cycles of the processor's nominal frequency, whatever it runs at.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code)]
pub fn now() -> u64 {
    // SAFETY: reading the counter changes nothing. A system may forbid it (CR4.TSD), which ends the
    // process; none that runs Rust's standard library does.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since some moment, where there is no time-stamp counter to read.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn now() -> u64 {
    use std::sync::LazyLock;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Does nothing for about `ticks` of [`now`]: simulates a miss of that cost.
#[inline(always)]
pub fn spin(ticks: u64) {
    let end = now() + ticks;
    while now() < end {
        std::hint::spin_loop();
    }
}

/// Measures how many ticks of [`now`] are a second, from its start to the call.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    instant: Instant,
    ticks: u64,
}

impl Rate {
    /// Begins to measure.
    pub fn start() -> Self {
        Self {
            instant: Instant::now(),
            ticks: now(),
        }
    }

    /// Ticks a second; the longer ago the start, the more exactly.
    pub fn per_second(&self) -> f64 {
        let ticks = now().wrapping_sub(self.ticks);
        ticks as f64 / self.instant.elapsed().as_secs_f64()
    }

    /// Millions a second, if one takes `ticks` ticks.
    pub fn millions(&self, ticks: f64) -> f64 {
        self.per_second() / ticks / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_takes_at_least_its_ticks() {
        let rate = Rate::start();
        let before = now();
        spin(100_000);
        assert!(now() - before >= 100_000);
        assert!(rate.per_second() > 1e6, "{}", rate.per_second());
        assert!(rate.millions(10.0) > rate.millions(20.0));
    }
}
