//! An engine whose type is chosen while the program runs: the code that drives engines is compiled once, not once for
//! each.
//!
//! Each call goes through a table of functions as well: one more for a batch, one for each reply, and one for each key
//! that is hinted. A large value and a reservation are boxed. (Measured: docs/notebook.md.)
//!
//! All calls of a server pass here, so this is also the border at which a panic inside of an engine is noted: see
//! [`has_unwound`].

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::index_stats::IndexHistogram;
use crate::stats::{EngineStats, MessageStats, UpstreamStats};
use crate::{
    Audit, AuditError, Cursor, Engine, Evictions, Footprint, Handle, Inspect, Item, Key, KeyHasher,
    LimitError, Replies, Reply, Request, Reservation, Sharing, Store, Time, Value, Visit,
};

thread_local! {
    static UNWOUND: Cell<bool> = const { Cell::new(false) };
}

/// True if a call of this thread into any engine, or a callback of such a call, has panicked: the engine may be left
/// with a lock held or a change half made. A panic that came through no engine leaves this false.
pub fn has_unwound() -> bool {
    UNWOUND.get()
}

/// Dropped by a panic only: a call that returns forgets it, and so costs nothing.
struct Unwinding;

impl Drop for Unwinding {
    fn drop(&mut self) {
        UNWOUND.set(true);
    }
}

/// Calls into an engine.
#[inline(always)]
fn inside<R>(call: impl FnOnce() -> R) -> R {
    let unwinding = Unwinding;
    let returned = call();
    mem::forget(unwinding);
    returned
}

/// Any engine.
pub struct AnyEngine(Arc<dyn DynEngine>);

impl AnyEngine {
    /// An engine without its type.
    pub fn new<E: Engine>(engine: Arc<E>) -> Arc<Self> {
        Arc::new(Self(engine))
    }
}

/// [`Engine`] without its associated types.
trait DynEngine: Inspect + Audit + Send + Sync {
    fn handle(self: Arc<Self>) -> Box<dyn DynHandle>;
    fn hasher(&self) -> &KeyHasher;
    fn name(&self) -> &'static str;
    fn stats(&self) -> EngineStats;
    fn reset_stats(&self);
    fn flush(&self, now: Time, at: Time);
    fn try_flush(&self, now: Time, at: Time) -> Result<(), Reply>;
    fn number_from(&self, least: u64);
    fn next_number(&self) -> u64;
    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError>;
    fn holds_copies(&self) -> bool;
    fn item_size_max(&self) -> usize;
    fn key_len_max(&self) -> usize;
    fn evicts(&self) -> bool;
    fn note_use(&self, address: u64);
    fn sharing(&self) -> Option<Arc<dyn Sharing>>;
}

impl<E: Engine> DynEngine for E {
    fn handle(self: Arc<Self>) -> Box<dyn DynHandle> {
        // (Engines of models copy less; models use their own types.)
        const { assert!(cfg!(loom) || E::Handle::COPY_MAX == AnyHandle::COPY_MAX) };
        Box::new(Engine::handle(&self))
    }

    fn hasher(&self) -> &KeyHasher {
        Engine::hasher(self)
    }

    fn name(&self) -> &'static str {
        Engine::name(self)
    }

    fn stats(&self) -> EngineStats {
        Engine::stats(self)
    }

    fn reset_stats(&self) {
        Engine::reset_stats(self);
    }

    fn flush(&self, now: Time, at: Time) {
        Engine::flush(self, now, at);
    }

    fn try_flush(&self, now: Time, at: Time) -> Result<(), Reply> {
        Engine::try_flush(self, now, at)
    }

    fn number_from(&self, least: u64) {
        Engine::number_from(self, least);
    }

    fn next_number(&self) -> u64 {
        Engine::next_number(self)
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        Engine::set_memory_limit(self, bytes)
    }

    fn holds_copies(&self) -> bool {
        Engine::holds_copies(self)
    }

    fn item_size_max(&self) -> usize {
        Engine::item_size_max(self)
    }

    fn key_len_max(&self) -> usize {
        Engine::key_len_max(self)
    }

    fn evicts(&self) -> bool {
        Engine::evicts(self)
    }

    fn note_use(&self, address: u64) {
        Engine::note_use(self, address);
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        Engine::sharing(self)
    }
}

