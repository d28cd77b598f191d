//! One call after the other: in this process' own cache, from a server's memory, by nuthatch-client.

use nuthatch::Cache;
use nuthatch_client::Client;

use super::{Job, Operation};
use crate::found::{Begun, Found, Times};
use crate::items::{self, Numbers};

/// Calls that are timed together where one takes as long as a look at the clock.
const TOGETHER: u64 = 100;

/// Bytes of the cache that a process has for itself: as much as the servers get.
const MEMORY: usize = 1 << 30;

type Measured = Result<Found, String>;

/// Calls on a cache of this process.
pub fn cache(job: &Job) -> Result<impl FnOnce() -> Measured, String> {
    let cache = Cache::builder()
        .memory_limit(MEMORY)
        .build()
        .map_err(|error| error.to_string())?;
    let size = job.value_size;
    for number in 0..job.keys {
        let key = items::key(number);
        let stored = cache.insert(key, items::value(&key, size));
        stored.map_err(|error| error.to_string())?;
    }
    let job = job.clone();
    Ok(move || match job.operation {
        Operation::Get => {
            let mut value = Vec::new();
            one_by_one(&job, TOGETHER, |key| {
                match cache.get_into(key, &mut value) {
                    true => right(&value, key, size),
                    false => Err(MISSING.to_owned()),
                }
            })
        }
        Operation::Set => {
            let value = vec![b'x'; size];
            one_by_one(&job, TOGETHER, |key| {
                cache.insert(key, &value).map_err(|error| error.to_string())
            })
        }
    })
}

/// Gets from a server's memory.
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
pub fn direct(job: &Job) -> Result<impl FnOnce() -> Measured, String> {
    if job.operation == Operation::Set {
        return Err("nuthatch-direct has no sets".to_owned());
    }
    let server =
        nuthatch_direct::Direct::connect(job.target.as_ref()).map_err(|error| error.to_string())?;
    let job = job.clone();
    Ok(move || {
        let mut value = Vec::new();
        one_by_one(&job, TOGETHER, |key| match server.get(key, &mut value) {
            Ok(Some(_)) => right(&value, key, job.value_size),
            Ok(None) => Err(MISSING.to_owned()),
            Err(gone) => Err(gone.to_string()),
        })
    })
}

/// Only Linux shares a server's memory.
#[cfg(not(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable)))))]
pub fn direct(_: &Job) -> Result<fn() -> Measured, String> {
    Err("--shared needs Linux".to_owned())
}

/// Calls by nuthatch-client.
pub fn client(job: &Job) -> Result<impl FnOnce() -> Measured, String> {
    let client = Client::connect(&job.target).map_err(|error| error.to_string())?;
    // A call: the first one connects.
    client
        .get(items::key(0))
        .map_err(|error| error.to_string())?;
    let job = job.clone();
    let together = match job.target.starts_with("shm://") && job.operation == Operation::Get {
        true => TOGETHER,
        false => 1,
    };
    Ok(move || {
        one_by_one(&job, together, |key| match job.operation {
            Operation::Get => match client.get(key) {
                Ok(Some(value)) => right(&value, key, job.value_size),
                Ok(None) => Err(MISSING.to_owned()),
                Err(error) => Err(error.to_string()),
            },
            Operation::Set => client
                .set(key, items::value(key, job.value_size), None)
                .map_err(|error| error.to_string()),
        })
    })
}

pub const MISSING: &str = "an item is missing";

/// Whether a value is the key's.
#[inline]
pub fn right(value: &[u8], key: &[u8], size: usize) -> Result<(), String> {
    match items::is_value_of(value, key, size) {
        true => Ok(()),
        false => Err("a wrong value".to_owned()),
    }
}

/// Makes one call after the other until the time is over.
#[inline]
pub fn one_by_one(
    job: &Job,
    together: u64,
    mut call: impl FnMut(&[u8]) -> Result<(), String>,
) -> Measured {
    let mut numbers = Numbers::new(job.keys, job.seed);
    let mut times = Times::new();
    let begun = Begun::now();
    let mut last = begun.at();
    let end = last + job.time();
    while last < end {
        for _ in 0..together {
            call(&items::key(numbers.draw()))?;
        }
        let now = std::time::Instant::now();
        times.record((now - last) / together as u32);
        last = now;
    }
    Ok(begun.end(&times, together))
}
