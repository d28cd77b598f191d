//! Values that are computed when they are missed.

use std::convert::Infallible;
use std::time::Duration;

use super::{Cache, Error, LoadError, checked};
use crate::engine::Engine;
use crate::flight::Role;
use crate::request::{Expiry, Store};

impl Cache {
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
}