impl Engine for AnyEngine {
    type Handle = AnyHandle;

    fn any(self: Arc<Self>) -> Arc<AnyEngine> {
        self
    }

    fn handle(self: &Arc<Self>) -> AnyHandle {
        AnyHandle(Held::new(inside(|| Arc::clone(&self.0).handle())))
    }

    fn hasher(&self) -> &KeyHasher {
        inside(|| self.0.hasher())
    }

    fn name(&self) -> &'static str {
        inside(|| self.0.name())
    }

    fn stats(&self) -> EngineStats {
        inside(|| self.0.stats())
    }

    fn reset_stats(&self) {
        inside(|| self.0.reset_stats());
    }

    fn flush(&self, now: Time, at: Time) {
        inside(|| self.0.flush(now, at));
    }

    fn try_flush(&self, now: Time, at: Time) -> Result<(), Reply> {
        inside(|| self.0.try_flush(now, at))
    }

    fn number_from(&self, least: u64) {
        inside(|| self.0.number_from(least));
    }

    fn next_number(&self) -> u64 {
        inside(|| self.0.next_number())
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        inside(|| self.0.set_memory_limit(bytes))
    }

    fn holds_copies(&self) -> bool {
        inside(|| self.0.holds_copies())
    }

    fn item_size_max(&self) -> usize {
        inside(|| self.0.item_size_max())
    }

    fn key_len_max(&self) -> usize {
        inside(|| self.0.key_len_max())
    }

    fn evicts(&self) -> bool {
        inside(|| self.0.evicts())
    }

    fn note_use(&self, address: u64) {
        inside(|| self.0.note_use(address));
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        inside(|| self.0.sharing())
    }
}

impl Inspect for AnyEngine {
    fn footprint(&self, key_len: usize, value_len: usize) -> Footprint {
        inside(|| self.0.footprint(key_len, value_len))
    }

    fn index_histogram(&self, sample: u64) -> Option<IndexHistogram> {
        inside(|| self.0.index_histogram(sample))
    }

    fn report_evictions(&self, to: Arc<dyn Evictions>) {
        inside(|| self.0.report_evictions(to));
    }

    fn message_stats(&self) -> Option<MessageStats> {
        inside(|| self.0.message_stats())
    }

    fn upstream_stats(&self) -> Option<UpstreamStats> {
        inside(|| self.0.upstream_stats())
    }

    fn own_lines(&self) -> Vec<(String, String)> {
        inside(|| self.0.own_lines())
    }
}

impl Audit for AnyEngine {
    fn audit(&self) -> Result<(), AuditError> {
        self.0.audit()
    }
}

/// A thread's handle to any engine.
pub struct AnyHandle(Held<dyn DynHandle>);

/// A large value of any engine.
pub struct AnyValue(Held<dyn Value>);

/// An item under construction, of any engine.
pub struct AnyReservation(Held<dyn DynReservation>);

/// What an engine has given. To drop it is a call into that engine, too: a value releases its pin, a reservation its
/// memory.
struct Held<T: ?Sized>(Option<Box<T>>);

impl<T: ?Sized> Held<T> {
    fn new(given: Box<T>) -> Self {
        Self(Some(given))
    }

    /// Takes it out. It is there until this or the drop.
    fn into_inner(mut self) -> Box<T> {
        self.0.take().expect("it is taken once")
    }
}

impl<T: ?Sized> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.0.as_deref().expect("nobody has taken it")
    }
}

impl<T: ?Sized> DerefMut for Held<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("nobody has taken it")
    }
}

impl<T: ?Sized> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(given) = self.0.take() {
            inside(|| drop(given));
        }
    }
}

