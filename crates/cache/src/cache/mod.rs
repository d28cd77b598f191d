//! [`Cache`]: the library's face.

mod copy;
mod iter;
mod load;
mod outcome;

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use thread_local::ThreadLocal;

use crate::builder::Builder;
use crate::cuckoo::Cuckoo;
use crate::cuckoo::handle::CuckooHandle;
use crate::cuckoo::layout::EightWay;
use crate::departures::{Departures, FOLLOW_UP};
use crate::engine::{Engine, Handle};
use crate::flight::Flights;
use crate::reply::{Item, Replies, Reply};
use crate::request::{
    Condition, Delta, Expiry, KEY_LEN_MAX, Key, Op, Read, Removal, Request, Store, StoreMode,
};
use crate::stats::EngineStats;
use crate::{Clock, Time};
use copy::{CopyMany, CopyOut, LastReply};
pub use outcome::{CasOutcome, Error, LoadError};

type Door = CuckooHandle<EightWay>;

/// An in-memory cache from byte keys (1 to 250 bytes) to byte values, with a hard memory bound.
///
/// Clones share the same cache. Every method may be called from any thread; readers take no lock.
/// Values are copied out, never handed out by reference.
///
/// ```
/// use std::time::Duration;
/// use nuthatch::Cache;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = Cache::builder().memory_limit(64 << 20).build()?;
/// cache.set(b"greeting", b"hello")?;
/// cache.set_for(b"session", b"42", Duration::from_secs(60))?;
/// assert_eq!(cache.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// assert_eq!(cache.incr(b"session", 1)?, Some(43));
/// assert!(cache.delete(b"greeting")?);
/// assert_eq!(cache.get(b"greeting")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Arc<Cuckoo<EightWay>>,
    clock: Clock,
    doors: ThreadLocal<RefCell<Door>>,
    flights: Flights,
}

impl Cache {
    /// A cache to be configured.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(engine: Arc<Cuckoo<EightWay>>) -> Self {
        let shared = Shared {
            engine,
            clock: Clock::start(),
            doors: ThreadLocal::new(),
            flights: Flights::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    /// A copy of the key's value.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Puts the key's value into `into`, replacing what is there, and returns true; or empties it
    /// and returns false. Reusing one buffer makes gets free of allocation.
    pub fn get_into(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        into.clear();
        let mut copy = CopyOut::new(into);
        self.ask(key, Op::Get, &mut copy)?;
        Ok(copy.item.is_some())
    }

    /// A copy of the key's value, and its metadata (flags, cas, expiry, age).
    pub fn get_item(&self, key: &[u8]) -> Result<Option<(Vec<u8>, Item)>, Error> {
        let mut value = Vec::new();
        let mut copy = CopyOut::new(&mut value);
        let read = Read {
            idle: true,
            ..Read::default()
        };
        self.ask(key, Op::Read(read), &mut copy)?;
        let item = copy.item;
        Ok(item.map(|item| (value, item)))
    }

    /// True if the key has an item. Does not count as a use of it.
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        let read = Read {
            value: false,
            bump: false,
            ..Read::default()
        };
        Ok(matches!(self.change(key, Op::Read(read))?, Reply::Found(_)))
    }

