//! The store as an engine: a batch of requests goes to the servers of a job, and replies come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Op;
use nuthatch_engine::counters::Registry;
use nuthatch_engine::stats::{ClassStats, EngineStats};
use nuthatch_engine::{
    Audit, AuditError, Cursor, Engine, Footprint, Handle, Inspect, Key, KeyHasher, LimitError,
    Replies, Reply, Request, Reservation, Store, Time, Value, Visit, assert_commits,
};
use nuthatch_fabric::Fabric;

use crate::block;
use crate::client::Client;
use crate::config::Config;
use crate::layout::Layout;
use crate::report::{RequestCounts, SilentPes};
use crate::shift::Moved;
use crate::stats::{COUNTS, ClientStats, ServerStats};

/// Longer values are handed out whole.
pub const COPY_MAX: usize = 8192;

/// Bytes that reservations may have in a PE's own memory, where the largest item is not larger.
const RESERVED_MAX: usize = 64 << 20;

/// A client's side of the store: sessions that threads share.
pub struct Cluster<F: Fabric> {
    pub(crate) clients: Box<[Mutex<Client<F>>]>,
    next: AtomicUsize,
    /// The fabric of the first session's PE.
    pub(crate) fabric: Arc<F>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) config: Config,
    hasher: KeyHasher,
    counts: Arc<Registry<COUNTS>>,
    /// Each session's requests, and for each server the requests before the last reset.
    pub(crate) requests: Vec<RequestCounts>,
    pub(crate) asked_before: Box<[AtomicU64]>,
    pub(crate) silent: SilentPes,
    reserved: Arc<AtomicUsize>,
    /// What is dropped when the engine is.
    _keeper: Option<Box<dyn Send + Sync>>,
}

impl<F: Fabric> Cluster<F> {
    /// With these sessions, which are assigned to threads in turn.
    pub(crate) fn new(
        clients: Vec<Client<F>>,
        layout: Arc<Layout>,
        config: &Config,
        counts: Arc<Registry<COUNTS>>,
        keeper: Option<Box<dyn Send + Sync>>,
    ) -> Self {
        Self {
            fabric: Arc::clone(clients[0].fabric()),
            requests: clients.iter().map(Client::requests).collect(),
            asked_before: (0..layout.servers).map(|_| AtomicU64::new(0)).collect(),
            silent: SilentPes::default(),
            clients: clients.into_iter().map(Mutex::new).collect(),
            next: AtomicUsize::new(0),
            hasher: KeyHasher::seeded(config.seed),
            layout,
            config: config.clone(),
            counts,
            reserved: Arc::new(AtomicUsize::new(0)),
            _keeper: keeper,
        }
    }

    /// What this PE's sessions counted.
    pub fn client_stats(&self) -> ClientStats {
        ClientStats::of(&self.counts.sums_since_reset())
    }

    /// The statistics of each server, except for servers that are gone.
    pub fn server_stats(&self) -> Vec<ServerStats> {
        let mut client = self.clients[0].lock();
        (0..self.layout.servers)
            .filter_map(|server| client.server_stats(server))
            .collect()
    }
}

/// A value held in a thread's own memory.
pub struct LargeValue(Box<[u8]>);

impl LargeValue {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl Value for LargeValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        &self.0[offset..]
    }

    fn memory(&self) -> usize {
        self.0.len()
    }
}

/// A thread's handle.
pub struct ClusterHandle<F: Fabric> {
    engine: Arc<Cluster<F>>,
    client: usize,
}

/// A value that arrives in pieces, in this PE's own memory until it is complete.
pub struct Pending {
    key: Box<[u8]>,
    hash: u64,
    value: Vec<u8>,
    len: usize,
    /// The bytes of all reservations of the engine.
    reserved: Arc<AtomicUsize>,
}

