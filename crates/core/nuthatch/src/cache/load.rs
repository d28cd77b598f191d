//! Values that are computed when they are missed.

use std::convert::Infallible;
use std::mem;
use std::sync::Arc;

use nuthatch_engine::request::Key;

use super::Cache;
use crate::error::{Error, LoadError};
use crate::flight::{Flight, Leader, Role};
use crate::lifetime::Lifetime;
use crate::trace::{self, Computation};

/// How often a caller has looked for the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Not yet: the first time counts as a read.
    First,
    /// It has missed it, and was counted.
    Again,
}

/// What a caller finds when it looks for a value that it could compute.
enum Start<'a> {
    Found(Vec<u8>),
    Compute(Leader<'a>),
    Wait(Arc<Flight>),
}

impl Cache {
    /// Returns the key's value. If there is none, returns the one that `compute` returns, and stores it. Of all callers
    /// that miss a key at the same time exactly one computes; the others wait for its value. If it panics, one of the
    /// others computes.
    ///
    /// The computed value is returned to all of them even if it cannot be stored, because it is too large or the cache
    /// is full and may not evict. The next caller computes it again then.
    ///
    /// A `compute` that calls any of these methods for its own key gets [`Error::Recursion`], and so does a
    /// [listener](crate::Builder::removal_listener) that is called when its value is stored. But two threads that each
    /// compute a key and call for the other's key wait for ever. So does a thread whose `compute` has another thread
    /// call for the same key and waits for that thread. A task of an executor uses
    #[cfg_attr(feature = "async", doc = "[`Cache::get_or_insert_async`],")]
    #[cfg_attr(
        not(feature = "async"),
        doc = "`get_or_insert_async` (of the feature `async`),"
    )]
    /// for waiting here blocks its thread.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let cache = nuthatch::Cache::new(16 << 20)?;
    /// let minute = Duration::from_secs(60);
    /// let page = cache.get_or_insert_with("page:1", minute, || "<h1>rendered once</h1>")?;
    /// assert_eq!(page, cache.get_or_insert_with("page:1", minute, || "not called")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: [`Error::KeyLength`], before anything is computed, and [`Error::Recursion`].
    pub fn get_or_insert_with<V: Into<Vec<u8>>>(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
        compute: impl FnOnce() -> V,
    ) -> Result<Vec<u8>, Error> {
        let compute = || Ok::<_, Infallible>(compute());
        only_the_caches(self.try_get_or_insert_with(key, lifetime, compute))
    }

    /// As [`Cache::get_or_insert_with`], for computations that may fail. An error is returned to the caller that
    /// computed; one of the callers that waited computes next. So callers that wait for a computation that keeps
    /// failing fail one after the other. A computation that calls another machine should have a short timeout.
    pub fn try_get_or_insert_with<V: Into<Vec<u8>>, E>(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
        compute: impl FnOnce() -> Result<V, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        self.load(key.as_ref(), lifetime.into(), Look::First, compute)
    }

    /// [`Cache::try_get_or_insert_with`], for a caller that may have missed the value already.
    pub(crate) fn load<V: Into<Vec<u8>>, E>(
        &self,
        key: &[u8],
        lifetime: Lifetime,
        mut look: Look,
        compute: impl FnOnce() -> Result<V, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let key = self.key(key)?;
        // A pass without a result means that another caller's computation failed.
        loop {
            match self.start(&key, mem::replace(&mut look, Look::Again))? {
                Start::Found(value) => return Ok(value),
                Start::Wait(flight) => {
                    if let Some(value) = flight.wait() {
                        return Ok(value.to_vec());
                    }
                }
                Start::Compute(leader) => {
                    let computation = Computation::begin(key.bytes().len());
                    let computed = leader.run(|| computation.run(|| compute().map(Into::into)));
                    let value = Self::computed(computation, computed)?;
                    return Ok(self.finish(&key, lifetime, value, leader));
                }
            }
        }
    }

    /// As [`Cache::get_or_insert_with`], for tasks: it waits without blocking the thread, in any executor. `compute` is
    /// polled only by the caller that computes. Tasks and callers of the blocking methods share one computation.
    ///
    /// The future may be dropped at any time. If it is the one that computes, its computation is dropped and one of the
    /// other callers computes. One that waits just leaves. But a future that has begun to compute, and is kept without
    /// being polled, keeps the others waiting.
    ///
    /// Recursion is detected only while `compute` is polled, and then returns the typed error. A `compute` that spawns
    /// a task for its own key and waits for it waits for ever.
    #[cfg(feature = "async")]
    pub async fn get_or_insert_async<V: Into<Vec<u8>>>(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
        compute: impl Future<Output = V>,
    ) -> Result<Vec<u8>, Error> {
        let compute = async { Ok::<_, Infallible>(compute.await) };
        only_the_caches(self.try_get_or_insert_async(key, lifetime, compute).await)
    }

    /// As [`Cache::get_or_insert_async`], for computations that may fail. An error is returned to the caller that
    /// computed; one of the callers that waited computes next, as in [`Cache::try_get_or_insert_with`].
    #[cfg(feature = "async")]
    pub async fn try_get_or_insert_async<V: Into<Vec<u8>>, E>(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: impl Into<Lifetime>,
        compute: impl Future<Output = Result<V, E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let (key, lifetime) = (key.as_ref(), lifetime.into());
        self.load_async(key, lifetime, Look::First, compute).await
    }

    /// [`Cache::try_get_or_insert_async`], for a caller that may have missed the value already.
    #[cfg(feature = "async")]
    pub(crate) async fn load_async<V: Into<Vec<u8>>, E>(
        &self,
        key: &[u8],
        lifetime: Lifetime,
        mut look: Look,
        compute: impl Future<Output = Result<V, E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let key = self.key(key)?;
        loop {
            match self.start(&key, mem::replace(&mut look, Look::Again))? {
                Start::Found(value) => return Ok(value),
                Start::Wait(flight) => {
                    if let Some(value) = flight.landing().await {
                        return Ok(value.to_vec());
                    }
                }
                Start::Compute(leader) => {
                    let mut compute = std::pin::pin!(compute);
                    let computation = Computation::begin(key.bytes().len());
                    let polled = std::future::poll_fn(|context| {
                        let poll = || compute.as_mut().poll(context).map_ok(Into::into);
                        leader.run(|| computation.run(poll))
                    });
                    let computed = polled.await;
                    let value = Self::computed(computation, computed)?;
                    return Ok(self.finish(&key, lifetime, value, leader));
                }
            }
        }
    }

    /// Looks for the value; if there is none, joins or starts a flight.
    fn start<'a>(&'a self, key: &Key<'a>, look: Look) -> Result<Start<'a>, Error> {
        let mut value = Vec::new();
        let is_hit = match look {
            Look::First => self.read_into(*key, &mut value),
            Look::Again => self.copy(*key, &mut value).1,
        };
        if is_hit {
            return Ok(Start::Found(value));
        }
        match self.shared.flights.join(key.bytes(), key.hash()) {
            Role::Recursive => Err(Error::Recursion),
            Role::Follower(flight) => Ok(Start::Wait(flight)),
            Role::Leader(leader) => Ok(match self.copy(*key, &mut value).1 {
                // The last flight landed between the miss and this one's start.
                true => {
                    leader.land(&value);
                    Start::Found(value)
                }
                false => Start::Compute(leader),
            }),
        }
    }

    /// What a computation has given.
    fn computed<E>(
        computation: Computation,
        computed: Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        computation.end(computed.as_ref().ok().map(Vec::len));
        computed.map_err(LoadError::Load)
    }

    /// Stores a computed value, if the cache takes it, and hands it to all followers.
    fn finish(
        &self,
        key: &Key<'_>,
        lifetime: Lifetime,
        value: Vec<u8>,
        leader: Leader<'_>,
    ) -> Vec<u8> {
        // Stored before the flight ends: a caller that misses the value after that begins a new flight. Within the run,
        // because the store may call a listener, and one that calls for this key would wait for its own thread.
        if let Err(error) = leader.run(|| self.store(key.bytes(), &value, lifetime)) {
            trace::not_kept(error, key.bytes().len(), value.len());
        }
        leader.land(&value);
        value
    }
}

fn only_the_caches<T>(result: Result<T, LoadError<Infallible>>) -> Result<T, Error> {
    result.map_err(|error| match error {
        LoadError::Cache(error) => error,
        LoadError::Load(never) => match never {},
    })
}
