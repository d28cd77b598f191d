//! Systems like macOS and FreeBSD.

/// The socket of the system's log, as the system's <syslog.h> has it.
#[cfg(target_vendor = "apple")]
pub const SYSLOG: &str = "/var/run/syslog";
/// The socket of the system's log, as the system's <syslog.h> has it.
#[cfg(not(target_vendor = "apple"))]
pub const SYSLOG: &str = "/var/run/log";