impl Reservation for Pending {
    fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.missing(), "more than was reserved");
        self.value.extend_from_slice(bytes);
    }

    fn missing(&self) -> usize {
        self.len - self.value.len()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Relaxed: a count.
        self.reserved.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl<F: Fabric> Engine for Cluster<F> {
    type Handle = ClusterHandle<F>;

    fn handle(self: &Arc<Self>) -> ClusterHandle<F> {
        // Relaxed: which session does not matter.
        let client = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        ClusterHandle {
            engine: Arc::clone(self),
            client,
        }
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn name(&self) -> &'static str {
        "cluster"
    }

    fn stats(&self) -> EngineStats {
        let mut sum = EngineStats::default();
        for server in self.server_stats() {
            server.add_to(&mut sum);
        }
        let mut classes = vec![ClassStats::default(); self.layout.classes.len()];
        let mut client = self.clients[0].lock();
        (0..self.layout.servers).for_each(|server| client.add_classes(server, &mut classes));
        drop(client);
        (sum.classes, sum.vacant_classes) = classes.into_iter().partition(|class| class.pages > 0);
        let client = self.client_stats();
        sum.total_items += client.direct_sets;
        sum.read_retries += client.torn;
        sum
    }

    fn reset_stats(&self) {
        self.clients[0].lock().reset_servers();
        self.counts.reset();
        self.reset_requests();
    }

    fn flush(&self, now: Time, at: Time) {
        let mut client = self.clients[0].lock();
        let shift = client.shift(now);
        client.flush(shift.time(now), shift.time(at));
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        let each = bytes / self.layout.servers;
        let servers = self.layout.servers;
        let (least, most) = (crate::config::MEMORY_MIN, self.config.memory_max);
        // The limit is that of all servers together, and each has the same part.
        let most = most.saturating_mul(servers).saturating_add(servers - 1);
        LimitError::check(bytes, least * servers, most)?;
        self.clients[0].lock().set_limit(each);
        Ok(())
    }

    fn item_size_max(&self) -> usize {
        self.config.item_size_max
    }

    fn evicts(&self) -> bool {
        self.config.evicts
    }
}

impl<F: Fabric> Inspect for Cluster<F> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        let words = block::pair_words(key_len, value_len);
        let classes = &self.layout.classes;
        let class = classes.class_of(words).unwrap_or(classes.len() - 1);
        Footprint {
            class: class + 1,
            size: classes.words(class) * 8,
        }
    }

    fn own_lines(&self) -> Vec<(String, String)> {
        self.report()
    }
}

impl<F: Fabric> Audit for Cluster<F> {
    fn audit(&self) -> Result<(), AuditError> {
        let mut client = self.clients[0].lock();
        (0..self.layout.servers).try_for_each(|server| client.audit(server))
    }
}

impl<F: Fabric> Handle for ClusterHandle<F> {
    type Value = LargeValue;
    type Reservation = Pending;
    const COPY_MAX: usize = COPY_MAX;

    fn execute<R: Replies<LargeValue>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        let mut client = self.engine.clients[self.client].lock();
        let shift = client.shift(now);
        if shift.is_none() {
            return client.execute(now, batch, replies);
        }
        let moved = |request| shift.request(request, now);
        let batch: Vec<_> = batch.iter().map(moved).collect();
        client.execute(shift.time(now), &batch, &mut Moved { replies, shift });
    }

    fn reserve(&mut self, _: Time, key: Key<'_>, value_len: usize) -> Result<Pending, Reply> {
        let engine = &*self.engine;
        let words = value_len.checked_add(key.bytes().len() + block::OVERHEAD * 8);
        if words.is_none_or(|bytes| bytes > engine.config.item_size_max) {
            return Err(Reply::TooLarge);
        }
        // Relaxed: a count.
        let before = engine.reserved.fetch_add(value_len, Ordering::Relaxed);
        let pending = Pending {
            key: key.bytes().into(),
            hash: key.hash(),
            value: Vec::new(),
            len: value_len,
            reserved: Arc::clone(&engine.reserved),
        };
        match before + value_len <= RESERVED_MAX.max(engine.config.item_size_max) {
            true => Ok(pending),
            // Dropping it takes its bytes off the count.
            false => Err(Reply::OutOfMemory),
        }
    }

    fn commit(&mut self, now: Time, reservation: Pending, store: &Store<'_>) -> Reply {
        let is_own = Arc::ptr_eq(&reservation.reserved, &self.engine.reserved);
        assert_commits(&reservation, is_own);
        let request = Request {
            key: Key::hashed(&reservation.key, reservation.hash),
            op: Op::Store(Store {
                value: &reservation.value,
                ..*store
            }),
        };
        let mut only = OnlyReply(None);
        self.execute(now, &[request], &mut only);
        only.0.expect("a store is answered")
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        let mut client = self.engine.clients[self.client].lock();
        let now = client.shift(now).time(now);
        client.maintain(now, budget)
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        let mut client = self.engine.clients[self.client].lock();
        let shift = client.shift(now);
        client.visit(shift.time(now), from, budget, &mut |met| {
            let item = shift.item(&met.item);
            visit(Visit { item, ..met });
        })
    }
}

