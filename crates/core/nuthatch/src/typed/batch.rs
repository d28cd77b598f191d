//! Batches of lookups in a typed cache.

use super::codec::{Decode, Encode};
use super::{TypedCache, TypedError, buffer};

impl<K: Encode, V: Decode> TypedCache<K, V> {
    /// The keys' values, in the order of the keys, looked up in one batch: see [`TypedCache::get_many_with`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache: nuthatch::TypedCache<u32, String> = nuthatch::TypedCache::new(16 << 20)?;
    /// cache.insert(1, "one")?;
    /// assert_eq!(cache.get_many([1, 2])?, [Some("one".to_owned()), None]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as of [`TypedCache::get`], the first of them; [`TypedCache::get_many_with`] gives the values of the other
    /// keys nevertheless.
    pub fn get_many<'k>(
        &self,
        keys: impl IntoIterator<Item = K::Given<'k>>,
    ) -> Result<Vec<Option<V::Owned>>, TypedError> {
        let keys = keys.into_iter();
        let mut values = Vec::with_capacity(keys.size_hint().0);
        self.look_up(keys, |_, value| {
            values.push(value.map(Self::decoded).transpose())
        })?;
        values.into_iter().collect()
    }

    /// Lends a view of each key's value to `read`, or `None` if it has none, with the key's index, in the order of the
    /// keys: see [`Cache::get_many_with`](crate::Cache::get_many_with). It allocates three vectors for the batch.
    ///
    /// A value that cannot be decoded is a [`TypedError::Decode`] for `read`, and the batch goes on. Errors:
    /// [`TypedError::Encode`] of a key; then nothing is looked up.
    pub fn get_many_with<'k>(
        &self,
        keys: impl IntoIterator<Item = K::Given<'k>>,
        mut read: impl FnMut(usize, Result<Option<V::View<'_>>, TypedError>),
    ) -> Result<(), TypedError> {
        self.look_up(keys, |index, value| {
            let view = value.map(V::view).transpose();
            read(index, view.map_err(TypedError::decode::<K, V>));
        })
    }

    fn look_up<'k>(
        &self,
        keys: impl IntoIterator<Item = K::Given<'k>>,
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), TypedError> {
        let keys = keys.into_iter();
        buffer::with(|buffer| {
            let mut ends = Vec::with_capacity(keys.size_hint().0);
            for key in keys {
                K::encode(key, buffer).map_err(TypedError::encode::<K>)?;
                ends.push(buffer.len());
            }
            let mut begin = 0;
            let key_to = |end| &buffer[std::mem::replace(&mut begin, end)..end];
            let keys: Vec<&[u8]> = ends.into_iter().map(key_to).collect();
            self.bytes.get_many_with(&keys, read);
            Ok(())
        })
    }
}
