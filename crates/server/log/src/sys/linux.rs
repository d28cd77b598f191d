//! Linux.

/// The socket of the system's log.
pub const SYSLOG: &str = "/dev/log";
