//! The state that all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nuthatch_base::memory::reserve;
use nuthatch_channels::bounds::Bounds;
use nuthatch_channels::channels::Channels;
use nuthatch_channels::tracking::Tracking;
use nuthatch_engine::{AnyEngine, Clock, Engine, Reply, Time};
use nuthatch_script::Library;
use nuthatch_settings::config::{By, Config, Protocol};

use crate::accounts::Accounts;
use crate::databases::Databases;
use crate::hold::Hold;
use crate::key_events::KeyspaceEvents;
use crate::last_flush::LastFlush;
use crate::live::{Live, LiveCell};
use crate::noted::Noted;
use crate::pause::Pause;
use crate::saves::Saves;
use crate::scripting::Scripting;
use crate::security::Security;
use crate::shutdown::Shutdown;
use crate::telemetry::connections::{Info, Peer};
use crate::telemetry::counters::Totals;
use crate::telemetry::{Address, Telemetry};
use crate::uploads::Share;
use crate::walks::Walks;
use crate::witness::Witness;
use crate::worker::SharedWorker;

/// One server: its engine, its settings, its threads and what they share.
pub struct ServerState {
    /// The engine, which has the items.
    pub engine: Arc<AnyEngine>,
    /// The clock.
    pub clock: Clock,
    /// The settings at the start.
    pub config: Config,
    /// The present values of settings that can change.
    pub live: LiveCell,
    /// The level of the log, as the `verbosity` command or the setting says.
    verbosity: AtomicU32,
    /// Where it listens, and the protocol there.
    pub addresses: Vec<(Address, Protocol)>,
    /// One for each worker.
    pub workers: Vec<Arc<SharedWorker>>,
    /// The stop of the server.
    pub shutdown: Shutdown,
    /// The pause while another process takes over.
    pub pause: Pause,
    /// What clients' requests wait for.
    pub hold: Hold,
    /// Who may use it.
    pub security: Security,
    /// What clients can make grow, and the bounds of that.
    pub accounts: Accounts,
    /// What it shows of itself.
    pub telemetry: Telemetry,
    /// Copies of all items.
    pub saves: Saves,
    /// Walks over all items that clients ask for.
    pub walks: Walks,
    /// The databases of Redis' clients.
    pub databases: Databases,
    /// The last flush_all.
    pub last_flush: LastFlush,
    /// The channels of Redis' clients.
    pub channels: Arc<Channels>,
    /// The keys that Redis' clients track.
    pub tracking: Arc<Tracking>,
    /// What subscribers are told of keys.
    pub key_events: Arc<KeyspaceEvents>,
    /// The limits on what waits for clients that are sent something unasked.
    pub mail_bounds: Arc<Bounds>,
    /// Settings that Redis' clients set, and that change nothing.
    pub noted: Noted,
    /// The scripts of Redis' clients.
    pub scripts: Library,
    /// Those of Lua.
    pub scripting: Scripting,
}

impl ServerState {
    /// Of a server with this engine and these settings.
    pub fn new(
        mut config: Config,
        engine: Arc<AnyEngine>,
        addresses: Vec<(Address, Protocol)>,
        workers: Vec<Arc<SharedWorker>>,
        shutdown: Shutdown,
    ) -> Self {
        let telemetry = Telemetry::new(config.count_prefixes);
        let memory = engine.stats().memory_limit;
        let (tracking, mail_bounds) = (Tracking::default(), Bounds::default());
        tracking.suit(memory);
        mail_bounds.suit(memory);
        let channels: Arc<Channels> = Arc::default();
        let key_events = KeyspaceEvents::new(Arc::clone(&channels), config.key_events);
        Self {
            clock: Clock::start(),
            live: LiveCell::new(Live::from(&config)),
            verbosity: AtomicU32::new(config.verbosity),
            addresses,
            workers,
            shutdown,
            pause: Pause::default(),
            hold: Hold::default(),
            security: Security::new(&mut config),
            accounts: Accounts::new(config.connections_max.get(), &engine),
            telemetry,
            saves: Saves::default(),
            walks: Walks::default(),
            databases: Databases::new(engine.sharing()),
            last_flush: LastFlush::default(),
            channels,
            tracking: Arc::new(tracking),
            key_events: Arc::new(key_events),
            mail_bounds: Arc::new(mail_bounds),
            noted: Noted::default(),
            scripts: Library::default(),
            scripting: Scripting::default(),
            engine,
            config,
        }
    }

    /// Who is told of items that the engine removes.
    pub fn witness(&self) -> Arc<Witness> {
        Arc::new(Witness {
            watchers: Arc::clone(&self.telemetry.watchers),
            tracking: Arc::clone(&self.tracking),
            key_events: Arc::clone(&self.key_events),
        })
    }

    /// Tells subscribers what the engine has done to keys.
    pub fn tell_key_events(&self) {
        self.key_events.tell_waiting(&self.databases);
    }

    /// True if somebody is told of requests beside those who are answered.
    #[inline]
    pub fn is_watched(&self) -> bool {
        !self.telemetry.watchers.wanted().is_empty()
            || self.tracking.is_used()
            || self.key_events.is_used()
    }

    /// The addresses at which clients of the protocols that `is_it` accepts are served.
    pub fn addresses_of(&self, is_it: impl Fn(Protocol) -> bool) -> impl Iterator<Item = &Address> {
        addresses_of(&self.addresses, is_it)
    }

