//! Systems like macOS and FreeBSD.

use nix::syslog::{Facility, LogFlags, openlog};

/// The socket of the system's log, as the system's <syslog.h> has it.
#[cfg(target_vendor = "apple")]
pub const SYSLOG: &str = "/var/run/syslog";
/// The socket of the system's log, as the system's <syslog.h> has it.
#[cfg(not(target_vendor = "apple"))]
pub const SYSLOG: &str = "/var/run/log";

/// Opens the system's log under this name.
pub fn open(name: &str, flags: LogFlags, facility: Facility) -> nix::Result<()> {
    openlog(Some(name), flags, facility)
}
