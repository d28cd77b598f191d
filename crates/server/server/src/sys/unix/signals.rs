//! Signals that not all systems have.

use libc::c_int;

/// None beside those of all systems.
pub const STOPPING: &[c_int] = &[];

/// None beside those of all systems. FreeBSD's of real time, which have no names here, end the process.
pub fn meaningless() -> impl Iterator<Item = c_int> {
    std::iter::empty()
}
