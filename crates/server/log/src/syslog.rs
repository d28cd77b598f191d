//! Writing to the system's log.

use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;

use nix::libc::{self, EPROTOTYPE, c_int};
use nix::syslog::{Facility, LogFlags, Priority, Severity, syslog};
use nuthatch_program::output;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::sys::SYSLOG;

/// Errors: no log listens at this path.
pub fn check_receiver(name: &str, path: &str) -> Result<(), String> {
    match UnixDatagram::unbound().and_then(|socket| socket.connect(path)) {
        // It listens for streams instead, which the C library tries too.
        Err(error) if error.raw_os_error() == Some(EPROTOTYPE) => Ok(()),
        listens => listens.map_err(|error| format!("--log {name}: {path}: {error}")),
    }
}

/// Opens the system's log under this name. Not by `nix`, whose name ends with the call on other systems than Linux.
#[allow(unsafe_code)]
fn open(name: &str) {
    // The C library keeps the pointer: so the name is there for as long as the process lives.
    let name = CString::new(name).unwrap_or_default();
    let name: &'static CStr = Box::leak(name.into_boxed_c_str());
    let facility = Facility::LOG_DAEMON as c_int;
    // SAFETY: the name ends with a zero, and is never changed or given back.
    unsafe { libc::openlog(name.as_ptr(), LogFlags::LOG_PID.bits(), facility) };
}

/// Makes writers of lines to the system's log.
pub struct Syslog;

impl Syslog {
    pub fn open() -> Result<Self, String> {
        // Without this check the C library would drop all lines silently.
        check_receiver("syslog", SYSLOG)?;
        open(&output::program());
        Ok(Self)
    }
}

impl<'a> MakeWriter<'a> for Syslog {
    type Writer = SyslogLine;

    fn make_writer(&'a self) -> SyslogLine {
        SyslogLine(Severity::LOG_INFO)
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> SyslogLine {
        SyslogLine(match *about.level() {
            Level::ERROR => Severity::LOG_ERR,
            Level::WARN => Severity::LOG_WARNING,
            Level::INFO => Severity::LOG_INFO,
            _ => Severity::LOG_DEBUG,
        })
    }
}

/// One line to the system's log.
pub struct SyslogLine(Severity);

impl Write for SyslogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = std::str::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData)?;
        let priority = Priority::new(self.0, Facility::LOG_DAEMON);
        syslog(priority, line.trim_end())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
