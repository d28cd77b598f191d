//! The state that all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::telemetry::Address;
use crate::telemetry::connections::{Info, Peer, Registry};
use crate::telemetry::counters::{AcceptorCounters, Totals};
use crate::telemetry::prefixes::Prefixes;
use crate::telemetry::watch::{Hub, line};
use nuthatch_base::memory::reserve;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::counters::Counter;
use nuthatch_engine::{AnyEngine, Clock, Cursor, Engine, Time};
use nuthatch_script::Library;
use nuthatch_security::SettingsError;
use nuthatch_security::guesses::Guesses;
use nuthatch_security::passwords::{Passwords, Role};
use nuthatch_security::tls::Tls;

use crate::account::{self, Account};
use crate::live::LiveCell;
use crate::origins::Origins;
use crate::pause::Pause;
use crate::refreshes::Refreshes;
use crate::saves::Saves;
use crate::scans::Scans;
use crate::shutdown::Shutdown;
use crate::uploads::{self, Share, Uploads};
use crate::worker::SharedWorker;
use nuthatch_settings::config::{By, Config, Protocol, TlsSettings};

/// One server: its engine, its settings, its counters.
pub struct ServerState {
    /// The engine, which has the items.
    pub engine: Arc<AnyEngine>,
    /// The settings at the start.
    pub config: Config,
    /// The present values of settings that can change.
    pub live: LiveCell,
    /// Where it listens, and the protocol there.
    pub addresses: Vec<(Address, Protocol)>,
    /// The users and passwords, if the server asks for them.
    pub passwords: Mutex<Option<Arc<Passwords>>>,
    /// Wrong passwords that peers tried recently.
    pub guesses: Guesses,
    /// Certificates, if there are listeners with TLS.
    pub tls: Option<Arc<Tls>>,
    /// Clients that wait until the certificates have been read again.
    pub refreshes: Arc<Refreshes>,
    /// The clock.
    pub clock: Clock,
    /// The stop of the server.
    pub shutdown: Shutdown,
    /// The pause while another process takes over.
    pub pause: Pause,
    /// One for each worker.
    pub workers: Vec<Arc<SharedWorker>>,
    /// The account of connections' buffers.
    pub account: Account,
    /// The account of values that have not arrived completely.
    pub uploads: Arc<Uploads>,
    /// How many connections each address has.
    pub origins: Arc<Origins>,
    /// The acceptor's counters.
    pub accepting: AcceptorCounters,
    /// Open connections.
    pub registry: Registry,
    /// The counts by prefix (`stats detail`).
    pub prefixes: Prefixes,
    /// The watchers of `watch`.
    pub watch: Arc<Hub>,
    /// Set by the `verbosity` command.
    pub verbosity: AtomicU32,
    /// True while a metadump or mgdump runs: there is never a second one.
    pub dumping: Arc<AtomicBool>,
    /// Dumps and other walks over all items since the start.
    pub dumps: AtomicU64,
    /// Steps of the maintenance thread, which alone counts them.
    pub maintained: Counter,
    /// The moment of the last flush_all, in ticks; 0 if there was none.
    pub flushed: AtomicU32,
    /// Statistics of copies (`--save`).
    pub saves: Mutex<Saves>,
    /// Set to ask for one more copy.
    pub save_asked: AtomicBool,
    /// Set by `lru_crawler enable` and `disable`: whether dumps may begin.
    pub crawler_enabled: AtomicBool,
    /// Where SCANs go on.
    pub scans: Scans,
    /// Where the next RANDOMKEY begins.
    pub random: Mutex<Cursor>,
    /// The scripts of Redis' clients.
    pub scripts: Library,
}

impl ServerState {
    /// The addresses at which clients of the protocols that `is_it` accepts are served.
    pub fn addresses_of(&self, is_it: impl Fn(Protocol) -> bool) -> impl Iterator<Item = &Address> {
        addresses_of(&self.addresses, is_it)
    }

    /// True if clients have to log in.
    pub fn has_passwords(&self) -> bool {
        self.config.auth_file.is_some()
    }

    /// True if a client is admitted only after a handshake or a login.
    pub fn admits_late(&self) -> bool {
        self.has_passwords() || self.tls.is_some()
    }

