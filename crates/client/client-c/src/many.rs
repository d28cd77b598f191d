//! Calls with many keys.

use std::ffi::c_int;

use nuthatch_client::{Error, Many};

use crate::calls::{Client, keep};
use crate::memory::{array, borrow, check_length, put};
use crate::status::{Failure, Status, catch};
use crate::value::{Entry, Key, Value};

/// Gets the values under so many keys, from all servers at once. Each of `values` has to be freed, or is none. If a server
/// failed, returns its failure, and the values of the others are there all the same.
///
/// # Safety
/// `client` is a client, `keys` has so many keys, each of so many bytes as it says, and `values` has room for so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get_many(
    client: *const Client,
    keys: *const Key,
    count: usize,
    values: *mut Value,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { get_each(client, keys, count, values, get_many) }
    })
}

/// Gets values as nuthatch_client_get_many() does, with what else the servers know of each.
///
/// # Safety
/// `client` is a client, `keys` has so many keys, each of so many bytes as it says, and `values` has room for so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get_many_items(
    client: *const Client,
    keys: *const Key,
    count: usize,
    values: *mut Value,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { get_each(client, keys, count, values, get_many_items) }
    })
}

/// Stores so many items, each as nuthatch_client_set() does, at all servers at once. Returns the first failure; `outcomes`, if
/// it is not NULL, has what came of each.
///
/// # Safety
/// `client` is a client, and `entries` has so many, each of so many bytes as it says. `outcomes` is NULL or has room for so
/// many numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_set_many(
    client: *const Client,
    entries: *const Entry,
    count: usize,
    outcomes: *mut c_int,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let entries = unsafe { array(entries, count) }?;
        let mut items = Vec::with_capacity(entries.len());
        for entry in entries {
            // SAFETY: the caller's promise.
            let key = unsafe { array(entry.key, entry.key_length) }?;
            // SAFETY: the caller's promise.
            let value = unsafe { array(entry.value, entry.value_length) }?;
            items.push((key, value, keep(entry.lifetime_ms, entry.flags)));
        }
        let stored = client.set_many(&items);
        // SAFETY: the caller's promise.
        unsafe { tell(stored, |()| Status::Done, outcomes) }
    })
}

/// Removes so many items, at all servers at once. Returns the first failure; `outcomes`, if it is not NULL, has for each what
/// nuthatch_client_delete() returns.
///
/// # Safety
/// `client` is a client, and `keys` has so many, each of so many bytes as it says. `outcomes` is NULL or has room for so many
/// numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_delete_many(
    client: *const Client,
    keys: *const Key,
    count: usize,
    outcomes: *mut c_int,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let keys = unsafe { words(keys, count) }?;
        let status = |was_there| match was_there {
            true => Status::Done,
            false => Status::NotFound,
        };
        // SAFETY: the caller's promise.
        unsafe { tell(client.delete_many(&keys), status, outcomes) }
    })
}

fn get_many(client: &nuthatch_client::Client, keys: &[&[u8]]) -> Many<Value> {
    made(client.get_many(keys), Value::of)
}

fn get_many_items(client: &nuthatch_client::Client, keys: &[&[u8]]) -> Many<Value> {
    made(client.get_many_items(keys), |item| {
        item.map_or(Value::NONE, Value::of_item)
    })
}

fn made<T>(many: Many<T>, make: impl Fn(T) -> Value) -> Many<Value> {
    Many {
        values: many.values.into_iter().map(make).collect(),
        failed: many.failed,
    }
}

/// Writes what a get of many keys found.
///
/// # Safety
/// As that of [`nuthatch_client_get_many`].
unsafe fn get_each(
    client: *const Client,
    keys: *const Key,
    count: usize,
    values: *mut Value,
    get: fn(&nuthatch_client::Client, &[&[u8]]) -> Many<Value>,
) -> Result<Status, Failure> {
    check_length::<Value>(count)?;
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe { put(values.wrapping_add(at), Value::NONE) }?;
    }
    // SAFETY: the caller's promise.
    let client = &unsafe { borrow(client) }?.0;
    // SAFETY: the caller's promise.
    let keys = unsafe { words(keys, count) }?;
    let many = get(client, &keys);
    for (at, value) in many.values.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { put(values.wrapping_add(at), value) }?;
    }
    first(many.failed)
}

/// The bytes of keys.
///
/// # Safety
/// `keys` has so many, each of so many bytes as it says, which no code changes for `'a`.
unsafe fn words<'a>(keys: *const Key, count: usize) -> Result<Vec<&'a [u8]>, Failure> {
    // SAFETY: the caller's promise.
    let keys = unsafe { array(keys, count) }?;
    keys.iter()
        // SAFETY: the caller's promise.
        .map(|key| unsafe { array(key.data, key.length) })
        .collect()
}

/// Writes what came of each change.
///
/// # Safety
/// `outcomes` is NULL or has room for as many numbers.
unsafe fn tell<T>(
    many: Many<T>,
    status: impl Fn(T) -> Status,
    outcomes: *mut c_int,
) -> Result<Status, Failure> {
    if !outcomes.is_null() {
        for (at, value) in many.values.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { put(outcomes.wrapping_add(at), status(value) as c_int) }?;
        }
        for (at, error) in &many.failed {
            // SAFETY: the caller's promise.
            unsafe { put(outcomes.wrapping_add(*at), Status::from(error) as c_int) }?;
        }
    }
    first(many.failed)
}

fn first(failed: Vec<(usize, Error)>) -> Result<Status, Failure> {
    match failed.into_iter().next() {
        Some((_, error)) => Err(error.into()),
        None => Ok(Status::Done),
    }
}
