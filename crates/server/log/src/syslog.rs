//! Writing to the system's log.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;

use nix::libc::EPROTOTYPE;
use nix::syslog::{Facility, LogFlags, Priority, Severity, syslog};
use nuthatch_program::output;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::sys::{self, SYSLOG};

/// Errors: no log listens at this path.
pub fn check_receiver(name: &str, path: &str) -> Result<(), String> {
    match UnixDatagram::unbound().and_then(|socket| socket.connect(path)) {
        // It listens for streams instead, which the C library tries too.
        Err(error) if error.raw_os_error() == Some(EPROTOTYPE) => Ok(()),
        listens => listens.map_err(|error| format!("--log {name}: {path}: {error}")),
    }
}

/// Makes writers of lines to the system's log.
pub struct Syslog;

impl Syslog {
    pub fn open() -> Result<Self, String> {
        // Without this check the C library would drop all lines silently.
        check_receiver("syslog", SYSLOG)?;
        let name = output::program();
        sys::open(&name, LogFlags::LOG_PID, Facility::LOG_DAEMON)
            .map_err(|error| format!("--log syslog: {SYSLOG}: {error}"))?;
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
