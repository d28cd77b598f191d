//! Keys and values of types, in place of bytes: see [`TypedCache`].

mod batch;
mod buffer;
mod codec;
mod compound;
mod error;
mod load;
mod plain;
#[cfg(feature = "serde")]
mod serde;

use std::fmt;
use std::marker::PhantomData;

use crate::builder::Builder;
use crate::cache::Cache;
use crate::error::BuildError;
use crate::lifetime::Lifetime;

pub use codec::{CodecError, Decode, Encode};
pub use error::TypedError;
#[cfg(feature = "serde")]
pub use serde::Serde;

/// A [`Cache`] whose keys and values have types: `K` and `V` are their kinds, [`Encode`] says which there are.
///
/// ```
/// use std::time::Duration;
/// use nuthatch::TypedCache;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let visits: TypedCache<(String, u32), u64> = TypedCache::new(16 << 20)?;
/// visits.insert(("index.html", 2026), 7)?;
/// assert_eq!(visits.get(("index.html", 2026))?, Some(7));
///
/// let pages: TypedCache<u32, String> = TypedCache::new(16 << 20)?;
/// let minute = Duration::from_secs(60);
/// let page = pages.get_or_insert_with(1, minute, || "<h1>rendered once</h1>".to_owned())?;
/// assert_eq!(pages.get(1)?, Some(page));
/// // The value where it is, without a `String`.
/// assert_eq!(pages.get_with(1, |page: &str| page.len())?, Some(22));
/// # Ok(())
/// # }
/// ```
///
/// It is a handle of a cache of bytes, as that is: clones share it. Callers pass what their kind is borrowed as
/// ([`Encode::Given`]): a `&str` for a `String`, a `&T` for a `Serde<T>`, a number as itself, a tuple of these. The cache
/// keeps the bytes, and each get makes a new value of them.
///
/// A key has 1 to 250 bytes ([`KEY_LEN_MAX`](crate::KEY_LEN_MAX)) when it is encoded. A number has as many as its type; a
/// string has its own; a tuple has those of its parts, and a byte (two from 128 bytes on) for each part but the last; an
/// `Option` has one more. A store under any other key is refused ([`Error::KeyLength`](crate::Error::KeyLength)), the
/// empty string's too, and a lookup of one finds nothing.
///
/// What a get costs beside that of [`Cache`]: a key of one string, byte string or number is not copied, and any other is
/// written to a buffer that the thread uses again. Nothing is allocated but what the value itself allocates.
///
/// # One cache of bytes, several types
///
/// [`TypedCache::new`] and [`Builder::build_typed`] make a cache of bytes that nothing else uses. [`TypedCache::of`] takes
/// any. The bytes do not say which type they are of: two typed caches over one cache of bytes share each key whose bytes are
/// equal (the number `97_u8` and the string `"a"`), and read each other's values. If these are no bytes of its type, a
/// read returns [`TypedError::Decode`]; else it returns what they mean there. So caches that share memory take keys that
/// begin differently: tuples with a `u8` of their own in front.
pub struct TypedCache<K, V> {
    bytes: Cache,
    kinds: PhantomData<fn() -> (K, V)>,
}

impl<K, V> TypedCache<K, V> {
    /// A cache of at most `memory_limit` bytes. Errors: those of [`Builder::build`].
    pub fn new(memory_limit: usize) -> Result<Self, BuildError> {
        Cache::new(memory_limit).map(Self::of)
    }

    /// The typed view of a cache of bytes, which others may use, too.
    pub fn of(bytes: Cache) -> Self {
        let kinds = PhantomData;
        Self { bytes, kinds }
    }

    /// The cache of bytes, for all that has no types: [`Cache::stats`], [`Cache::set_memory_limit`],
    /// [`Cache::invalidate_all`].
    pub fn bytes(&self) -> &Cache {
        &self.bytes
    }
}

impl Builder {
    /// Makes a cache with typed keys and values. Errors: those of [`Builder::build`]. A
    /// [listener](Builder::removal_listener) is called with bytes, which [`Decode::view`] reads.
    pub fn build_typed<K, V>(self) -> Result<TypedCache<K, V>, BuildError> {
        self.build().map(TypedCache::of)
    }
}

// Errors of the methods below: a key or value without bytes, bytes without a value, and what the cache of bytes refuses.
impl<K: Encode, V: Decode> TypedCache<K, V> {
    /// The key's value. Errors: [`TypedError::Decode`], and [`TypedError::Encode`] of the key.
    #[inline]
    pub fn get(&self, key: K::Given<'_>) -> Result<Option<V::Owned>, TypedError> {
        self.read(key, V::decode)
    }

