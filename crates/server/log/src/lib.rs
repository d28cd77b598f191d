//! The log of a server's process: its destination, its format and its level.
//!
//! * `descriptor`: descriptors that the process was given, as destinations.
//! * `limit`: what is left out, so that no peer fills a disk.
//! * `queue`: lines wait here for the thread that writes them, so that no other thread waits for a log that is stuck.
//! * `record`: an event that waits.
//! * `lines`: writes to standard error or to a file.
//! * `syslog`: writes to the system's log.
//! * `sys`: how systems differ there.

mod descriptor;
mod limit;
mod lines;
mod queue;
mod record;
mod sys;
mod syslog;

use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::{AsFd, RawFd};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use lines::Lines;
use nix::libc::STDERR_FILENO;
use nuthatch_program::output;
use queue::{Item, Queue, Queueing, Sink};
use record::TimeOfEvent;
use serde::{Deserialize, Serialize};
use sys::SYSLOG;
use syslog::{Syslog, check_receiver};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// The socket of systemd's log.
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
    /// To this descriptor, which the process was given.
    Descriptor(RawFd),
    /// To this file, behind its contents.
    File(PathBuf),
}

impl LogTo {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stderr | Self::Syslog | Self::Journald | Self::Descriptor(_) => None,
        }
    }

    /// Errors: the system has no such log, or the process no such descriptor. For a file the check of its folder does this.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Syslog => check_receiver("syslog", SYSLOG),
            Self::Journald => check_receiver("journald", JOURNALD),
            Self::Descriptor(number) => descriptor::copy(*number).map(drop),
            Self::Stderr | Self::File(_) => Ok(()),
        }
    }

    /// A destination as typed: `stderr`, `stdout` or `-`, `syslog`, `journald`, or a file. A path that is one of the
    /// process' descriptors (`/dev/stdout`, `/dev/fd/3`) is that descriptor.
    pub fn parse(text: &str) -> Self {
        match (text, descriptor::named(text)) {
            (_, Some(STDERR_FILENO)) => Self::Stderr,
            (_, Some(number)) => Self::Descriptor(number),
            ("syslog", None) => Self::Syslog,
            ("journald", None) => Self::Journald,
            (path, None) => Self::File(path.into()),
        }
    }
}

/// The format of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people to read.
    #[default]
    Text,
    /// Lines for programs: one JSON object per line.
    Json,
}

/// How long a message waits for a standard error that is full, in milliseconds.
const PATIENCE: u16 = 1000;

/// The process's log, once there is one.
static LOG: OnceLock<Log> = OnceLock::new();

/// The process's log.
#[derive(Clone)]
pub struct Log {
    /// The log does not go to standard error.
    is_elsewhere: bool,
    is_json: bool,
    level: Handle<LevelFilter, Registry>,
    queue: Arc<Queue>,
}

impl Log {
    /// Begins to log. `lost` counts lines that were not written. Errors: the file cannot be written, or this machine
    /// has no such log.
    pub fn begin(
        to: &LogTo,
        format: LogFormat,
        verbosity: u32,
        lost: Arc<AtomicU64>,
    ) -> Result<Self, String> {
        let is_json = format == LogFormat::Json;
        let sink = sink(to, is_json, &lost)?;
        Ok(Self::begin_with(sink, to, is_json, verbosity, lost))
    }

    fn begin_with(
        sink: Sink,
        to: &LogTo,
        is_json: bool,
        verbosity: u32,
        lost: Arc<AtomicU64>,
    ) -> Self {
        let own = level(verbosity);
        let (filter, level) = reload::Layer::new(own);
        let queue = Arc::new(Queue::new(sink, own, lost));
        let queueing = Queueing(Arc::clone(&queue));
        tracing_subscriber::registry()
            .with(filter)
            .with(queueing)
            .init();
        // Panics go where all lines go, and under the limit of all lines: a peer may have found how to repeat one.
        panic::set_hook(Box::new(|panic| {
            let words = panic.to_string().replace('\n', " ");
            let words = format!("a fault of this program, please report it: {words}");
            // Nobody else would write it.
            if queue::is_writer() {
                return report_writer_fault(&words);
            }
            tracing::error!("{words}");
            flush();
        }));
        let log = Self {
            is_elsewhere: *to != LogTo::Stderr,
            is_json,
            level,
            queue,
        };
        LOG.get_or_init(|| log).clone()
    }

