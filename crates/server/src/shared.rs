//! What all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use mio::Waker;
use nuthatch_engine::counters::Counter;
use nuthatch_engine::{AnyEngine, Clock, Cursor, Engine, Time};
use nuthatch_sync::mutex::Mutex;

use crate::account::{self, Account};
use crate::config::{Config, Protocol};
use crate::error::SettingsError;
use crate::handover::pause::Pause;
use crate::keeping::Saves;
use crate::listen::{Address, addresses_of};
use crate::live::Live;
use crate::protocols::resp::Scans;
use crate::security::failures::Failures;
use crate::security::guesses::Guesses;
use crate::security::passwords::Passwords;
use crate::security::tls::Tls;
use crate::shutdown::Shutdown;
use crate::stats::connections::{Info, Registry};
use crate::stats::counters::{AcceptorCounters, Totals, WorkerCounters};
use crate::stats::hot::Hot;
use crate::stats::latency::Latencies;
use crate::stats::prefixes::Prefixes;
use crate::stats::sizes::SizeClasses;
use crate::stream::Stream;
use crate::watch::{Hub, line};

/// One server: its engine, its settings, its counters.
pub(crate) struct Shared {
    pub(crate) engine: Arc<AnyEngine>,
    pub(crate) config: Config,
    /// What of the settings counts now, where it can change.
    pub(crate) live: Live,
    /// Where it listens, and for whose clients.
    pub(crate) addresses: Vec<(Address, Protocol)>,
    /// Who may use it, if that is asked.
    pub(crate) passwords: Mutex<Option<Arc<Passwords>>>,
    pub(crate) guesses: Guesses,
    pub(crate) failed_logins: Failures,
    /// Peers that have guessed too often.
    pub(crate) limited_peers: Failures,
    /// Certificates, where clients speak TLS.
    pub(crate) tls: Option<Tls>,
    pub(crate) clock: Clock,
    pub(crate) shutdown: Shutdown,
    /// Nobody is served while another process takes over.
    pub(crate) pause: Pause,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) account: Account,
    pub(crate) accepting: AcceptorCounters,
    pub(crate) registry: Registry,
    pub(crate) prefixes: Prefixes,
    /// Who is told what happens.
    pub(crate) watch: Arc<Hub>,
    /// Set by the `verbosity` command.
    pub(crate) verbosity: AtomicU32,
    /// A metadump or mgdump is under way: there is never a second.
    pub(crate) dumping: Arc<AtomicBool>,
    /// Dumps and other walks over all items since the start.
    pub(crate) dumps: AtomicU64,
    /// Turns of the thread that works behind the scenes, which alone counts them.
    pub(crate) maintained: Counter,
    /// The second of the last flush_all.
    pub(crate) flushed: AtomicU32,
    /// What became of copies that were to be taken (`--save`).
    pub(crate) saves: Mutex<Saves>,
    /// Set by `lru_crawler enable` and `disable`: whether dumps may begin.
    pub(crate) crawler_enabled: AtomicBool,
    /// Where SCANs go on.
    pub(crate) scans: Scans,
    /// Where the next RANDOMKEY looks.
    pub(crate) random: Mutex<Cursor>,
}

impl Shared {
    /// Where clients of such a protocol find it.
    pub(crate) fn addresses_of(
        &self,
        is_it: impl Fn(Protocol) -> bool,
    ) -> impl Iterator<Item = &Address> {
        addresses_of(&self.addresses, is_it)
    }

    /// True if clients have to say who they are.
    pub(crate) fn has_passwords(&self) -> bool {
        self.config.auth_file.is_some()
    }

    /// True if a client is not admitted before it has done something: a handshake, a login.
    pub(crate) fn admits_late(&self) -> bool {
        self.has_passwords() || self.tls.is_some()
    }

