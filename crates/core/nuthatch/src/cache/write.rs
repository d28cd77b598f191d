//! The methods of a cache that change it.

use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Condition, Delta, Key, Op, Read, Removal, Store, StoreMode};
use nuthatch_engine::{Engine, Time};
use nuthatch_store::reclaim::removals::FOLLOW_UP;

use super::Cache;
use super::copy::CopyOut;
use crate::error::Error;
use crate::lifetime::{Lifetime, Terms};

/// How a [`Cache::compare_and_swap`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CasOutcome {
    /// The value is stored.
    Stored,
    /// The item was changed since its version was read.
    Changed,
    /// The key has no item any more.
    Missing,
}

impl Cache {
    /// Stores a value for the cache's default lifetime.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.store(key.as_ref(), value.as_ref(), Lifetime::Default)
    }

    /// Stores a value for a lifetime, which may be a [`Duration`](std::time::Duration).
    pub fn insert_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<(), Error> {
        self.store(key.as_ref(), value.as_ref(), lifetime.into())
    }

    /// Stores a value only if the key has none. True if it was stored.
    pub fn add(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<bool, Error> {
        self.store_if(
            key.as_ref(),
            value.as_ref(),
            lifetime.into(),
            StoreMode::Add,
        )
    }

    /// Stores a value only if the key has one. True if it was stored.
    pub fn replace(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<bool, Error> {
        self.store_if(
            key.as_ref(),
            value.as_ref(),
            lifetime.into(),
            StoreMode::Replace,
        )
    }

    /// Stores a value only if the item still has the version that [`Cache::get_item`] returned.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use nuthatch::{CasOutcome, Lifetime};
    ///
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// cache.insert("list", "1")?;
    /// let item = cache.get_item("list").ok_or("evicted")?;
    /// let longer = [&item.value[..], b",2"].concat();
    /// let outcome = cache.compare_and_swap("list", item.version, longer, Lifetime::Default)?;
    /// assert_eq!(outcome, CasOutcome::Stored);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        version: u64,
        value: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<CasOutcome, Error> {
        self.swap(
            self.key(key.as_ref())?,
            version,
            value.as_ref(),
            lifetime.into(),
        )
    }

    /// Puts bytes behind the key's value; its lifetime stays. False if there is no value.
    pub fn append(&self, key: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.extend(key.as_ref(), bytes.as_ref(), StoreMode::Append)
    }

    /// Puts bytes before the key's value; its lifetime stays. False if there is no value.
    pub fn prepend(&self, key: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.extend(key.as_ref(), bytes.as_ref(), StoreMode::Prepend)
    }

    /// Adds to the decimal number that is the key's value, wrapping at 2^64; its lifetime stays. The new number, or
    /// `None` if there is no value.
    pub fn incr(&self, key: impl AsRef<[u8]>, by: u64) -> Result<Option<u64>, Error> {
        self.delta(key.as_ref(), Delta::up(by))
    }

    /// Subtracts from the decimal number that is the key's value, stopping at 0; its lifetime stays. The new number,
    /// or `None` if there is no value.
    pub fn decr(&self, key: impl AsRef<[u8]>, by: u64) -> Result<Option<u64>, Error> {
        self.delta(key.as_ref(), Delta::down(by))
    }

    /// Gives the key's item a new lifetime, which begins now. False if there is no item.
    ///
    /// In a cache with a [time to idle](crate::Builder::time_to_idle) this stores the item anew, with a new version,
    /// and can fail as a store can. Reads prolong the time to idle by themselves.
    pub fn touch(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<bool, Error> {
        let Some(key) = self.lookup_key(key.as_ref()) else {
            return Ok(false);
        };
        let lifetime = lifetime.into();
        let now = self.now();
        if self.shared.defaults.idle.is_some() {
            return self.renew(now, key, lifetime);
        }
        let read = Read {
            value: false,
            touch: Some(self.terms(lifetime).expiry),
            ..Read::default()
        };
        Ok(matches!(
            self.change(now, key, Op::Read(read))?,
            Reply::Found(_)
        ))
    }

    /// Removes the key's item, and returns its value.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let key = self.lookup_key(key.as_ref())?;
        let mut value = Vec::new();
        let mut copy: CopyOut<'_, ()> = CopyOut::new(&mut value);
        self.session(&mut None).1.take(self.now(), key, &mut copy);
        let found = copy.item;
        self.notify(FOLLOW_UP);
        found.map(|_| value)
    }

    /// Removes the key's item without reading its value. True if there was one.
    pub fn invalidate(&self, key: impl AsRef<[u8]>) -> bool {
        let key = self.key(key.as_ref());
        let removal = Op::Remove(Removal::default());
        // A removal takes no memory, so it is never refused.
        key.is_ok_and(|key| self.change(self.now(), key, removal) == Ok(Reply::Removed))
    }

    /// Removes everything that was stored before this call, in constant time. The memory is taken back when stores need
    /// the room, and by [`Cache::maintain`]; then a [listener](crate::Builder::removal_listener) is called.
    pub fn invalidate_all(&self) {
        let now = self.now();
        self.shared.engine.flush(now, now);
    }

    pub(super) fn store(&self, key: &[u8], value: &[u8], lifetime: Lifetime) -> Result<(), Error> {
        self.store_if(key, value, lifetime, StoreMode::Set)?;
        Ok(())
    }

    fn store_if(
        &self,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
        mode: StoreMode,
    ) -> Result<bool, Error> {
        let (now, key) = (self.now(), self.key(key)?);
        let Terms { expiry, flags } = self.terms(lifetime);
        let store = Store {
            mode,
            expiry,
            flags,
            ..Store::set(value)
        };
        let reply = self.change(now, key, Op::Store(store))?;
        Ok(matches!(reply, Reply::Stored(_)))
    }

    fn swap(
        &self,
        key: Key<'_>,
        version: u64,
        value: &[u8],
        lifetime: Lifetime,
    ) -> Result<CasOutcome, Error> {
        let now = self.now();
        let Terms { expiry, flags } = self.terms(lifetime);
        let store = Store {
            expiry,
            flags,
            condition: Condition::Cas(version),
            ..Store::set(value)
        };
        Ok(match self.change(now, key, Op::Store(store))? {
            Reply::Stored(_) => CasOutcome::Stored,
            Reply::Exists => CasOutcome::Changed,
            _ => CasOutcome::Missing,
        })
    }

    /// Stores the key's item anew with the same value, for another lifetime.
    fn renew(&self, now: Time, key: Key<'_>, lifetime: Lifetime) -> Result<bool, Error> {
        let Terms { expiry, flags } = self.terms(lifetime);
        let renewed = self.session(&mut None).1.renew(now, key, expiry, flags);
        self.notify(FOLLOW_UP);
        match renewed {
            Ok(_) => Ok(true),
            // The key has no item, or the store is refused.
            Err(refusal) => Error::of(&refusal).map_or(Ok(false), Err),
        }
    }

    fn extend(&self, key: &[u8], bytes: &[u8], mode: StoreMode) -> Result<bool, Error> {
        let (now, key) = (self.now(), self.key(key)?);
        let store = Store {
            mode,
            ..Store::set(bytes)
        };
        let Reply::Stored(item) = self.change(now, key, Op::Store(store))? else {
            return Ok(false);
        };
        self.used(now, key, &Some(item));
        Ok(true)
    }

    fn delta(&self, key: &[u8], delta: Delta) -> Result<Option<u64>, Error> {
        let Some(key) = self.lookup_key(key) else {
            return Ok(None);
        };
        let now = self.now();
        let reply = self.change(now, key, Op::Delta(delta))?;
        let (Reply::Number(number, item) | Reply::Created(number, item)) = reply else {
            return Ok(None);
        };
        self.used(now, key, &Some(item));
        Ok(Some(number))
    }
}
