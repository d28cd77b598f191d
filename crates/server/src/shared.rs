//! What all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use mio::Waker;
use nuthatch_engine::{AnyEngine, Clock, Cursor, Engine};
use nuthatch_sync::mutex::Mutex;

use crate::account::{self, Account};
use crate::config::{Config, Protocol};
use crate::handover::pause::Pause;
use crate::listen::{Address, addresses_of};
use crate::live::Live;
use crate::protocols::resp::Scans;
use crate::security::failures::Failures;
use crate::security::passwords::Passwords;
use crate::security::tls::Tls;
use crate::shutdown::Shutdown;
use crate::stats::connections::{Info, Registry};
use crate::stats::counters::{AcceptorCounters, Totals, WorkerCounters};
use crate::stats::hot::Hot;
use crate::stats::latency::Latencies;
use crate::stats::prefixes::Prefixes;
use crate::stream::Stream;
use crate::watch::Hub;

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
    pub(crate) failed_logins: Failures,
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
    pub(crate) fn read_passwords(&self) -> Result<(), String> {
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

    /// The engine's memory limit changed, or how many connections there may be: what their buffers may hold follows.
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
    pub(crate) counters: WorkerCounters,
    pub(crate) latencies: Latencies,
    pub(crate) hot: Hot,
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
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self {
            arrivals: Mutex::default(),
            calls: Mutex::default(),
            waker,
            connections: AtomicUsize::new(0),
            counters: WorkerCounters::default(),
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
