//! [`Cache`], the type that users of the library hold: its state, and what its methods share.

mod copy;
mod iter;
mod load;
mod number;
mod read;
mod thread;
mod write;

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};

use nuthatch_cuckoo::Cuckoo;
use nuthatch_cuckoo::get::FastPath;
use nuthatch_cuckoo::handle::CuckooHandle;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_engine::reply::{Item as Found, LastReply, Replies, Reply};
use nuthatch_engine::request::{KEY_LEN_MAX, Key, Op, Request};
use nuthatch_engine::stats::EngineStats;
use nuthatch_engine::{Audit, AuditError, Clock, Engine, Handle, LimitError, Time, note_sleep};
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::reclaim::removals::{FOLLOW_UP, Removals};

use crate::builder::Builder;
use crate::error::{BuildError, Error};
use crate::flight::Flights;
use crate::lifetime::{Defaults, Idle, Lifetime, Terms};
use crate::stats::Stats;
use crate::trace;

use thread::{PerThread, Reads, Sessions};

pub use iter::Iter;
pub(crate) use load::Look;
pub use read::Item;
pub use write::CasOutcome;

/// A thread's session with the engine.
type Session = CuckooHandle<EightWay>;

/// An in-memory cache from byte keys (1 to 250 bytes) to byte values, with a hard memory bound.
///
/// Clones share the same cache, and cost as much as clones of an [`Arc`]. Every method may be called from any thread;
/// readers take no lock. Each operation is atomic for its key.
///
/// Keys and values are whatever is `AsRef<[u8]>`: `"k"`, `b"k"`, a `String`, a `Vec<u8>`. A store of a key that is
/// empty or over 250 bytes is refused, and a lookup of one finds nothing.
///
/// ```
/// use nuthatch::Cache;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = Cache::builder().memory_limit(64 << 20).build()?;
/// cache.insert("greeting", "hello")?;
/// assert_eq!(cache.get("greeting"), Some(b"hello".to_vec()));
/// assert_eq!(cache.remove("greeting"), Some(b"hello".to_vec()));
/// assert_eq!(cache.get("greeting"), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    engine: Arc<Cuckoo<EightWay>>,
    clock: Clock,
    sessions: Sessions,
    flights: Flights,
    defaults: Defaults,
}

// A panic of the caller's code (a computation, a listener, a closure that reads) passes through with no lock held and
// nothing half done, so that a cache may be used on the other side of `catch_unwind`.
impl UnwindSafe for Cache {}
impl RefUnwindSafe for Cache {}

/// A cache that may have been dropped.
pub(crate) struct WeakCache(Weak<Shared>);

impl WeakCache {
    pub fn upgrade(&self) -> Option<Cache> {
        let shared = self.0.upgrade()?;
        Some(Cache { shared })
    }
}

impl Cache {
    /// A cache of at most `memory_limit` bytes, with the defaults of [`Builder`] for the rest.
    pub fn new(memory_limit: usize) -> Result<Self, BuildError> {
        Self::builder().memory_limit(memory_limit).build()
    }

    /// A builder, which configures a cache.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn with_engine(engine: Cuckoo<EightWay>, defaults: Defaults) -> Self {
        let shared = Shared {
            engine: Arc::new(engine),
            clock: Clock::start(),
            sessions: Sessions::default(),
            flights: Flights::default(),
            defaults,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakCache {
        WeakCache(Arc::downgrade(&self.shared))
    }

    /// Items in the cache: a sum over all threads, not taken at one moment. Expired items count until their memory is
    /// taken back.
    pub fn entry_count(&self) -> u64 {
        self.stats().entry_count
    }

    /// Bytes of the items in the cache: header, key and value. (The memory limit bounds more than these: see
    /// [`Stats::memory_used`].)
    pub fn weighted_size(&self) -> u64 {
        self.stats().weighted_size
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        let reads = self.shared.sessions.reads();
        Stats::of(&self.engine_stats(), reads.hits(), reads.misses())
    }

    /// Changes the memory limit, in bytes. The limit can be raised to [`Builder::memory_limit_max`], and lowered to twice
    /// the item limit and what the index takes. The error says what is possible.
    ///
    /// A lower limit is reached step by step, after this call: [`Cache::maintain`] evicts, and a store makes room for
    /// itself and for a little more, so that it waits for no more than that and is not refused. Until then
    /// [`Stats::memory_used`] is above the limit. What readers read in place, and values that are being written, keep
    /// their memory: only while these hold nearly all of what the new limit allows are stores refused
    /// ([`Error::OutOfMemory`]). A cache that may not evict ([`Builder::evict`]) refuses new items until enough was removed.
    pub fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.shared.engine.set_memory_limit(bytes)
    }

    /// Frees expired items, moves memory to where it is needed, grows the index: about `budget` items' worth of work.
    /// True if there is more to do at once. Nothing needs it to be correct. It saves memory: without it, expired items
    /// hold theirs until a store needs the room. [`Builder::maintenance_thread`] calls it for you.
    pub fn maintain(&self, budget: usize) -> bool {
        note_sleep();
        let now = self.now();
        let more = self.session(&mut None).1.maintain(now, budget);
        self.notify(budget);
        more
    }

    /// Checks the invariants of the cache's data structures, while no other thread uses it. For Nuthatch's own tests.
    #[doc(hidden)]
    pub fn audit(&self) -> Result<(), AuditError> {
        self.shared.engine.audit()
    }

    /// All that the engine counts: not part of the stable interface. For Nuthatch's own tests.
    #[doc(hidden)]
    pub fn engine_stats(&self) -> EngineStats {
        let mut stats = self.shared.engine.stats();
        // The engine does not count gets at once. Each is a search, and one that hit has looked at one item.
        let Reads {
            hits_at_once,
            misses_at_once,
            ..
        } = self.shared.sessions.reads();
        stats.lookups += hits_at_once + misses_at_once;
        stats.lookup_hits += hits_at_once;
        stats.searched_hit += hits_at_once;
        stats
    }