    /// The role of the user with this name and password, if there is one.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> Option<Role> {
        let passwords = self.passwords.lock().clone();
        passwords?.admits(name, password)
    }

    /// Reads the file of passwords again, if there is one. Errors: it cannot be read, and the old passwords stay valid.
    pub fn read_passwords(&self) -> Option<Result<(), SettingsError>> {
        let path = self.config.auth_file.as_deref()?;
        let read = Passwords::read(path).map(|read| *self.passwords.lock() = Some(Arc::new(read)));
        Some(read)
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

    /// Lets connections hold less if the system has refused memory since the last call: all workers then look which of
    /// theirs must give some back.
    #[inline]
    pub fn heed_want(&self) {
        if self.account.note_refusals(reserve::openings()) {
            tracing::warn!(
                bytes = self.account.bound(),
                "the system gives no more memory: connections may hold less"
            );
            self.wake_workers();
        }
    }

    /// Wakes every worker.
    pub fn wake_workers(&self) {
        for worker in &self.workers {
            worker.wake();
        }
    }

    /// Publishes an event of the server itself to the clients that watch it.
    pub fn notify_watchers(&self, event: std::fmt::Arguments<'_>) {
        line::system(&self.watch, event);
    }

    /// Reads certificates and keys again, if there are any, from the files that `newer` names, or from the same files
    /// as before. Errors: the old ones stay in use.
    pub fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
    ) -> Option<Result<(), SettingsError>> {
        let refreshed = self.tls.as_ref()?.refresh(newer);
        let state = if refreshed.is_ok() { "ok" } else { "failed" };
        self.notify_watchers(format_args!("type=certificates state={state}"));
        Some(refreshed)
    }

    /// The same at a client's request, from the newest files. False if the old ones stay in use: the log says why, since
    /// the name of a file is not for every client.
    pub fn read_certificates(&self) -> bool {
        let newest = self.config.newest_tls.find();
        match self.refresh_certificates(newest.as_ref()) {
            Some(Err(error)) => {
                tracing::warn!(%error, "refresh_certs: the certificates of before stay");
                false
            }
            Some(Ok(())) | None => true,
        }
    }

    /// Called after a change of the engine's memory limit.
    pub fn follow_memory_limit(&self) {
        let memory = self.engine.stats().memory_limit;
        self.notify_watchers(format_args!("type=memory_limit bytes={memory}"));
        self.set_bounds();
    }

    /// Sets the bounds that depend on the memory limit: that of the connections' buffers, for which the allowed number
    /// of connections counts too, and that of values under way.
    pub fn set_bounds(&self) {
        let connections_max = self.live.load().connections_max.get();
        let memory = self.engine.stats().memory_limit;
        self.account
            .set_bound(account::bound(connections_max, memory));
        self.uploads
            .set_bound(uploads::bound(memory, self.engine.item_size_max()));
        self.wake_workers();
    }

    /// Enters a value that is about to arrive in the account of such values. `None` if there is no room for it. `pinned`:
    /// bytes of another value, which stays in the engine's memory until this one is complete.
    pub fn begin_upload(&self, len: usize, pinned: usize) -> Option<Share> {
        let begun = self.uploads.begin_beside(len, pinned)?;
        if begun.turns_many {
            // A worker that sleeps without a timeout may have clients that do not bring their values.
            self.wake_workers();
        }
        Some(begun.share)
    }

    /// The counters of all workers, summed.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for worker in &self.workers {
            worker.counters.add_to(&mut totals);
        }
        totals
    }

    /// Makes all items that exist at `at` expire then.
    pub fn flush(&self, now: Time, at: Time) {
        // Relaxed: a statistic, and a hint for the thread that saves items, which may see it a moment later.
        self.flushed.store(at.0, Ordering::Relaxed);
        self.engine.flush(now, at);
        let delay = at.since(now).as_secs();
        self.notify_watchers(format_args!("type=flush_all delay={delay}"));
    }

    /// The second of the last flush; 0 if there was none.
    pub fn flushed(&self) -> u32 {
        Time(self.flushed.load(Ordering::Relaxed)).seconds()
    }

    /// The moment of a flush that is still to come, if there is one.
    pub fn flush_to_come(&self) -> Option<Time> {
        let at = Time(self.flushed.load(Ordering::Relaxed));
        (at > self.clock.now()).then_some(at)
    }

    /// The `verbosity` command, or the setting.
    pub fn set_verbosity(&self, level: u32, by: By) {
        // Relaxed: a switch for logging.
        self.verbosity.store(level, Ordering::Relaxed);
        self.config.on_verbosity.notify(level, by);
    }

    /// `stats reset`.
    pub fn reset_stats(&self) {
        for worker in &self.workers {
            worker.counters.reset();
            worker.latencies.reset();
            worker.hot.reset();
        }
        self.accepting.reset();
        let prefixes = self.workers.iter().map(|worker| &worker.prefixes);
        self.prefixes.clear(prefixes);
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
