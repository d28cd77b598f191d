//! The standard library's clocks. Whether they count the time that the machine sleeps is the system's matter; Windows' do.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since this process first asked. 64 bits of them are 584 years.
pub fn exact() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// There is no coarse one.
pub fn coarse() -> u64 {
    exact()
}

/// Nanoseconds since 1970, by the wall clock. One before 1970 shows 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is read where a moment is written or told by it"
)]
pub fn unix() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}

/// There is no second clock to compare with.
pub fn note_sleep() {}

/// The name of this machine's last start: not known, and [`exact`] does not count from it.
pub fn boot() -> [u8; 16] {
    [0; 16]
}