    /// Starts the thread that writes the log. It is confined as the calling thread is.
    pub fn write_apart(&self) -> io::Result<()> {
        self.queue.begin()
    }

    /// Waits until all is written, unless the log is stuck.
    pub fn flush(&self) {
        self.queue.flush();
    }

    /// Changes how much is logged, for who runs the server.
    pub fn set_verbosity(&self, verbosity: u32) {
        self.queue.set_own(level(verbosity));
        self.set_verbosity_for_client(verbosity);
    }

    /// Changes how much is logged, for a client: what it adds is bounded.
    pub fn set_verbosity_for_client(&self, verbosity: u32) {
        // It fails only if the subscriber was dropped, and that lives as long as the process.
        let _ = self.level.reload(level(verbosity));
    }

    /// Opens the log's file again, if it has one: it has been renamed for rotation.
    pub fn reopen(&self) {
        self.queue.push(Item::Reopen);
    }

    /// True if standard error has objects alone.
    pub fn is_json_on_stderr(&self) -> bool {
        self.is_json && !self.is_elsewhere
    }

    /// Writes text for people to standard error, behind the lines that were logged before.
    pub fn say(&self, text: String) {
        match self.is_elsewhere {
            true => to_stderr(&text),
            false => self.queue.push(Item::Words(text)),
        }
    }

    /// Logs a message at any verbosity.
    pub fn info_always(&self, words: &str) {
        let level = self.level.with_current(|level| *level);
        let level = level.unwrap_or(LevelFilter::WARN);
        // It fails only if the subscriber was dropped, and that lives as long as the process.
        let _ = self.level.reload(level.max(LevelFilter::INFO));
        tracing::info!("{words}");
        let _ = self.level.reload(level);
    }

    /// Writes a warning of the start to standard error, and to the log if that is elsewhere.
    pub fn warn(&self, words: &str) {
        let is_json = self.is_json_on_stderr();
        if !is_json {
            self.say(output::line(words));
        }
        if self.is_elsewhere || is_json {
            tracing::warn!("{words}");
        }
    }

    /// Logs why the process ends, unless the log is standard error: there `main` writes it.
    pub fn error(&self, words: &str) {
        if self.is_elsewhere {
            tracing::error!("{words}");
        }
    }
}

/// The sink that writes events to the log. Lines that cannot be written are dropped: a log must not end the server.
fn sink(to: &LogTo, is_json: bool, lost: &Arc<AtomicU64>) -> Result<Sink, String> {
    let lines = match to {
        LogTo::Stderr => Some(Arc::new(Lines::to_stderr(Arc::clone(lost)))),
        LogTo::File(path) => Some(Arc::new(Lines::to_file(path, Arc::clone(lost))?)),
        LogTo::Descriptor(number) => {
            let copy = descriptor::copy(*number)?;
            Some(Arc::new(Lines::to_descriptor(copy, Arc::clone(lost))))
        }
        LogTo::Syslog | LogTo::Journald => None,
    };
    let text = fmt::layer().with_timer(TimeOfEvent);
    // Lines that are objects: `timestamp`, `level`, `target`, `message` and the event's other fields.
    let json = fmt::layer()
        .json()
        .flatten_event(true)
        .with_timer(TimeOfEvent);
    let layer = match (to, &lines, is_json) {
        (_, Some(lines), true) => json.with_writer(Arc::clone(lines)).boxed(),
        (_, Some(lines), false) => text.with_ansi(false).with_writer(Arc::clone(lines)).boxed(),
        // Journald keeps the fields of an event as they are.
        (LogTo::Journald, None, _) => tracing_journald::layer()
            .map_err(|error| format!("--log journald: {JOURNALD}: {error}"))?
            .boxed(),
        (_, None, true) => json.with_writer(Syslog::open()?).boxed(),
        (_, None, false) => text
            .with_ansi(false)
            .without_time()
            .with_level(false)
            .with_writer(Syslog::open()?)
            .boxed(),
    };
    Ok(Sink {
        events: Box::new(tracing_subscriber::registry().with(layer)),
        lines,
    })
}

