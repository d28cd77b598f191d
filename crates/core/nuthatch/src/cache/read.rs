//! The methods of a cache that read it.

use std::time::Duration;

use nuthatch_engine::Handle;
use nuthatch_engine::reply::Reply;
use nuthatch_engine::request::{Expiry, Key, Op, Read, Request};

use super::copy::{AtOnce, CopyOut, InPlace, LendMany};
use super::thread::PerThread;
use super::{Cache, Found};

/// A value and its metadata: see [`Cache::get_item`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// A copy of the value.
    pub value: Vec<u8>,
    /// Changes whenever the item is stored or changed, and never repeats; see [`Cache::compare_and_swap`].
    pub version: u64,
    /// How long the item still lives, or `None` if it does not expire. With a time to idle, how long it lives if it is
    /// not used.
    pub expires_in: Option<Duration>,
    /// Time since it was stored or changed, to the second.
    pub age: Duration,
}

impl Cache {
    /// A copy of the key's value.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.get_into(key, &mut value).then_some(value)
    }

    /// Lends the key's value to `read`, and returns its result. `read` is not called if there is no value.
    ///
    /// Nothing is allocated. A value up to 8 KiB is copied to the stack; a larger one is read in place, and is not
    /// evicted meanwhile. (A value over about a 4096th of the memory limit, and over 64 KiB in any case, lies in pieces
    /// and is copied.) `read` may use the cache; that does not change the value that it is lent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// cache.insert("numbers", "1,2,3")?;
    /// let count = cache.get_with("numbers", |value| value.split(|byte| *byte == b',').count());
    /// assert_eq!(count, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_with<T>(&self, key: impl AsRef<[u8]>, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let key = self.lookup_key(key.as_ref())?;
        if self.shared.defaults.idle.is_some() {
            return self.use_with(key.bytes(), read);
        }
        let mut copy = AtOnce::new();
        match self.get_at_once(&key, &mut copy) {
            Some(true) => Some(read(copy.value())),
            Some(false) => None,
            None => self.lend_apart(key.bytes(), read),
        }
    }

    // Out of line, so that the usual get holds nothing of it. It hashes the key again: a `Key` would be passed in memory,
    // where the usual get would have to put it.
    #[cold]
    #[inline(never)]
    fn lend_apart<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let key = self.lookup_key(key)?;
        let mut place: InPlace<_, ()> = InPlace::new();
        let thread = self.ask(self.now(), key, Op::Get, &mut place);
        self.count_read(thread, place.item.is_some());
        place.item.is_some().then(|| place.lend(read))
    }

    /// [`Cache::get_with`] where a use prolongs the item's life. Out of line and with the key's bytes, as above.
    #[inline(never)]
    fn use_with<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let key = self.lookup_key(key)?;
        let now = self.now();
        let mut place = InPlace::new();
        let thread = self.ask(now, key, Op::Get, &mut place);
        self.count_read(thread, place.item.is_some());
        self.used(now, key, &place.item);
        place.item.is_some().then(|| place.lend(read))
    }

    /// A copy of the key's value as [`Bytes`](bytes::Bytes), which are cheap to clone and to divide.
    #[cfg(feature = "bytes")]
    pub fn get_bytes(&self, key: impl AsRef<[u8]>) -> Option<bytes::Bytes> {
        self.get(key).map(bytes::Bytes::from)
    }

    /// Replaces the contents of `into` by the key's value and returns true, or empties `into` and returns false if
    /// there is none. Gets into the same buffer allocate nothing once it is large enough.
    pub fn get_into(&self, key: impl AsRef<[u8]>, into: &mut Vec<u8>) -> bool {
        into.clear();
        let Some(key) = self.lookup_key(key.as_ref()) else {
            return false;
        };
        self.read_into(key, into)
    }

    /// Appends the key's value to `into`, and counts a read. False if there is none.
    #[inline(always)]
    pub(super) fn read_into(&self, key: Key<'_>, into: &mut Vec<u8>) -> bool {
        if self.shared.defaults.idle.is_none()
            && let Some(is_hit) = self.get_at_once(&key, &mut CopyOut::<()>::new(into))
        {
            return is_hit;
        }
        self.read_apart(key.bytes(), into)
    }

    // Out of line, as above.
    #[cold]
    #[inline(never)]
    fn read_apart(&self, key: &[u8], into: &mut Vec<u8>) -> bool {
        let Some(key) = self.lookup_key(key) else {
            return false;
        };
        let (thread, is_hit) = self.copy(key, into);
        self.count_read(thread, is_hit);
        is_hit
    }

    /// A copy of the key's value, its version, and its age.
    pub fn get_item(&self, key: impl AsRef<[u8]>) -> Option<Item> {
        let (now, key) = (self.now(), self.lookup_key(key.as_ref())?);
        let read = Read {
            idle: true,
            ..Read::default()
        };
        let mut value = Vec::new();
        let mut copy = CopyOut::new(&mut value);
        let thread = self.ask(now, key, Op::Read(read), &mut copy);
        self.count_read(thread, copy.item.is_some());
        self.used(now, key, &copy.item);
        let found = copy.item?;
        Some(Item {
            value,
            version: found.cas,
            expires_in: match found.expiry {
                Expiry::Never => None,
                Expiry::At(end) => Some(self.shared.clock.present().left(end)),
            },
            age: found.idle,
        })
    }

    /// Copies of the keys' values, in the order of the keys, looked up in one batch: see [`Cache::get_many_with`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// cache.insert("a", "1")?;
    /// assert_eq!(cache.get_many(&["a", "b"]), [Some(b"1".to_vec()), None]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)));
        values
    }

    /// Lends each key's value to `read`, or `None` if it has none, with the key's index, in the order of the keys.
    ///
    /// The keys are looked up in one batch, which overlaps their memory misses: several times as fast as one by one
    /// when the cache is larger than the processor's caches. The lookups are not one atomic step. It allocates one
    /// vector for the batch, and nothing for a value, except for one in pieces (see [`Cache::get_with`]).
    ///
    /// `read` is called while the batch runs. It may use the cache, but such calls take longer than others. If it
    /// panics, it is not called for the keys after that.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// cache.insert("a", "one")?;
    /// cache.insert("c", "three")?;
    /// let mut lengths = [None; 3];
    /// cache.get_many_with(&["a", "b", "c"], |index, value| lengths[index] = value.map(<[u8]>::len));
    /// assert_eq!(lengths, [Some(3), None, Some(5)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) {
        let now = self.now();
        let idle = self.shared.defaults.idle.is_some();
        let mut batch = Vec::with_capacity(keys.len());
        let mut place = InPlace::new();
        let mut lent = LendMany::new(&mut place, read, idle);
        let mut spare = None;
        let (thread, mut session) = self.session(&mut spare);
        for (index, key) in keys.iter().enumerate() {
            match self.lookup_key(key.as_ref()) {
                Some(key) => {
                    session.prefetch(&key);
                    batch.push(Request { key, op: Op::Get });
                }
                None => lent.skip(index),
            }
        }
        session.execute(now, &batch, &mut lent);
        drop(session);
        let (hits, items) = lent.finish();
        let misses = batch.len() as u64 - hits;
        self.shared.sessions.count_reads(thread, hits, misses);
        for (request, item) in items {
            self.used(now, batch[request].key, &Some(item));
        }
    }

    /// True if the key has a value. Does not count as a use of it.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> bool {
        let read = Read {
            value: false,
            bump: false,
            ..Read::default()
        };
        let answer = self
            .key(key.as_ref())
            .and_then(|key| self.change(self.now(), key, Op::Read(read)));
        matches!(answer, Ok(Reply::Found(_)))
    }

    /// Appends the key's value to `into`, in a session; in a cache with a time to idle this prolongs the item's life.
    /// False if there is none. The caller counts the read, by the thread that is returned.
    pub(super) fn copy(&self, key: Key<'_>, into: &mut Vec<u8>) -> (Option<&PerThread>, bool) {
        let now = self.now();
        let mut copy = CopyOut::new(into);
        let thread = self.ask(now, key, Op::Get, &mut copy);
        self.used(now, key, &copy.item);
        (thread, copy.item.is_some())
    }

    /// A copy of the key's value and its metadata, without a use.
    pub(super) fn peek(&self, key: &[u8]) -> Option<(Vec<u8>, Found)> {
        let read = Read {
            bump: false,
            ..Read::default()
        };
        let mut value = Vec::new();
        let mut copy = CopyOut::new(&mut value);
        self.ask(self.now(), self.lookup_key(key)?, Op::Read(read), &mut copy);
        let item = copy.item?;
        Some((value, item))
    }
}
