//! Where the system's log listens.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unix;

#[cfg(target_os = "linux")]
pub use linux::SYSLOG;
#[cfg(not(target_os = "linux"))]
pub use unix::SYSLOG;
