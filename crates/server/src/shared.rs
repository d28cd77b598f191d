//! What all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use mio::Waker;
use nuthatch_engine::{AnyEngine, Clock, Engine};
use nuthatch_sync::mutex::Mutex;

use crate::account::{self, Account};
use crate::config::Config;
use crate::listen::{Address, Protocol};
use crate::live::Live;
use crate::shutdown::Shutdown;
use crate::stats::connections::{Info, Registry};
use crate::stats::counters::{AcceptorCounters, Totals, WorkerCounters};
use crate::stats::prefixes::Prefixes;
use crate::stream::Stream;

/// One server: its engine, its settings, its counters.
pub(crate) struct Shared {
    pub(crate) engine: Arc<AnyEngine>,
    pub(crate) config: Config,
    /// What of the settings counts now, where it can change.
    pub(crate) live: Live,
    /// Where memcached's clients find it, and behind them CPServer's.
    pub(crate) addresses: Vec<Address>,
    /// How many of them are memcached's.
    pub(crate) memcached_listeners: usize,
    pub(crate) clock: Clock,
    pub(crate) shutdown: Shutdown,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) account: Account,
    pub(crate) accepting: AcceptorCounters,
    pub(crate) registry: Registry,
    pub(crate) prefixes: Prefixes,
    /// Set by the `verbosity` command.
    pub(crate) verbosity: AtomicU32,
    /// A metadump or mgdump is under way: there is never a second.
    pub(crate) dumping: Arc<AtomicBool>,
    /// Set by `lru_crawler enable` and `disable`: whether dumps may begin.
    pub(crate) crawler_enabled: AtomicBool,
}

impl Shared {
    /// Where memcached's clients find it.
    pub(crate) fn memcached_addresses(&self) -> &[Address] {
        &self.addresses[..self.memcached_listeners]
    }

    /// Where CPServer's clients find it.
    pub(crate) fn cpserver_addresses(&self) -> &[Address] {
        &self.addresses[self.memcached_listeners..]
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

    /// The engine's memory limit changed: what the connections' buffers may hold follows it.
    pub(crate) fn follow_memory_limit(&self) {
        let connections_max = self.config.connections_max.get();
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
        }
        self.accepting.reset();
        self.prefixes.clear();
        self.engine.reset_stats();
    }
}

/// Where the acceptor leaves connections for one worker, and what the worker shows of itself.
pub(crate) struct Inbox {
    arrivals: Mutex<Vec<Arrival>>,
    waker: Arc<Waker>,
    connections: AtomicUsize,
    pub(crate) counters: WorkerCounters,
}

/// A connection on its way from the acceptor to a worker.
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) info: Arc<Info>,
    pub(crate) protocol: Protocol,
}

impl Inbox {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self {
            arrivals: Mutex::default(),
            waker,
            connections: AtomicUsize::new(0),
            counters: WorkerCounters::default(),
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

    /// The worker closed a connection.
    pub(crate) fn closed_one(&self) {
        // Relaxed: as connections().
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