    /// True if this is a user's name and password.
    pub(crate) fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let passwords = self.passwords.lock().clone();
        passwords.is_some_and(|passwords| passwords.admits(name, password))
    }

    /// Reads the file of passwords again. Errors: it is not read, and those of before hold.
    pub(crate) fn read_passwords(&self) -> Result<(), SettingsError> {
        if let Some(path) = &self.config.auth_file {
            *self.passwords.lock() = Some(Arc::new(Passwords::read(path)?));
        }
        Ok(())
    }

    /// Open connections of all workers.
    pub(crate) fn connections(&self) -> usize {
        self.inboxes.iter().map(|inbox| inbox.connections()).sum()
    }

    /// Has every worker look what there is to do.
    pub(crate) fn wake_workers(&self) {
        for inbox in &self.inboxes {
            inbox.wake();
        }
    }

    /// Tells those who watch the server itself.
    pub(crate) fn tell_watchers(&self, event: std::fmt::Arguments<'_>) {
        line::system(&self.watch, event);
    }

    /// Reads certificates and keys again, if there are any. Errors: those of before stay.
    pub(crate) fn refresh_certificates(&self) -> Option<Result<(), SettingsError>> {
        let refreshed = self.tls.as_ref()?.refresh();
        let state = if refreshed.is_ok() { "ok" } else { "failed" };
        self.tell_watchers(format_args!("type=certificates state={state}"));
        Some(refreshed)
    }

    /// The engine's memory limit changed.
    pub(crate) fn follow_memory_limit(&self) {
        let memory = self.engine.stats().memory_limit;
        self.tell_watchers(format_args!("type=memory_limit bytes={memory}"));
        self.bound_buffers();
    }

    /// What the connections' buffers may hold follows the memory limit and how many connections there may be.
    pub(crate) fn bound_buffers(&self) {
        let connections_max = self.live.connections_max().get();
        let memory = self.engine.stats().memory_limit;
        self.account
            .set_bound(account::bound(connections_max, memory));
        self.wake_workers();
    }

    /// The counters of all workers, summed.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for inbox in &self.inboxes {
            inbox.counters.add_to(&mut totals);
        }
        totals
    }

    /// Has all items that are there at `at` die then.
    pub(crate) fn flush(&self, now: Time, at: Time) {
        // Relaxed: a statistic.
        self.flushed.store(at.seconds(), Ordering::Relaxed);
        self.engine.flush(now, at);
        let delay = at.since(now).as_secs();
        self.tell_watchers(format_args!("type=flush_all delay={delay}"));
    }

    /// The second of the last flush; 0 if there was none.
    pub(crate) fn flushed(&self) -> u32 {
        self.flushed.load(Ordering::Relaxed)
    }

    /// The `verbosity` command.
    pub(crate) fn set_verbosity(&self, level: u32) {
        // Relaxed: a switch for logging.
        self.verbosity.store(level, Ordering::Relaxed);
        self.config.on_verbosity.tell(level);
    }

    /// `stats reset`.
    pub(crate) fn reset_stats(&self) {
        for inbox in &self.inboxes {
            inbox.counters.reset();
            inbox.latencies.reset();
            inbox.hot.reset();
        }
        self.accepting.reset();
        self.prefixes.clear();
        self.engine.reset_stats();
    }
}

/// Where the acceptor leaves connections for one worker, and what the worker shows of itself.
pub(crate) struct Inbox {
    arrivals: Mutex<Vec<Arrival>>,
    /// Connections that have something to say by themselves.
    calls: Mutex<Vec<usize>>,
    waker: Arc<Waker>,
    connections: AtomicUsize,
    pub(crate) idle: IdleMemory,
    pub(crate) counters: WorkerCounters,
    pub(crate) latencies: Latencies,
    pub(crate) hot: Hot,
}

/// Memory that a worker keeps for its next requests, as it was when it looked last.
#[derive(Default)]
pub(crate) struct IdleMemory {
    /// Bytes of empty buffers. All of these are Relaxed: statistics.
    buffers: AtomicUsize,
    /// Answers that its batches have room for, and their bytes.
    answers: AtomicUsize,
    answers_bytes: AtomicUsize,
}

impl IdleMemory {
    /// Shows it. Only the worker calls this.
    pub(crate) fn show(&self, buffers: usize, answers: usize, answers_bytes: usize) {
        self.buffers.store(buffers, Ordering::Relaxed);
        self.answers.store(answers, Ordering::Relaxed);
        self.answers_bytes.store(answers_bytes, Ordering::Relaxed);
    }

    /// Bytes of empty buffers.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }

    /// Answers that there is room for, and their bytes.
    pub(crate) fn answers(&self) -> (usize, usize) {
        let answers = self.answers.load(Ordering::Relaxed);
        (answers, self.answers_bytes.load(Ordering::Relaxed))
    }
}

/// A connection on its way from the acceptor to a worker.
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) info: Arc<Info>,
    pub(crate) protocol: Protocol,
    /// Its client has to say who it is.
    pub(crate) login: bool,
}

impl Inbox {
    pub(crate) fn new(waker: Arc<Waker>, sizes: SizeClasses) -> Self {
        Self {
            arrivals: Mutex::default(),
            calls: Mutex::default(),
            waker,
            connections: AtomicUsize::new(0),
            idle: IdleMemory::default(),
            counters: WorkerCounters::new(sizes),
            latencies: Latencies::default(),
            hot: Hot::default(),
        }
    }

    /// Open connections, those still on their way included.
    pub(crate) fn connections(&self) -> usize {
        // Relaxed: balance and limits may be off by those that come and go at this moment.
        self.connections.load(Ordering::Relaxed)
    }

    /// Hands a connection to the worker.
    pub(crate) fn leave(&self, arrival: Arrival) {
        // Relaxed: as connections().
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.arrivals.lock().push(arrival);
        // Should this fail, the worker takes it with the next one.
        self.wake();
    }

    /// Has the worker look up from its sleep.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            // It does what there is to do with the next event.
            tracing::warn!(%error, "cannot wake a worker");
        }
    }

    /// Takes what was left. Only the worker calls this.
    pub(crate) fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.arrivals.lock())
    }

    /// Has the worker give a connection a slice. It may be closed by then, and another may have its id: that one looks
    /// in vain.
    pub(crate) fn call(&self, connection: usize) {
        self.calls.lock().push(connection);
        self.wake();
    }

    /// Takes the calls.
    pub(crate) fn calls(&self) -> Vec<usize> {
        std::mem::take(&mut *self.calls.lock())
    }

    /// The worker closed a connection.
    pub(crate) fn closed_one(&self) {
        // Relaxed: as connections().
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
