//! The system's log. The C library is asked for it in two ways, so what is compiled goes by the system alone.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unix;

#[cfg(target_os = "linux")]
pub use linux::{SYSLOG, open};
#[cfg(not(target_os = "linux"))]
pub use unix::{SYSLOG, open};