/// Writes to standard error why the process ends.
pub fn fail(words: &str) {
    match LOG.get() {
        Some(log) if log.is_json_on_stderr() => tracing::error!("{words}"),
        _ => say(output::line(words)),
    }
}

/// Waits until the log is written, if there is one, unless it is stuck.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.flush();
    }
}

/// Writes text for people to standard error: behind the lines that were logged before, if there is a log.
pub fn say(text: String) {
    match LOG.get() {
        Some(log) => log.say(text),
        // There is no other place for the text. Not `eprintln!`, which panics if that is a closed pipe.
        None => {
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}

/// The same for a server whose log goes elsewhere: it does not wait for ever, because it has clients.
fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    if lines::has_room(stderr.as_fd(), PATIENCE.into()) {
        let _ = stderr.write_all(text.as_bytes());
    }
}

/// How seldom a fault of the thread that writes the log is reported: each of its lines may meet one.
const BETWEEN_FAULTS: Duration = Duration::from_secs(60);

/// Reports a fault of the thread that writes the log, on standard error.
fn report_writer_fault(words: &str) {
    thread_local! {
        static REPORTED: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    if REPORTED.get().is_none_or(|at| now - at >= BETWEEN_FAULTS) {
        REPORTED.set(Some(now));
        to_stderr(&output::line(&format!(
            "{words}; lines of the log are lost"
        )));
    }
}

/// Warnings at any verbosity; more by -v or `verbosity`.
fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;
    use std::sync::atomic::Ordering;

    use tracing::field::Field;
    use tracing::{Event, Subscriber};
    use tracing_subscriber::layer::Context;

    use super::*;

    /// Panics at one line.
    struct Fragile;

    impl<S: Subscriber> Layer<S> for Fragile {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut words = String::new();
            let mut record = |_: &Field, said: &dyn std::fmt::Debug| words = format!("{said:?}");
            event.record(&mut record);
            assert!(!words.contains("the fragile line"), "as planned");
        }
    }

    /// What the child of the next test is told: where its log goes.
    const CHILD: &str = "NUTHATCH_TEST_LOG";

    /// Logs a line that makes the writer panic, and others. In a process of its own, as there is one log.
    fn child(path: &OsStr) {
        let (to, lost) = (LogTo::File(path.into()), Arc::default());
        let Sink { events, lines } = sink(&to, false, &lost).unwrap();
        let events = Box::new(Fragile.with_subscriber(events));
        let log = Log::begin_with(Sink { events, lines }, &to, false, 0, Arc::clone(&lost));
        for line in ["before", "the fragile line", "the fragile line", "behind"] {
            tracing::warn!("{line}");
        }
        log.flush();
        // Relaxed: the writer has counted before it let the log be flushed.
        assert_eq!(lost.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_fault_of_the_writer_costs_its_line_and_is_told() {
        if let Some(path) = std::env::var_os(CHILD) {
            return child(&path);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let name = "tests::a_fault_of_the_writer_costs_its_line_and_is_told";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{said}");
        assert_eq!(said.matches("as planned").count(), 1, "{said}");
        assert!(said.contains("lines of the log are lost"), "{said}");
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.ends_with("behind\n"), "{written}");
    }

    #[test]
    fn destinations_have_names_or_are_files() {
        assert_eq!(LogTo::parse("stderr"), LogTo::default());
        assert_eq!(LogTo::parse("/dev/fd/2"), LogTo::Stderr);
        assert_eq!(LogTo::parse("-"), LogTo::Descriptor(1));
        assert_eq!(LogTo::parse("syslog"), LogTo::Syslog);
        assert_eq!(LogTo::parse("journald"), LogTo::Journald);
        assert_eq!(LogTo::parse("./syslog"), LogTo::File("./syslog".into()));
    }
}