    /// Lends a view of the key's value to `read`, and returns its result: see [`Cache::get_with`]. Nothing is allocated,
    /// unless a view has to be (`Serde<T>`). Errors: as of [`TypedCache::get`].
    #[inline]
    pub fn get_with<T>(
        &self,
        key: K::Given<'_>,
        read: impl FnOnce(V::View<'_>) -> T,
    ) -> Result<Option<T>, TypedError> {
        self.read(key, |bytes| V::view(bytes).map(read))
    }

    /// True if the key has a value. Does not count as a use of it. Errors: [`TypedError::Encode`].
    pub fn contains_key(&self, key: K::Given<'_>) -> Result<bool, TypedError> {
        self.with_key(key, |key| self.bytes.contains_key(key))
    }

    /// Stores a value for the cache's default lifetime. Errors: [`TypedError::Encode`], and [`TypedError::Cache`] as of
    /// [`Cache::insert`].
    #[inline]
    pub fn insert(&self, key: K::Given<'_>, value: V::Given<'_>) -> Result<(), TypedError> {
        self.insert_for(key, value, Lifetime::Default)
    }

    /// Stores a value for a lifetime, which may be a [`Duration`](std::time::Duration). Errors: as of
    /// [`TypedCache::insert`].
    #[inline]
    pub fn insert_for(
        &self,
        key: K::Given<'_>,
        value: V::Given<'_>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<(), TypedError> {
        let lifetime = lifetime.into();
        self.with_both(key, value, |key, value| {
            self.bytes.insert_for(key, value, lifetime)
        })
    }

    /// Stores a value only if the key has none. True if it was stored. Errors: as of [`TypedCache::insert`].
    pub fn add(
        &self,
        key: K::Given<'_>,
        value: V::Given<'_>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<bool, TypedError> {
        let lifetime = lifetime.into();
        self.with_both(key, value, |key, value| {
            self.bytes.add(key, value, lifetime)
        })
    }

    /// Gives the key's item a new lifetime, which begins now: see [`Cache::touch`]. False if there is none. Errors:
    /// [`TypedError::Encode`], and [`TypedError::Cache`] as there.
    pub fn touch(
        &self,
        key: K::Given<'_>,
        lifetime: impl Into<Lifetime>,
    ) -> Result<bool, TypedError> {
        Ok(self.with_key(key, |key| self.bytes.touch(key, lifetime))??)
    }

    /// Removes the key's item, and returns its value. Errors: as of [`TypedCache::get`]; an item whose value cannot be
    /// decoded is removed, too.
    pub fn remove(&self, key: K::Given<'_>) -> Result<Option<V::Owned>, TypedError> {
        let removed = self.with_key(key, |key| self.bytes.remove(key))?;
        removed.map(|bytes| Self::decoded(&bytes)).transpose()
    }

    /// Removes the key's item without reading its value. True if there was one. Errors: [`TypedError::Encode`].
    pub fn invalidate(&self, key: K::Given<'_>) -> Result<bool, TypedError> {
        self.with_key(key, |key| self.bytes.invalidate(key))
    }

    /// All items, in no order: see [`Cache::iter`]. What is in the cache and cannot be decoded is a
    /// [`TypedError::Decode`], and the iteration goes on behind it.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K::Owned, V::Owned), TypedError>>
    where
        K: Decode,
    {
        self.bytes.iter().map(|(key, value)| {
            let key = K::decode(&key).map_err(TypedError::decode::<K, K>)?;
            Ok((key, Self::decoded(&value)?))
        })
    }

    #[inline(always)]
    fn read<T>(
        &self,
        key: K::Given<'_>,
        decode: impl FnOnce(&[u8]) -> Result<T, CodecError>,
    ) -> Result<Option<T>, TypedError> {
        match self.with_key(key, |key| self.bytes.get_with(key, decode))? {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(reason)) => Err(TypedError::decode::<K, V>(reason)),
        }
    }

    #[inline(always)]
    fn with_key<T>(&self, key: K::Given<'_>, to: impl FnOnce(&[u8]) -> T) -> Result<T, TypedError> {
        K::lend(key, to).map_err(TypedError::encode::<K>)
    }

    #[inline(always)]
    fn with_both<T>(
        &self,
        key: K::Given<'_>,
        value: V::Given<'_>,
        store: impl FnOnce(&[u8], &[u8]) -> Result<T, crate::Error>,
    ) -> Result<T, TypedError> {
        let stored = self.with_key(key, |key| V::lend(value, |value| store(key, value)))?;
        Ok(stored.map_err(TypedError::encode::<V>)??)
    }

    fn decoded<E>(value: &[u8]) -> Result<V::Owned, TypedError<E>> {
        V::decode(value).map_err(TypedError::decode::<K, V>)
    }
}

// Of the handle, not of keys and values: these need not be `Clone`.
impl<K, V> Clone for TypedCache<K, V> {
    fn clone(&self) -> Self {
        Self::of(self.bytes.clone())
    }
}

impl<K, V> fmt::Debug for TypedCache<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("TypedCache").field(&self.bytes).finish()
    }
}