    /// True if a script of Lua runs for so long that others are told.
    pub fn is_busy(&self) -> bool {
        self.config.lua
            && self
                .scripting
                .running
                .is_longer_than(self.live.load().lua_busy)
    }

    /// Open connections of all workers.
    pub fn connections(&self) -> usize {
        self.workers.iter().map(|worker| worker.connections()).sum()
    }

    /// The number of a connection in `stats conns`, and for watchers. That of a datagram is its address'.
    pub fn number_of(&self, info: &Info) -> usize {
        match (info.place(), info.peer()) {
            (Some(place), _) => self.addresses.len() + place,
            (None, Peer::Udp(to)) => {
                let is_it = |address: &Address| matches!(address, Address::Udp(own) if *own == to);
                let mut addresses = self.addresses.iter();
                addresses
                    .position(|(address, _)| is_it(address))
                    .unwrap_or(0)
            }
            (None, _) => 0,
        }
    }

    /// Wakes every worker.
    pub fn wake_workers(&self) {
        for worker in &self.workers {
            worker.wake();
        }
    }

    /// Lets connections hold less if the system has refused memory since the last call: all workers then look which of
    /// theirs must give some back.
    #[inline]
    pub fn heed_want(&self) {
        let buffers = &self.accounts.buffers;
        if buffers.note_refusals(reserve::openings()) {
            tracing::warn!(
                bytes = buffers.bound(),
                "the system gives no more memory: connections may hold less"
            );
            self.wake_workers();
        }
    }

    /// A connection is closed.
    pub fn leave(&self, info: &Info) {
        // In this order: who redirects to it expects it first, and then looks whether it is open.
        self.telemetry.registry.leave(info);
        self.tracking.leave(info.serial());
    }

    /// Called after a change of the engine's memory limit.
    pub fn follow_memory_limit(&self) {
        let memory = self.engine.stats().memory_limit;
        self.telemetry
            .notify_watchers(format_args!("type=memory_limit bytes={memory}"));
        self.mail_bounds.suit(memory);
        self.set_bounds();
    }

    /// Sets the bounds that depend on the memory limit and on the allowed number of connections. It wakes the workers:
    /// what their connections hold may be too much now.
    pub fn set_bounds(&self) {
        let connections_max = self.live.load().connections_max.get();
        self.accounts.set_bounds(connections_max, &self.engine);
        self.wake_workers();
    }

    /// Enters a value that is about to arrive in the account of such values. `None` if there is no room for it. `pinned`:
    /// bytes of another value, which stays in the engine's memory until this one is complete.
    pub fn begin_upload(&self, len: usize, pinned: usize) -> Option<Share> {
        let begun = self.accounts.uploads.begin_beside(len, pinned)?;
        if begun.turns_many {
            // A worker that sleeps without a timeout may have clients that do not bring their values.
            self.wake_workers();
        }
        Some(begun.share)
    }

    /// Makes all items that exist at `at` expire then, in all databases. Returns how many clients are told of that now, and
    /// whether it was done ([`Engine::try_flush`]).
    pub fn flush(&self, now: Time, at: Time) -> (usize, Result<(), Reply>) {
        let done = self.engine.try_flush(now, at);
        let is_due = self.last_flush.set(now, at);
        if at <= now {
            self.databases.all_emptied();
        }
        let delay = at.since(now).as_secs();
        self.telemetry
            .notify_watchers(format_args!("type=flush_all delay={delay}"));
        // Last: who reads again when it is told must find nothing of before.
        let told = match at <= now || is_due {
            true => self.note_flush(),
            false => 0,
        };
        (told, done)
    }

    /// Tells the clients that track keys that all are gone, or may have changed. Returns how many they are.
    pub fn note_flush(&self) -> usize {
        match self.tracking.is_used() {
            true => self.tracking.flushed(),
            false => 0,
        }
    }

    /// The moment of a flush that is still to come, if there is one.
    pub fn flush_to_come(&self) -> Option<Time> {
        self.last_flush.to_come(self.clock.now())
    }

    /// Keeps settings that Redis' clients have set and that were checked.
    pub fn note_settings(&self, values: Vec<(&'static str, String)>) {
        self.noted.keep(values);
    }

    /// The level of the log.
    pub fn verbosity(&self) -> u32 {
        // Relaxed: a switch for logging.
        self.verbosity.load(Ordering::Relaxed)
    }

    /// The `verbosity` command, or the setting.
    pub fn set_verbosity(&self, level: u32, by: By) {
        // Relaxed: as in verbosity().
        self.verbosity.store(level, Ordering::Relaxed);
        self.config.on_verbosity.notify(level, by);
    }

    /// The counters of all workers, summed.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for worker in &self.workers {
            worker.counters.add_to(&mut totals);
        }
        totals
    }

    /// `stats reset`.
    pub fn reset_stats(&self) {
        for worker in &self.workers {
            worker.counters.reset();
            worker.latencies.reset();
            worker.hot.reset();
        }
        self.telemetry.accepting.reset();
        let prefixes = self.workers.iter().map(|worker| &worker.prefixes);
        self.telemetry.prefixes.clear(prefixes);
        self.engine.reset_stats();
    }
}

/// Those of `addresses` at which clients of the protocols that `is_it` accepts are served.
pub fn addresses_of(
    addresses: &[(Address, Protocol)],
    is_it: impl Fn(Protocol) -> bool,
) -> impl Iterator<Item = &Address> {
    let of_it = addresses.iter().filter(move |(_, its)| is_it(*its));
    of_it.map(|(address, _)| address)
}
