//! Orders of a server's threads that come by chance: a thread stops within the engine until another has gone on.

#[path = "wire/client.rs"]
#[allow(dead_code)]
mod client;

use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use client::{Client, PATIENCE, pause};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Cursor, Engine, Footprint, Handle, Inspect, Key, KeyHasher,
    LimitError, Replies, Reply, Request, Store, Time, Visit,
};
use nuthatch_server::{Address, Config, Listen, Protocol, Server, ServerHandle};

type NaiveHandle = <Naive as Engine>::Handle;

/// What is done once, when a thread comes to a place.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

fn call(hook: &Hook) {
    let once = hook.lock().unwrap().take();
    if let Some(once) = once {
        once();
    }
}

/// A request for this key calls the hook when it has been parsed, before it is carried out.
const LATE: &[u8] = b"late";

/// The oracle, with hooks.
struct Hooked {
    inner: Arc<Naive>,
    at_late: Hook,
    before_visit: Hook,
    visits: AtomicUsize,
}

impl Engine for Hooked {
    type Handle = HookedHandle;

    fn handle(self: &Arc<Self>) -> Self::Handle {
        HookedHandle {
            inner: self.inner.handle(),
            engine: Arc::clone(self),
        }
    }

    fn hasher(&self) -> &KeyHasher {
        self.inner.hasher()
    }

    fn name(&self) -> &'static str {
        "hooked"
    }

    fn stats(&self) -> EngineStats {
        self.inner.stats()
    }

    fn reset_stats(&self) {
        self.inner.reset_stats();
    }

    fn flush(&self, now: Time, at: Time) {
        self.inner.flush(now, at);
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.inner.set_memory_limit(bytes)
    }

    fn item_size_max(&self) -> usize {
        self.inner.item_size_max()
    }

    fn key_len_max(&self) -> usize {
        self.inner.key_len_max()
    }

    fn evicts(&self) -> bool {
        self.inner.evicts()
    }
}

impl Inspect for Hooked {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.inner.footprint(key_len, value_len)
    }
}

impl Audit for Hooked {
    fn audit(&self) -> Result<(), AuditError> {
        self.inner.audit()
    }
}

struct HookedHandle {
    inner: NaiveHandle,
    engine: Arc<Hooked>,
}

impl Handle for HookedHandle {
    type Value = <NaiveHandle as Handle>::Value;
    type Reservation = <NaiveHandle as Handle>::Reservation;
    const COPY_MAX: usize = NaiveHandle::COPY_MAX;

    fn prefetch(&mut self, key: &Key<'_>) {
        if key.bytes().ends_with(LATE) {
            call(&self.engine.at_late);
        }
    }

    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        self.inner.execute(now, batch, replies);
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<Self::Reservation, Reply> {
        self.inner.reserve(now, key, value_len)
    }

    fn commit(&mut self, now: Time, reservation: Self::Reservation, store: &Store<'_>) -> Reply {
        self.inner.commit(now, reservation, store)
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        self.inner.maintain(now, budget)
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        call(&self.engine.before_visit);
        let next = self.inner.visit(now, from, budget, visit);
        self.engine.visits.fetch_add(1, Ordering::Relaxed);
        next
    }
}

/// A server with two workers, and a client of each: a worker with fewer connections gets the next one.
struct Both {
    server: Option<ServerHandle>,
    engine: Arc<Hooked>,
    one: Client,
    other: Option<Client>,
}

impl Both {
    fn new() -> Self {
        let engine = Arc::new(Hooked {
            inner: Naive::new(Options::default()),
            at_late: Hook::default(),
            before_visit: Hook::default(),
            visits: AtomicUsize::new(0),
        });
        let config = Config {
            listeners: vec![Listen::tcp((Ipv4Addr::LOCALHOST, 0)).of(Protocol::Redis)],
            threads: NonZeroUsize::new(2).unwrap(),
            ..Config::default()
        };
        let server = Server::start(config, AnyEngine::new(Arc::clone(&engine))).unwrap();
        let Some(Address::Tcp(address)) = server.addresses_of(Protocol::is_redis).next() else {
            panic!("a TCP address");
        };
        let mut clients = [(); 2].map(|()| Client::tcp(*address));
        for client in &mut clients {
            say(client, "SELECT 1", "+OK");
        }
        let [one, other] = clients;
        Self {
            server: Some(server),
            engine,
            one,
            other: Some(other),
        }
    }

    /// The other worker's client, for a hook.
    fn take_other(&mut self) -> Client {
        self.other.take().unwrap()
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown();
            server.join().unwrap();
        }
    }
}

/// Says a line, and gets one.
#[track_caller]
fn say(client: &mut Client, words: &str, answer: &str) {
    client.send(format!("{words}\r\n"));
    assert_eq!(client.line(), answer, "{words}");
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not come about");
        pause();
    }
}

/// What a FLUSHDB leaves is removed behind it. Not what is stored behind another FLUSHDB, which comes when the sweep has
/// looked at the databases and not yet at the items.
#[test]
fn a_sweep_spares_what_is_stored_while_it_looks() {
    let mut both = Both::new();
    let mut other = both.take_other();
    let (tell, told) = mpsc::channel();
    let hook = move || {
        say(&mut other, "SET left v", "+OK");
        say(&mut other, "FLUSHDB", "+OK");
        say(&mut other, "SET new v", "+OK");
        tell.send(()).unwrap();
    };
    *both.engine.before_visit.lock().unwrap() = Some(Box::new(hook));
    say(&mut both.one, "SET left v", "+OK");
    say(&mut both.one, "FLUSHDB", "+OK");
    told.recv_timeout(PATIENCE).unwrap();
    until(|| both.engine.stats().items <= 1);
    say(&mut both.one, "EXISTS new left", ":1");
}

/// A request that was parsed before a FLUSHDB of another worker, and is carried out when the sweep is over, leaves no item
/// for ever.
#[test]
fn what_a_request_leaves_behind_a_sweep_is_removed_by_another() {
    let mut both = Both::new();
    say(&mut both.one, "SET left v", "+OK");
    let (engine, mut other) = (Arc::clone(&both.engine), both.take_other());
    let hook = move || {
        say(&mut other, "FLUSHDB", "+OK");
        until(|| engine.stats().items == 0 && engine.visits.load(Ordering::Relaxed) >= 2);
    };
    *both.engine.at_late.lock().unwrap() = Some(Box::new(hook));
    say(&mut both.one, "SET late v", "+OK");
    say(&mut both.one, "EXISTS late left", ":0");
    until(|| both.engine.stats().items == 0);
}
