//! Where the log goes, and how much of it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use nix::libc::{EPROTOTYPE, O_NONBLOCK};
use nix::syslog::{Facility, LogFlags, Priority, Severity, openlog, syslog};
use nuthatch_sync::mutex::Mutex;
use serde::{Deserialize, Serialize};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// Where the system's log listens.
const SYSLOG: &str = "/dev/log";

/// Where systemd's log listens.
const JOURNALD: &str = "/run/systemd/journal/socket";

/// Where the log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogTo {
    /// To standard error.
    #[default]
    Stderr,
    /// To the system's log.
    Syslog,
    /// To systemd's.
    Journald,
    /// To this file, behind what it has.
    File(PathBuf),
}

impl LogTo {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stderr | Self::Syslog | Self::Journald => None,
        }
    }

    /// Errors: the system has no such log. Of a file, its folder tells.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Syslog => is_heard("syslog", SYSLOG),
            Self::Journald => is_heard("journald", JOURNALD),
            Self::Stderr | Self::File(_) => Ok(()),
        }
    }

    /// A destination as typed: `stderr`, `syslog`, `journald`, or a file.
    pub fn parse(text: &str) -> Self {
        match text {
            "stderr" => Self::Stderr,
            "syslog" => Self::Syslog,
            "journald" => Self::Journald,
            path => Self::File(path.into()),
        }
    }
}

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

/// Standard error has objects alone: the log goes there, as JSON. Relaxed: set once, before other threads are there.
static JSON_ON_STDERR: AtomicBool = AtomicBool::new(false);

/// The process's log.
#[derive(Clone)]
pub struct Log {
    /// The log does not go to standard error.
    is_elsewhere: bool,
    level: Handle<LevelFilter, Registry>,
    file: Option<Arc<LogFile>>,
}

impl Log {
    /// Begins to log. Errors: the file cannot be written, or there is no such log on this machine.
    pub fn begin(to: &LogTo, format: LogFormat, verbosity: u32) -> Result<Self, String> {
        let (filter, level) = reload::Layer::new(level(verbosity));
        let mut file = None;
        // Lines that cannot be written are passed over: a log must not end the server.
        let lines = fmt::layer();
        let is_json = format == LogFormat::Json;
        let layer = match to {
            LogTo::Stderr if is_json => json().with_writer(io::stderr).boxed(),
            LogTo::Stderr => lines.with_writer(io::stderr).boxed(),
            LogTo::File(path) => {
                let opened = Arc::new(LogFile::open(path)?);
                file = Some(Arc::clone(&opened));
                match is_json {
                    true => json().with_writer(opened).boxed(),
                    false => lines.with_ansi(false).with_writer(opened).boxed(),
                }
            }
            LogTo::Syslog => {
                let syslog = Syslog::open()?;
                let bare = lines.with_ansi(false).without_time().with_level(false);
                match is_json {
                    true => json().with_writer(syslog).boxed(),
                    false => bare.with_writer(syslog).boxed(),
                }
            }
            // It keeps the fields of an event as they are.
            LogTo::Journald => tracing_journald::layer()
                .map_err(|error| format!("--log journald: {JOURNALD}: {error}"))?
                .boxed(),
        };
        tracing_subscriber::registry()
            .with(filter)
            .with(layer)
            .init();
        JSON_ON_STDERR.store(is_json && *to == LogTo::Stderr, Ordering::Relaxed);
        Ok(Self {
            is_elsewhere: *to != LogTo::Stderr,
            level,
            file,
        })
    }

    /// Changes how much is logged.
    pub fn set_verbosity(&self, verbosity: u32) {
        // It fails only when the subscriber is gone, and that lives as long as the process.
        let _ = self.level.reload(level(verbosity));
    }

    /// Opens the log's file again, if it has one: it has been renamed for rotation.
    pub fn reopen(&self) {
        if let Some(file) = &self.file
            && let Err(error) = file.reopen()
        {
            tracing::warn!("{error}; the old one is still written");
        }
    }

