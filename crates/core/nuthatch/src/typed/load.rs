//! Values of a typed cache that are computed when they are missed.

use std::convert::Infallible;

use super::codec::{Decode, Encode};
use super::{TypedCache, TypedError};
use crate::cache::Look;
use crate::lifetime::Lifetime;

impl<K: Encode, V: Decode> TypedCache<K, V> {
    /// Returns the key's value. If there is none, returns the one that `compute` returns, and stores it. Of all callers
    /// that miss a key at the same time one computes: see [`Cache::get_or_insert_with`](crate::Cache::get_or_insert_with).
    ///
    /// Errors: as of [`TypedCache::get`]; [`TypedError::Cache`], as there; and [`TypedError::Encode`] of the computed value,
    /// of which nothing is stored.
    pub fn get_or_insert_with(
        &self,
        key: K::Given<'_>,
        lifetime: impl Into<Lifetime>,
        compute: impl FnOnce() -> V::Owned,
    ) -> Result<V::Owned, TypedError> {
        self.try_get_or_insert_with(key, lifetime, || Ok::<_, Infallible>(compute()))
    }

    /// As [`TypedCache::get_or_insert_with`], for computations that may fail ([`TypedError::Load`]): see
    /// [`Cache::try_get_or_insert_with`](crate::Cache::try_get_or_insert_with).
    pub fn try_get_or_insert_with<E>(
        &self,
        key: K::Given<'_>,
        lifetime: impl Into<Lifetime>,
        compute: impl FnOnce() -> Result<V::Owned, E>,
    ) -> Result<V::Owned, TypedError<E>> {
        if let Some(value) = self.get(key).map_err(TypedError::widen)? {
            return Ok(value);
        }
        let mut computed = None;
        let compute = || {
            let value = compute().map_err(TypedError::Load)?;
            let bytes = Self::encoded(&value)?;
            computed = Some(value);
            Ok(bytes)
        };
        let load = |key: &[u8]| self.bytes.load(key, lifetime.into(), Look::Again, compute);
        let loaded = K::lend(key, load).map_err(TypedError::encode::<K>)?;
        Self::of_load(computed, &loaded?)
    }

    /// As [`TypedCache::get_or_insert_with`], for tasks: see
    /// [`Cache::get_or_insert_async`](crate::Cache::get_or_insert_async).
    #[cfg(feature = "async")]
    pub async fn get_or_insert_async(
        &self,
        key: K::Given<'_>,
        lifetime: impl Into<Lifetime>,
        compute: impl Future<Output = V::Owned>,
    ) -> Result<V::Owned, TypedError> {
        let compute = async { Ok::<_, Infallible>(compute.await) };
        self.try_get_or_insert_async(key, lifetime, compute).await
    }

    /// As [`TypedCache::get_or_insert_async`], for computations that may fail ([`TypedError::Load`]).
    #[cfg(feature = "async")]
    pub async fn try_get_or_insert_async<E>(
        &self,
        key: K::Given<'_>,
        lifetime: impl Into<Lifetime>,
        compute: impl Future<Output = Result<V::Owned, E>>,
    ) -> Result<V::Owned, TypedError<E>> {
        if let Some(value) = self.get(key).map_err(TypedError::widen)? {
            return Ok(value);
        }
        // Not in the thread's buffer, for a task may go on in another thread.
        let mut bytes = Vec::new();
        K::encode(key, &mut bytes).map_err(TypedError::encode::<K>)?;
        let mut computed = None;
        let compute = async {
            let value = compute.await.map_err(TypedError::Load)?;
            let bytes = Self::encoded(&value)?;
            computed = Some(value);
            Ok(bytes)
        };
        let load = (self.bytes).load_async(&bytes, lifetime.into(), Look::Again, compute);
        let loaded = load.await;
        Self::of_load(computed, &loaded?)
    }

    fn encoded<E>(value: &V::Owned) -> Result<Vec<u8>, TypedError<E>> {
        let mut bytes = Vec::new();
        V::encode(V::given(value), &mut bytes).map_err(TypedError::encode::<V>)?;
        Ok(bytes)
    }

    /// The value that this caller has computed, or, if another one has, the value with these bytes.
    fn of_load<E>(computed: Option<V::Owned>, bytes: &[u8]) -> Result<V::Owned, TypedError<E>> {
        computed.map_or_else(|| Self::decoded(bytes), Ok)
    }
}
