//! [`Cache`]: the library's face.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::{Arc, Weak};
use std::time::Duration;

use thread_local::ThreadLocal;

use crate::builder::Builder;
use crate::cuckoo::Cuckoo;
use crate::cuckoo::handle::CuckooHandle;
use crate::cuckoo::layout::EightWay;
use crate::engine::{Cursor, Engine, Handle, Value};
use crate::flight::{Flights, Role};
use crate::reply::{Item, Replies, Reply};
use crate::request::{
    Condition, Delta, Expiry, KEY_LEN_MAX, Key, Op, Read, Removal, Request, Store, StoreMode,
};
use crate::stats::EngineStats;
use crate::{Clock, Time};

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

/// Why an operation could not be carried out. The cache is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key is empty or longer than 250 bytes.
    KeyLength,
    /// Key, value and header together are over the item limit
    /// ([`Builder::item_size_max`]).
    TooLarge,
    /// The cache is full and may not evict ([`Builder::evict`]), or all that could be evicted is
    /// being read in place.
    OutOfMemory,
    /// The item is not a decimal number under 2^64.
    NotNumeric,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Error::KeyLength => "a key has 1 to 250 bytes",
            Error::TooLarge => "the item is larger than the cache allows",
            Error::OutOfMemory => "the cache is full",
            Error::NotNumeric => "the value is not a decimal number",
        })
    }
}

impl std::error::Error for Error {}

/// How a compare-and-swap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// Stored.
    Stored,
    /// The item was changed since its cas was read.
    Changed,
    /// The item is gone.
    Gone,
}