    /// Looks all keys up in one batch, which overlaps their memory misses: several times as fast as
    /// one by one when the cache is larger than the processor's caches.
    pub fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let (now, hasher) = (self.now(), self.shared.engine.hasher());
        let mut copies = CopyMany::new(keys.len());
        self.with_door(|door| {
            let mut batch = Vec::with_capacity(keys.len());
            for key in keys {
                let key = checked(key, hasher)?;
                door.prefetch(&key);
                batch.push(Request { key, op: Op::Get });
            }
            door.execute(now, &batch, &mut copies);
            Ok(())
        })?;
        Ok(copies.values)
    }

    /// Stores a value that never expires.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put(key, Store::set(value)).map(|_| ())
    }

    /// Stores a value for a time, exact to a sixteenth of a second.
    pub fn set_for(&self, key: &[u8], value: &[u8], ttl: Duration) -> Result<(), Error> {
        self.put(
            key,
            Store {
                expiry: self.expiry(ttl),
                ..Store::set(value)
            },
        )
        .map(|_| ())
    }

    /// Stores a value only if the key has none. True if it was stored.
    pub fn add(&self, key: &[u8], value: &[u8], ttl: Option<Duration>) -> Result<bool, Error> {
        self.put_mode(key, value, ttl, StoreMode::Add)
    }

    /// Stores a value only if the key has one. True if it was stored.
    pub fn replace(&self, key: &[u8], value: &[u8], ttl: Option<Duration>) -> Result<bool, Error> {
        self.put_mode(key, value, ttl, StoreMode::Replace)
    }

    /// Puts bytes behind the key's value. False if there is none.
    pub fn append(&self, key: &[u8], bytes: &[u8]) -> Result<bool, Error> {
        self.put_mode(key, bytes, None, StoreMode::Append)
    }

    /// Puts bytes before the key's value. False if there is none.
    pub fn prepend(&self, key: &[u8], bytes: &[u8]) -> Result<bool, Error> {
        self.put_mode(key, bytes, None, StoreMode::Prepend)
    }

    /// Stores a value if the item still has the cas that [`Cache::get_item`] told.
    pub fn cas(
        &self,
        key: &[u8],
        value: &[u8],
        cas: u64,
        ttl: Option<Duration>,
    ) -> Result<CasOutcome, Error> {
        let expiry = ttl.map_or(Expiry::Never, |ttl| self.expiry(ttl));
        let store = Store {
            expiry,
            condition: Condition::Cas(cas),
            ..Store::set(value)
        };
        Ok(match self.put(key, store)? {
            Reply::Stored(_) => CasOutcome::Stored,
            Reply::Exists => CasOutcome::Changed,
            _ => CasOutcome::Gone,
        })
    }

    /// Removes the key's item. False if there was none.
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(matches!(
            self.change(key, Op::Remove(Removal::default()))?,
            Reply::Removed
        ))
    }

    /// Gives the key's item a new time to live (`None`: it never expires). False if there is none.
    pub fn touch(&self, key: &[u8], ttl: Option<Duration>) -> Result<bool, Error> {
        let expiry = ttl.map_or(Expiry::Never, |ttl| self.expiry(ttl));
        let read = Read {
            value: false,
            touch: Some(expiry),
            ..Read::default()
        };
        Ok(matches!(self.change(key, Op::Read(read))?, Reply::Found(_)))
    }

    /// Adds to the decimal number in the item, wrapping at 2^64. The new number, or `None` if
    /// there is no item.
    pub fn incr(&self, key: &[u8], by: u64) -> Result<Option<u64>, Error> {
        self.delta(key, Delta::up(by))
    }

    /// Subtracts from the decimal number in the item, stopping at 0. The new number, or `None` if
    /// there is no item.
    pub fn decr(&self, key: &[u8], by: u64) -> Result<Option<u64>, Error> {
        self.delta(key, Delta::down(by))
    }

    /// Removes everything.
    pub fn clear(&self) {
        let now = self.now();
        self.shared.engine.flush(now, now);
    }

    /// Frees expired items, moves memory, grows the index: about `budget` items' worth of work. True
    /// if there is more to do at once. Everything is correct without it; what it saves is memory
    /// that expired items hold until their room is needed. [`Builder::maintenance_thread`] calls it
    /// for you.
    pub fn maintain(&self, budget: usize) -> bool {
        let now = self.now();
        let more = self.with_door(|door| door.maintain(now, budget));
        self.tell(budget);
        more
    }

    /// Counters and sizes.
    pub fn stats(&self) -> EngineStats {
        self.shared.engine.stats()
    }

    /// Changes the memory limit, in bytes. Shrinking evicts gradually, in [`Cache::maintain`]. Raising goes up to
    /// [`Builder::memory_limit_max`]. An error says what is possible.
    pub fn set_memory_limit(&self, bytes: usize) -> Result<(), String> {
        self.shared.engine.set_memory_limit(bytes)
    }

    /// The engine below, for batches of mixed operations. Its times are those of [`Cache::now`].
    pub fn engine(&self) -> &Arc<Cuckoo<EightWay>> {
        &self.shared.engine
    }

    /// The present moment, as the engine counts.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    fn expiry(&self, ttl: Duration) -> Expiry {
        match self.now().after(ttl) {
            // Over eight years: nobody will be there to see it expire.
            Time(u32::MAX) => Expiry::Never,
            time => Expiry::At(time),
        }
    }

    fn put_mode(
        &self,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
        mode: StoreMode,
    ) -> Result<bool, Error> {
        let expiry = ttl.map_or(Expiry::Never, |ttl| self.expiry(ttl));
        let store = Store {
            mode,
            expiry,
            ..Store::set(value)
        };
        Ok(matches!(self.put(key, store)?, Reply::Stored(_)))
    }

    fn put(&self, key: &[u8], store: Store<'_>) -> Result<Reply, Error> {
        self.change(key, Op::Store(store))
    }

    fn delta(&self, key: &[u8], delta: Delta) -> Result<Option<u64>, Error> {
        Ok(match self.change(key, Op::Delta(delta))? {
            Reply::Number(number, _) => Some(number),
            _ => None,
        })
    }

    fn change(&self, key: &[u8], op: Op<'_>) -> Result<Reply, Error> {
        let mut last = LastReply(Reply::Miss);
        self.ask(key, op, &mut last)?;
        self.tell(FOLLOW_UP);
        match last.0 {
            Reply::TooLarge => Err(Error::TooLarge),
            Reply::OutOfMemory => Err(Error::OutOfMemory),
            Reply::NotNumeric => Err(Error::NotNumeric),
            reply => Ok(reply),
        }
    }

    fn ask(
        &self,
        key: &[u8],
        op: Op<'_>,
        replies: &mut impl Replies<<Door as Handle>::Value>,
    ) -> Result<(), Error> {
        let key = checked(key, self.shared.engine.hasher())?;
        let now = self.now();
        self.with_door(|door| door.execute(now, &[Request { key, op }], replies));
        Ok(())
    }

    fn with_door<T>(&self, work: impl FnOnce(&mut Door) -> T) -> T {
        let engine = &self.shared.engine;
        let new = || RefCell::new(Door::untelling(engine));
        match self.shared.doors.get_or(new).try_borrow_mut() {
            Ok(mut door) => work(&mut door),
            // A listener that is told in the middle of an operation, and calls the cache: it gets a door of
            // its own.
            Err(_) => work(&mut engine.handle()),
        }
    }

    /// Tells the listener, if there is one, of what this thread has removed, now that nobody uses its door.
    #[inline]
    fn tell(&self, follow_up: usize) {
        if let Some(departures) = self.shared.engine.departures() {
            self.tell_of(departures, follow_up);
        }
    }

    #[cold]
    fn tell_of(&self, departures: &Departures, follow_up: usize) {
        let door = self.shared.doors.get();
        let departed = door.and_then(|door| Some(door.try_borrow_mut().ok()?.take_departed()));
        departures.tell(departed.unwrap_or_default(), follow_up);
    }
}

impl Shared {
    /// A round of background work for a cache that may be gone: true if there is more to do.
    pub(crate) fn maintain(self: Arc<Self>, budget: usize) -> bool {
        Cache { shared: self }.maintain(budget)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        out.debug_struct("Cache")
            .field("items", &stats.items)
            .field("memory_used", &stats.memory_used)
            .field("memory_limit", &stats.memory_limit)
            .finish()
    }
}

fn checked<'a>(bytes: &'a [u8], hasher: &crate::KeyHasher) -> Result<Key<'a>, Error> {
    if bytes.is_empty() || bytes.len() > KEY_LEN_MAX {
        return Err(Error::KeyLength);
    }
    Ok(Key::new(bytes, hasher))
}
