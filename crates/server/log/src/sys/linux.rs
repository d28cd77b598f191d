//! Linux.

use std::ffi::{CStr, CString};

use nix::syslog::{Facility, LogFlags, openlog};

/// The socket of the system's log.
pub const SYSLOG: &str = "/dev/log";

/// Opens the system's log under this name.
pub fn open(name: &str, flags: LogFlags, facility: Facility) -> nix::Result<()> {
    // The system's log has the name for as long as the process lives.
    let name = CString::new(name).unwrap_or_default();
    let name: &'static CStr = Box::leak(name.into_boxed_c_str());
    openlog(Some(name), flags, facility)
}