    /// The terms of an item that is stored now.
    #[inline]
    fn terms(&self, lifetime: Lifetime) -> Terms {
        let Shared {
            defaults, clock, ..
        } = &*self.shared;
        defaults.terms(lifetime, || clock.present())
    }

    // Never inlined, so that a get that needs no clock holds no code of it but a call.
    #[inline(never)]
    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// These bytes as a key, or an error if their length is none of a key.
    #[inline(always)]
    fn key<'k>(&self, bytes: &'k [u8]) -> Result<Key<'k>, Error> {
        self.lookup_key(bytes).ok_or(Error::KeyLength)
    }

    /// The same for lookups, which find nothing under such bytes.
    // A `Result` in registers would share the error's byte with the length, which costs a get six instructions.
    #[inline(always)]
    fn lookup_key<'k>(&self, bytes: &'k [u8]) -> Option<Key<'k>> {
        let is_key = !bytes.is_empty() && bytes.len() <= KEY_LEN_MAX;
        is_key.then(|| Key::new(bytes, self.shared.engine.hasher()))
    }

    /// Carries out a request whose answer is no value.
    #[inline]
    fn change(&self, now: Time, key: Key<'_>, op: Op<'_>) -> Result<Reply, Error> {
        let mut last = LastReply(Reply::Miss);
        self.ask(now, key, op, &mut last);
        self.notify(FOLLOW_UP);
        match Error::of(&last.0) {
            None => Ok(last.0),
            Some(error) => {
                trace::refused(error, key.bytes().len());
                Err(error)
            }
        }
    }

    /// Carries out a request. Returns this thread's part of the cache, for [`Cache::count_read`].
    #[inline(always)]
    fn ask(
        &self,
        now: Time,
        key: Key<'_>,
        op: Op<'_>,
        replies: &mut impl Replies<<Session as Handle>::Value>,
    ) -> Option<&PerThread> {
        let mut spare = None;
        let (thread, mut session) = self.session(&mut spare);
        session.execute(now, &[Request { key, op }], replies);
        thread
    }

    /// A plain get that needs nothing but the value, counted as a read, on the engine's fast path: with no session, so
    /// that a closure that is lent a value of a batch may call it too. `None` if that does not answer, or if this is
    /// the thread's first call: then nothing is counted, and a session has to answer.
    #[inline(always)]
    fn get_at_once(
        &self,
        key: &Key<'_>,
        replies: &mut impl Replies<<Session as Handle>::Value>,
    ) -> Option<bool> {
        let thread = self.shared.sessions.get()?;
        match (self.shared.engine).get_at_once(|| self.now(), key, replies) {
            FastPath::Hit => {
                thread.count_at_once(true);
                Some(true)
            }
            FastPath::Miss => {
                thread.count_at_once(false);
                Some(false)
            }
            FastPath::Not => None,
        }
    }

    /// Counts a read.
    #[inline(always)]
    fn count_read(&self, thread: Option<&PerThread>, hit: bool) {
        match thread {
            Some(thread) => thread.count_read(hit),
            None => (self.shared.sessions).count_reads(None, hit.into(), (!hit).into()),
        }
    }

    /// Notes a use of the item that was found: in a cache with a time to idle that prolongs its life.
    #[inline(always)]
    fn used(&self, now: Time, key: Key<'_>, found: &Option<Found>) {
        if let (Some(idle), Some(item)) = (&self.shared.defaults.idle, found) {
            self.prolong(now, key, idle, item);
        }
    }

    // Out of line, so that caches without a time to idle do not pay for this code.
    #[inline(never)]
    fn prolong(&self, now: Time, key: Key<'_>, idle: &Idle, item: &Found) {
        if let Some(expiry) = idle.due(item, now) {
            // If the key has another item by now, that item was used later than this one.
            let mut spare = None;
            let (_, mut session) = self.session(&mut spare);
            session.touch_if(now, key, item.cas, expiry);
        }
    }

    /// The thread's session, or a new one in `spare` if that is in use: the caller's closure calls the cache while it
    /// is lent a value of a batch. A thread that is ending and has lost its session gets a spare one too.
    #[inline(always)]
    fn session<'c, 's>(
        &'c self,
        spare: &'s mut Option<RefCell<Session>>,
    ) -> (Option<&'c PerThread>, RefMut<'s, Session>)
    where
        'c: 's,
    {
        let engine = &self.shared.engine;
        let own = self.shared.sessions.of_this_thread(engine);
        let session = match own.and_then(|own| own.session.try_borrow_mut().ok()) {
            Some(session) => session,
            None => spare.insert(RefCell::new(engine.handle())).borrow_mut(),
        };
        (own, session)
    }

    /// Calls the listener, if there is one, with the values that this thread has removed, now that its session is not
    /// in use.
    #[inline]
    fn notify(&self, follow_up: usize) {
        if let Some(removals) = self.shared.engine.removals() {
            self.tell_of(removals, follow_up);
        }
    }

    #[cold]
    fn tell_of(&self, removals: &Removals, follow_up: usize) {
        let session = self.shared.sessions.get();
        let removed =
            session.and_then(|own| Some(own.session.try_borrow_mut().ok()?.take_removed()));
        removals.notify(removed.unwrap_or_default(), follow_up);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        out.debug_struct("Cache")
            .field("entry_count", &stats.entry_count)
            .field("memory_used", &stats.memory_used)
            .field("memory_limit", &stats.memory_limit)
            .finish_non_exhaustive()
    }
}