    /// True if standard error has objects alone.
    pub fn is_json_on_stderr(&self) -> bool {
        JSON_ON_STDERR.load(Ordering::Relaxed)
    }

    /// Logs what is of interest in any case.
    pub fn tell(&self, words: &str) {
        let level = self.level.with_current(|level| *level);
        let level = level.unwrap_or(LevelFilter::WARN);
        // It fails only when the subscriber is gone, and that lives as long as the process.
        let _ = self.level.reload(level.max(LevelFilter::INFO));
        tracing::info!("{words}");
        let _ = self.level.reload(level);
    }

    /// Writes a warning of the start to standard error, and to the log if that is elsewhere.
    pub fn warn(&self, words: &str) {
        let is_json = self.is_json_on_stderr();
        if !is_json {
            say(words);
        }
        if self.is_elsewhere || is_json {
            tracing::warn!("{words}");
        }
    }

    /// Logs why the process ends, if the log is not standard error, where `main` writes it.
    pub fn error(&self, words: &str) {
        if self.is_elsewhere {
            tracing::error!("{words}");
        }
    }
}

/// Lines that are objects: `timestamp`, `level`, `target`, `message` and what else an event has.
fn json<S>() -> fmt::Layer<S, fmt::format::JsonFields, fmt::format::Format<fmt::format::Json>> {
    fmt::layer().json().flatten_event(true)
}

/// Tells on standard error why the process ends.
pub fn fail(words: &str) {
    match JSON_ON_STDERR.load(Ordering::Relaxed) {
        true => tracing::error!("{words}"),
        false => say(words),
    }
}

/// Writes a message to standard error. Not `eprintln!`, which panics if that is a closed pipe.
pub fn say(words: &str) {
    // There is no other place for the message.
    let _ = writeln!(io::stderr(), "nuthatch: {words}");
}

/// Warnings in any case; more as -v or `verbosity` asks for.
fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// A file that lines are appended to.
struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl LogFile {
    fn open(path: &Path) -> Result<Self, String> {
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(append_to(path)?),
        })
    }

    fn reopen(&self) -> Result<(), String> {
        let file = append_to(&self.path)?;
        *self.file.lock() = file;
        Ok(())
    }
}

/// Without waiting: a pipe that nobody reads is an error at once, and one that is full loses lines. Else the thread that
/// heeds signals would never end a server whose log became one.
fn append_to(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).custom_flags(O_NONBLOCK);
    let opened = options.open(path);
    opened.map_err(|error| format!("--log {}: {error}", path.display()))
}

/// A line comes in one call, so lines of different threads do not mix.
impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.lock().write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.lock().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Errors: nobody listens there.
fn is_heard(name: &str, path: &str) -> Result<(), String> {
    match UnixDatagram::unbound().and_then(|socket| socket.connect(path)) {
        // It listens for streams instead, which the C library tries too.
        Err(error) if error.raw_os_error() == Some(EPROTOTYPE) => Ok(()),
        listens => listens.map_err(|error| format!("--log {name}: {path}: {error}")),
    }
}

/// Makes writers of lines to the system's log.
struct Syslog;

impl Syslog {
    fn open() -> Result<Self, String> {
        // The C library would lose all lines without a word.
        is_heard("syslog", SYSLOG)?;
        openlog(Some(c"nuthatch"), LogFlags::LOG_PID, Facility::LOG_DAEMON)
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
struct SyslogLine(Severity);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_have_names_or_are_files() {
        assert_eq!(LogTo::parse("stderr"), LogTo::default());
        assert_eq!(LogTo::parse("syslog"), LogTo::Syslog);
        assert_eq!(LogTo::parse("journald"), LogTo::Journald);
        assert_eq!(LogTo::parse("./syslog"), LogTo::File("./syslog".into()));
    }
}
