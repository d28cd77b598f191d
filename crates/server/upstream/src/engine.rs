//! The engine: a near cache, and the servers whose items it has copies of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuthatch_base::hash::KeyHasher;
use nuthatch_base::sync::clock::Clock;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_client::meta::{Command, Flags, Verb};
use nuthatch_client::{Client, Error};
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::request::PREFIX_LEN_MAX;
use nuthatch_engine::{
    Audit, AuditError, Engine, Evictions, Footprint, Inspect, Key, LimitError, Reply, Sharing,
    Time,
    index_stats::IndexHistogram,
    stats::{EngineStats, UpstreamStats},
};

use crate::coherence::Table;
use crate::counters::{Counters, add};
use crate::handle::UpstreamHandle;
use crate::translate::Found;

/// What a read comes to: an item, none, or no answer.
pub(crate) type Outcome = Option<Option<Found>>;

/// A near cache of other servers.
#[derive(Debug)]
pub struct Upstream<E> {
    pub(crate) near: Arc<E>,
    pub(crate) client: Client,
    /// How long a copy is used.
    pub(crate) lifetime: Duration,
    pub(crate) table: Table<Outcome>,
    pub(crate) counters: Counters,
    /// Tells how long a thread has waited.
    pub(crate) clock: Clock,
    /// The servers that do not answer, as the log was told, and whether there are any.
    silent: Mutex<Vec<String>>,
    some_are_silent: AtomicBool,
}

impl<E: Engine> Upstream<E> {
    /// A near cache in this engine of the servers of this client. Copies are used for so long: others' changes are seen so
    /// much later at most, and a sixteenth of a second.
    pub fn new(near: Arc<E>, client: Client, lifetime: Duration) -> Self {
        Self {
            near,
            client,
            lifetime,
            table: Table::default(),
            counters: Counters::default(),
            clock: Clock::start(),
            silent: Mutex::default(),
            some_are_silent: AtomicBool::new(false),
        }
    }

    /// A request of this key got no answer. The log is told of each server's first.
    pub(crate) fn note_failure(&self, key: &Key<'_>, error: &Error) {
        add(&self.counters.failed, 1);
        let server = self.client.server_of(name_of(key));
        let mut silent = self.silent.lock();
        if !silent.contains(&server) {
            tracing::warn!(
                "--upstream: {server}: {error}; until it answers, its items are missing, and changes of them fail"
            );
            silent.push(server);
            // Relaxed: who misses it looks next time.
            self.some_are_silent.store(true, Ordering::Relaxed);
        }
    }

    /// A request of this key was answered.
    pub(crate) fn note_success(&self, key: &Key<'_>) {
        // Relaxed: as above.
        if !self.some_are_silent.load(Ordering::Relaxed) {
            return;
        }
        let server = self.client.server_of(name_of(key));
        let mut silent = self.silent.lock();
        if let Some(at) = silent.iter().position(|one| *one == server) {
            silent.remove(at);
            self.some_are_silent
                .store(!silent.is_empty(), Ordering::Relaxed);
            tracing::warn!("--upstream: {server}: it answers again");
        }
    }

    /// Some reads renew nothing. Where their command has won the right to renew a stale item, it is to be won again. The items
    /// by their keys and numbers.
    pub(crate) fn give_back(&self, won: &[(Key<'_>, u64)]) {
        if won.is_empty() {
            return;
        }
        let flags = won.iter().map(|(_, cas)| {
            let mut flags = Flags::default();
            flags.bare("I").number('C', *cas);
            flags
        });
        let flags: Vec<_> = flags.collect();
        let commands = won.iter().zip(&flags).map(|((key, _), flags)| Command {
            verb: Verb::Delete,
            key: name_of(key),
            flags,
            value: &[],
            is_read: false,
        });
        let commands: Vec<_> = commands.collect();
        // What was changed meanwhile, or is gone, needs nothing.
        let _ = self.client.commands(&commands);
    }
}

/// The key by which the servers know an item.
pub(crate) fn name_of<'k>(key: &Key<'k>) -> &'k [u8] {
    Namespace::split(key.bytes()).1
}

impl<E: Engine> Engine for Upstream<E> {
    type Handle = UpstreamHandle<E>;

    fn handle(self: &Arc<Self>) -> Self::Handle {
        UpstreamHandle::new(self)
    }

    fn hasher(&self) -> &KeyHasher {
        self.near.hasher()
    }

    fn name(&self) -> &'static str {
        "upstream"
    }

    fn stats(&self) -> EngineStats {
        self.near.stats()
    }

    fn reset_stats(&self) {
        self.near.reset_stats();
        self.counters.reset();
    }

    /// Flushes the servers, too.
    fn flush(&self, now: Time, at: Time) {
        // The log has been told.
        let _ = self.try_flush(now, at);
    }

    fn try_flush(&self, now: Time, at: Time) -> Result<(), Reply> {
        let _change = self.table.change_all();
        self.near.flush(now, now);
        self.client.flush_all(at.since(now)).map_err(|error| {
            add(&self.counters.failed, 1);
            tracing::warn!("--upstream: flush_all: {error}");
            Reply::Unavailable
        })
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.near.set_memory_limit(bytes)
    }

    fn holds_copies(&self) -> bool {
        true
    }

    fn item_size_max(&self) -> usize {
        self.near.item_size_max()
    }

    fn key_len_max(&self) -> usize {
        let most = nuthatch_client::KEY_MAX + PREFIX_LEN_MAX;
        self.near.key_len_max().min(most)
    }

    fn evicts(&self) -> bool {
        self.near.evicts()
    }

    fn note_use(&self, address: u64) {
        self.near.note_use(address);
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        self.near.sharing()
    }
}

impl<E: Engine> Inspect for Upstream<E> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.near.footprint(key_len, value_len)
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        self.near.index_histogram(sample)
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        self.near.report_evictions(to);
    }

    fn upstream_stats(&self) -> Option<UpstreamStats> {
        Some(self.counters.read())
    }
}

impl<E: Engine> Audit for Upstream<E> {
    fn audit(&self) -> Result<(), AuditError> {
        self.near.audit()
    }
}