/// [`Handle`] without its associated types.
trait DynHandle: Send {
    fn prefetch(&mut self, key: &Key<'_>);
    fn execute(&mut self, now: Time, batch: &[Request<'_>], replies: &mut dyn Replies<AnyValue>);
    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<AnyReservation, Reply>;
    fn commit(&mut self, now: Time, reservation: AnyReservation, store: &Store<'_>) -> Reply;
    fn maintain(&mut self, now: Time, budget: usize) -> bool;
    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor>;
}

/// A [`Reservation`] that can be returned to the engine that made it.
trait DynReservation: Reservation {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<R: Reservation + 'static> DynReservation for R {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Passes one engine's replies on.
struct Boxing<'a>(&'a mut dyn Replies<AnyValue>);

impl<V: Value + 'static> Replies<V> for Boxing<'_> {
    #[inline(always)]
    fn begin(&mut self, index: usize, item: &Item) -> &mut [std::mem::MaybeUninit<u8>] {
        self.0.begin(index, item)
    }

    #[inline(always)]
    fn commit(&mut self, index: usize) {
        self.0.commit(index);
    }

    fn retract(&mut self, index: usize) {
        self.0.retract(index);
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        self.0
            .large(index, item, AnyValue(Held::new(Box::new(value))));
    }

    #[inline(always)]
    fn done(&mut self, index: usize, reply: Reply) {
        self.0.done(index, reply);
    }
}

impl<H> DynHandle for H
where
    H: Handle<Value: 'static, Reservation: 'static>,
{
    fn prefetch(&mut self, key: &Key<'_>) {
        Handle::prefetch(self, key);
    }

    fn execute(&mut self, now: Time, batch: &[Request<'_>], replies: &mut dyn Replies<AnyValue>) {
        Handle::execute(self, now, batch, &mut Boxing(replies));
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<AnyReservation, Reply> {
        let reserved = Handle::reserve(self, now, key, value_len)?;
        Ok(AnyReservation(Held::new(Box::new(reserved))))
    }

    fn commit(&mut self, now: Time, reservation: AnyReservation, store: &Store<'_>) -> Reply {
        let Ok(reservation) = reservation
            .0
            .into_inner()
            .into_any()
            .downcast::<H::Reservation>()
        else {
            panic!("a reservation is committed to the engine that made it");
        };
        Handle::commit(self, now, *reservation, store)
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        Handle::maintain(self, now, budget)
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        Handle::visit(self, now, from, budget, visit)
    }
}

impl Handle for AnyHandle {
    type Value = AnyValue;
    type Reservation = AnyReservation;

    const COPY_MAX: usize = 8192;

    #[inline]
    fn prefetch(&mut self, key: &Key<'_>) {
        inside(|| self.0.prefetch(key));
    }

    #[inline]
    fn execute<R: Replies<AnyValue>>(&mut self, now: Time, batch: &[Request<'_>], replies: &mut R) {
        inside(|| self.0.execute(now, batch, replies));
    }

    fn reserve(
        &mut self,
        now: Time,
        key: Key<'_>,
        value_len: usize,
    ) -> Result<AnyReservation, Reply> {
        inside(|| self.0.reserve(now, key, value_len))
    }

    fn commit(&mut self, now: Time, reservation: AnyReservation, store: &Store<'_>) -> Reply {
        inside(|| self.0.commit(now, reservation, store))
    }

    fn maintain(&mut self, now: Time, budget: usize) -> bool {
        inside(|| self.0.maintain(now, budget))
    }

    fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        inside(|| self.0.visit(now, from, budget, visit))
    }
}

impl Value for AnyValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        self.0.chunk(offset)
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Reservation for AnyReservation {
    fn write(&mut self, bytes: &[u8]) {
        inside(|| self.0.write(bytes));
    }

    fn missing(&self) -> usize {
        inside(|| self.0.missing())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    /// What an engine has given, and whose end meets a fault.
    struct Falls;

    impl Drop for Falls {
        fn drop(&mut self) {
            panic!("as planned");
        }
    }

    impl Value for Falls {
        fn len(&self) -> usize {
            0
        }

        fn chunk(&self, _: usize) -> &[u8] {
            &[]
        }
    }

    impl Reservation for Falls {
        fn write(&mut self, _: &[u8]) {}

        fn missing(&self) -> usize {
            0
        }
    }

    /// True if the panic of a drop was noted as one inside of an engine.
    fn is_noted(given: impl FnOnce() + Send + 'static) -> bool {
        let thread = thread::spawn(|| {
            let ended = catch_unwind(AssertUnwindSafe(given));
            ended.is_err() && has_unwound()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_panic_while_something_of_an_engine_is_dropped_is_the_engines() {
        assert!(is_noted(|| drop(AnyValue(Held::new(Box::new(Falls))))));
        let reserved = || AnyReservation(Held::new(Box::new(Falls)));
        assert!(is_noted(move || drop(reserved())));
        assert!(!is_noted(|| panic!("as planned")));
    }
}
