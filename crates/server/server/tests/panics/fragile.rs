//! An engine and a log that panic at certain keys.

use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{
    AnyEngine, Audit, AuditError, Cursor, Engine, Footprint, Handle, Inspect, Item, Key, KeyHasher,
    LimitError, Replies, Reply, Request, Store, Time, Visit,
};
use tracing::field::{self, Field};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A command that names this panics outside of the engine, when its request is in the batch.
pub const OUTSIDE: &str = "outside";

/// A request for this key panics amid its execution, when the engine replies.
pub const INSIDE: &str = "inside";

/// The same, and no visit of the items ends any more.
pub const FOR_EVER: &str = "for-ever";

/// An engine that panics amid a request for certain keys.
pub struct Fragile<E> {
    inner: Arc<E>,
    hangs: AtomicBool,
}

impl<E: Engine> Fragile<E> {
    pub fn over(inner: Arc<E>) -> Arc<AnyEngine> {
        let hangs = AtomicBool::new(false);
        AnyEngine::new(Arc::new(Self { inner, hangs }))
    }
}

impl<E: Engine> Engine for Fragile<E> {
    type Handle = FragileHandle<E>;

    fn handle(self: &Arc<Self>) -> Self::Handle {
        FragileHandle {
            inner: self.inner.handle(),
            engine: Arc::clone(self),
        }
    }

    fn hasher(&self) -> &KeyHasher {
        self.inner.hasher()
    }

    fn name(&self) -> &'static str {
        "fragile"
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

impl<E: Engine> Inspect for Fragile<E> {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        self.inner.footprint(key_len, value_len)
    }
}

impl<E: Engine> Audit for Fragile<E> {
    fn audit(&self) -> Result<(), AuditError> {
        self.inner.audit()
    }
}

pub struct FragileHandle<E: Engine> {
    inner: E::Handle,
    engine: Arc<Fragile<E>>,
}

impl<E: Engine> Handle for FragileHandle<E> {
    type Value = <E::Handle as Handle>::Value;
    type Reservation = <E::Handle as Handle>::Reservation;
    const COPY_MAX: usize = <E::Handle as Handle>::COPY_MAX;

    fn execute<R: Replies<Self::Value>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        let hangs = |request: &Request<'_>| request.key.bytes() == FOR_EVER.as_bytes();
        if batch.iter().any(hangs) {
            self.engine.hangs.store(true, Ordering::Relaxed);
        }
        self.inner
            .execute(now, batch, &mut FragileReplies { batch, replies });
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
        while self.engine.hangs.load(Ordering::Relaxed) {
            thread::park();
        }
        self.inner.visit(now, from, budget, visit)
    }
}

/// Replies that panic, whatever the engine holds then.
struct FragileReplies<'a, R> {
    batch: &'a [Request<'a>],
    replies: &'a mut R,
}

impl<R> FragileReplies<'_, R> {
    fn panic_if_due(&self, index: usize) {
        let key = self.batch[index].key.bytes();
        assert!(
            key != INSIDE.as_bytes() && key != FOR_EVER.as_bytes(),
            "as planned"
        );
    }
}

impl<V: nuthatch_engine::Value, R: Replies<V>> Replies<V> for FragileReplies<'_, R> {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.panic_if_due(index);
        self.replies.begin(index, item)
    }

    fn commit(&mut self, index: usize) {
        self.replies.commit(index);
    }

    fn retract(&mut self, index: usize) {
        self.replies.retract(index);
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        self.panic_if_due(index);
        self.replies.large(index, item, value);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.panic_if_due(index);
        self.replies.done(index, reply);
    }
}

/// A log that panics at a command with a certain key: the server logs a command when its request is in the batch. And once
/// at an event of the thread with a certain name, whatever it is.
pub struct FragileLog {
    thread: String,
    has_panicked: AtomicBool,
}

impl FragileLog {
    pub fn of(thread: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            has_panicked: AtomicBool::new(false),
        }
    }
}

impl Subscriber for FragileLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("nuthatch")
    }

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() == Level::DEBUG {
            event.record(&mut Words);
        }
        let is_due = thread::current().name() == Some(&self.thread);
        assert!(
            !is_due || self.has_panicked.swap(true, Ordering::Relaxed),
            "as planned"
        );
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Words;

impl field::Visit for Words {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        let words = format!("{value:?}");
        assert!(!words.contains(&format!("set {OUTSIDE} ")), "as planned");
    }
}