/// Takes the reply of a store.
struct OnlyReply(Option<Reply>);

impl<V> Replies<V> for OnlyReply {
    fn begin(&mut self, _: usize, _: &nuthatch_engine::Item) -> &mut [std::mem::MaybeUninit<u8>] {
        unreachable!("a store is answered without a value")
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &nuthatch_engine::Item, _: V) {}

    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = Some(reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::in_process;

    /// Counts long values.
    #[derive(Default)]
    struct Counted {
        values: usize,
        memory: usize,
    }

    impl Replies<LargeValue> for Counted {
        fn begin(
            &mut self,
            _: usize,
            _: &nuthatch_engine::Item,
        ) -> &mut [std::mem::MaybeUninit<u8>] {
            unreachable!("all values are long")
        }

        fn commit(&mut self, _: usize) {}

        fn retract(&mut self, _: usize) {}

        fn large(&mut self, _: usize, _: &nuthatch_engine::Item, value: LargeValue) {
            self.values += 1;
            self.memory += value.memory();
        }

        fn done(&mut self, _: usize, _: Reply) {}
    }

    /// Batches of long values leave a session with buffers of usual sizes.
    #[test]
    fn a_batch_of_long_values_leaves_no_memory_behind() {
        let config = Config {
            directory: 64,
            ..Config::default()
        };
        let engine = in_process(&config, 1).unwrap();
        let mut handle = engine.handle();
        let names: Vec<_> = (0..24_u8).map(|number| [number]).collect();
        let value = vec![7; 900_000];
        for name in &names {
            let key = Key::new(name, engine.hasher());
            let op = Op::Store(Store::set(&value));
            let mut reply = OnlyReply(None);
            handle.execute(Time(1000), &[Request { key, op }], &mut reply);
            assert!(matches!(reply.0, Some(Reply::Stored(_))));
        }
        let gets: Vec<_> = names
            .iter()
            .map(|name| Request {
                key: Key::new(name, engine.hasher()),
                op: Op::Get,
            })
            .collect();
        let mut replies = Counted::default();
        handle.execute(Time(1000), &gets, &mut replies);
        assert_eq!(replies.values, names.len());
        // A value that is delivered has no other owner.
        assert_eq!(replies.memory, names.len() * value.len());
        let (peak, kept) = engine.clients[0].lock().buffer_words();
        assert!(peak <= 2 * value.len() / 8, "{peak} words at once");
        assert!(kept <= 1 << 18, "{kept} words kept");
    }

    #[test]
    fn the_largest_item_can_be_reserved_however_large_it_is() {
        let config = Config {
            memory: 512 << 20,
            memory_max: 512 << 20,
            item_size_max: 100 << 20,
            buckets: Some(8),
            ..Config::default()
        };
        let engine = in_process(&config, 1).unwrap();
        let key = Key::new(b"key", engine.hasher());
        let mut handle = engine.handle();
        let one = handle.reserve(Time(1000), key, 90 << 20);
        assert!(one.is_ok());
        // Not several at once.
        let other = handle.reserve(Time(1000), key, 90 << 20);
        assert_eq!(other.err(), Some(Reply::OutOfMemory));
    }
}
