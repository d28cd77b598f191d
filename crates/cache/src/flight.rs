//! One caller computes, the others wait: protection against a stampede on a missing key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks, so that flights of different keys seldom meet.
const SHARDS: usize = 64;

/// Computations under way, by key.
pub(crate) struct Flights {
    shards: [Mutex<Shard>; SHARDS],
}

type Shard = HashMap<Box<[u8]>, Arc<Flight>>;

/// One computation.
pub(crate) struct Flight {
    state: Mutex<State>,
    landed: Condvar,
}

enum State {
    Flying,
    Landed(Arc<[u8]>),
    /// The one who computed gave up: an error, or a panic.
    Failed,
}

/// What a caller has to do.
pub(crate) enum Role<'a> {
    /// Compute.
    Leader(Leader<'a>),
    /// Wait for the one who computes.
    Follower(Arc<Flight>),
}

/// The right and the duty to compute. Dropped without a value, it lets a follower try.
pub(crate) struct Leader<'a> {
    flights: &'a Flights,
    key: &'a [u8],
    hash: u64,
    flight: Arc<Flight>,
    value: Option<Arc<[u8]>>,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No user code runs under these locks, so their data is whole even after a panic.
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Flights {
    /// Joins the key's flight, or starts it.
    pub fn join<'a>(&'a self, key: &'a [u8], hash: u64) -> Role<'a> {
        match lock(self.shard(hash)).entry(key.into()) {
            Entry::Occupied(flight) => Role::Follower(Arc::clone(flight.get())),
            Entry::Vacant(place) => {
                let flight = Arc::new(Flight {
                    state: Mutex::new(State::Flying),
                    landed: Condvar::new(),
                });
                place.insert(Arc::clone(&flight));
                Role::Leader(Leader {
                    flights: self,
                    key,
                    hash,
                    flight,
                    value: None,
                })
            }
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Flight {
    /// Waits for the value; `None` if the one who computed gave up.
    pub fn wait(&self) -> Option<Arc<[u8]>> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Landed(value) => return Some(Arc::clone(value)),
                State::Failed => return None,
                State::Flying => {
                    state = self
                        .landed
                        .wait(state)
                        .unwrap_or_else(|bad| bad.into_inner());
                }
            }
        }
    }
}

impl Leader<'_> {
    /// Hands the value to all who wait.
    pub fn land(mut self, value: Arc<[u8]>) {
        self.value = Some(value);
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        // First out of the map, so that whoever misses from now on starts a flight of its own.
        lock(self.flights.shard(self.hash)).remove(self.key);
        *lock(&self.flight.state) = match self.value.take() {
            Some(value) => State::Landed(value),
            None => State::Failed,
        };
        self.flight.landed.notify_all();
    }
}