/// The error of [`Cache::try_get_or_insert_with`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError<E> {
    /// The cache refused the key or the value.
    Cache(Error),
    /// The caller's own computation failed.
    Load(E),
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
        let mut copy = CopyOut {
            into,
            room: 0,
            item: None,
        };
        self.ask(key, Op::Get, &mut copy)?;
        Ok(copy.item.is_some())
    }

    /// A copy of the key's value, and its metadata (flags, cas, expiry).
    pub fn get_item(&self, key: &[u8]) -> Result<Option<(Vec<u8>, Item)>, Error> {
        let mut value = Vec::new();
        let mut copy = CopyOut {
            into: &mut value,
            room: 0,
            item: None,
        };
        self.ask(key, Op::Read(Read::default()), &mut copy)?;
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
        let hasher = self.shared.engine.hasher();
        let batch = keys
            .iter()
            .map(|key| {
                Ok(Request {
                    key: checked(key, hasher)?,
                    op: Op::Get,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut copies = CopyMany {
            values: Vec::with_capacity(keys.len()),
            room: 0,
        };
        self.execute(&batch, &mut copies);
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

    /// The key's value, or the one that `compute` returns, which is then stored. Of all callers that
    /// miss a key at the same time exactly one computes; the others wait for its value. If it
    /// panics, one of the others computes.
    pub fn get_or_insert_with(
        &self,
        key: &[u8],
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let compute = || Ok::<_, Infallible>(compute());
        self.try_get_or_insert_with(key, ttl, compute)
            .map_err(|error| match error {
                LoadError::Cache(error) => error,
                LoadError::Load(never) => match never {},
            })
    }

    /// As [`Cache::get_or_insert_with`], for computations that may fail. An error is returned to the
    /// one who computed; one of those who waited computes next.
    pub fn try_get_or_insert_with<E>(
        &self,
        key: &[u8],
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let hash = checked(key, self.shared.engine.hasher())
            .map_err(LoadError::Cache)?
            .hash();
        // A turn without result means that another caller's computation failed.
        loop {
            if let Some(value) = self.get(key).map_err(LoadError::Cache)? {
                return Ok(value);
            }
            let leader = match self.shared.flights.join(key, hash) {
                Role::Leader(leader) => leader,
                Role::Follower(flight) => match flight.wait() {
                    Some(value) => return Ok(value.to_vec()),
                    None => continue,
                },
            };
            // The last flight may have landed between the miss and this one's start.
            if let Some(value) = self.get(key).map_err(LoadError::Cache)? {
                leader.land(value.as_slice().into());
                return Ok(value);
            }
            let value = compute().map_err(LoadError::Load)?;
            let expiry = ttl.map_or(Expiry::Never, |ttl| self.expiry(ttl));
            let stored = self.put(
                key,
                Store {
                    expiry,
                    ..Store::set(&value)
                },
            );
            // Those who wait get the value even if the cache could not keep it.
            leader.land(value.as_slice().into());
            return stored.map(|_| value).map_err(LoadError::Cache);
        }
    }

    /// All items, as copies. Blocks nobody; what is stored or removed meanwhile may or may not be
    /// met, everything else is met exactly once. Values over 8 KiB are fetched by key.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
        let mut from = Some(Cursor::default());
        let mut ready: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        std::iter::from_fn(move || {
            loop {
                if let Some((key, value)) = ready.pop() {
                    match value {
                        Some(value) => return Some((key, value)),
                        // Removed since: as if it had never been met.
                        None => match self.get(&key) {
                            Ok(Some(value)) => return Some((key, value)),
                            _ => continue,
                        },
                    }
                }
                from = self.visit_some(from?, &mut ready);
            }
        })
    }

    fn visit_some(
        &self,
        from: Cursor,
        ready: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> Option<Cursor> {
        const AT_ONCE: usize = 256;
        let now = self.now();
        self.with_door(|door| {
            door.visit(now, from, AT_ONCE, &mut |visit| {
                let copied = visit.value.len() == visit.item.value_len;
                ready.push((visit.key.to_vec(), copied.then(|| visit.value.to_vec())));
            })
        })
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
        self.with_door(|door| door.maintain(now, budget))
    }

    /// Counters and sizes.
    pub fn stats(&self) -> EngineStats {
        self.shared.engine.stats()
    }

    /// Changes the memory limit, in bytes. Shrinking evicts gradually, in [`Cache::maintain`].
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
        self.execute(&[Request { key, op }], replies);
        Ok(())
    }

    fn execute(&self, batch: &[Request<'_>], replies: &mut impl Replies<<Door as Handle>::Value>) {
        let now = self.now();
        self.with_door(|door| door.execute(now, batch, replies));
    }

    fn with_door<T>(&self, work: impl FnOnce(&mut Door) -> T) -> T {
        let engine = &self.shared.engine;
        let door = self.shared.doors.get_or(|| RefCell::new(engine.handle()));
        match door.try_borrow_mut() {
            Ok(mut door) => work(&mut door),
            // An eviction listener that calls the cache: it gets a door of its own.
            Err(_) => work(&mut engine.handle()),
        }
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

/// Makes `room` bytes of spare capacity behind the vector's contents.
#[inline(always)]
fn spare(into: &mut Vec<u8>, room: usize) -> &mut [MaybeUninit<u8>] {
    into.reserve(room);
    &mut into.spare_capacity_mut()[..room]
}

/// Takes the bytes that an engine laid down into [`spare`] room.
///
/// # Safety
/// The engine has called `commit` after `begin` returned `spare(into, room)`: it promises to have
/// written all of it.
#[inline(always)]
unsafe fn keep(into: &mut Vec<u8>, room: usize) {
    // SAFETY: the caller's promise; `spare` reserved the capacity.
    unsafe { into.set_len(into.len() + room) };
}

/// Appends a value that is held in place.
fn copy_large(value: &impl Value, into: &mut Vec<u8>) {
    into.reserve(value.len());
    let mut offset = 0;
    while offset < value.len() {
        let chunk = value.chunk(offset);
        into.extend_from_slice(chunk);
        offset += chunk.len();
    }
}

/// One value into one buffer.
struct CopyOut<'a> {
    into: &'a mut Vec<u8>,
    room: usize,
    item: Option<Item>,
}

impl<V: Value> Replies<V> for CopyOut<'_> {
    #[inline]
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        self.item = Some(*item);
        spare(self.into, self.room)
    }

    #[inline]
    fn commit(&mut self, _: usize) {
        // SAFETY: `begin` returned this room and the engine has filled it.
        unsafe { keep(self.into, self.room) };
    }

    fn retract(&mut self, _: usize) {
        self.item = None;
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.item = Some(*item);
        copy_large(&value, self.into);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

/// Each value into a buffer of its own.
struct CopyMany {
    values: Vec<Option<Vec<u8>>>,
    room: usize,
}

impl<V: Value> Replies<V> for CopyMany {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.room = item.value_len;
        spare(
            self.values
                .push_mut(Some(Vec::new()))
                .get_or_insert_default(),
            self.room,
        )
    }

    fn commit(&mut self, _: usize) {
        if let Some(Some(value)) = self.values.last_mut() {
            // SAFETY: `begin` returned this room and the engine has filled it.
            unsafe { keep(value, self.room) };
        }
    }

    fn retract(&mut self, _: usize) {
        self.values.pop();
    }

    fn large(&mut self, _: usize, _: &Item, value: V) {
        let mut copy = Vec::new();
        copy_large(&value, &mut copy);
        self.values.push(Some(copy));
    }

    fn done(&mut self, _: usize, _: Reply) {
        self.values.push(None);
    }
}

/// The answer of an operation without a value.
struct LastReply(Reply);

impl<V> Replies<V> for LastReply {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        // Only asked of reads that want a value, which this face never sends with it.
        &mut []
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        self.0 = reply;
    }
}
