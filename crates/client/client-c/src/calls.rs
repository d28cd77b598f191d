//! The calls.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use nuthatch_client::{Error, Item, Keep};

use crate::memory::{array, borrow, check_place, put};
use crate::status::{Status, catch, string};
use crate::value::Value;

/// A client, for all threads of a program.
#[derive(Debug)]
pub struct Client(pub(crate) nuthatch_client::Client);

/// A lifetime of milliseconds. A negative one is without an end.
fn lifetime(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

pub(crate) fn keep(lifetime_ms: i64, flags: u32) -> Keep {
    Keep::from(lifetime(lifetime_ms)).flags(flags)
}

/// Makes a client of the servers at this address: "tcp://HOST:PORT,HOST:PORT", "unix:///PATH", "tls://HOST:PORT?ca=FILE" or,
/// on Linux, "shm:///PATH", with options behind "?", which docs/clients.md describes. Nothing is connected yet.
/// After a failure `client` is NULL.
///
/// # Safety
/// `address` ends with a zero byte. `client` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_connect(
    address: *const c_char,
    client: *mut *mut Client,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { put(client, std::ptr::null_mut()) }?;
        // SAFETY: the caller's promise.
        let address = unsafe { string(address) }?;
        let made = Box::new(Client(nuthatch_client::Client::connect(address)?));
        // SAFETY: the caller's promise.
        unsafe { put(client, Box::into_raw(made)) }?;
        Ok(Status::Done)
    })
}

/// Ends a client and its connections. NULL is passed over.
///
/// # Safety
/// `client` is NULL, or was made by nuthatch_client_connect() and is used by no thread any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_destroy(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: the caller's promise; it was made from a box.
        drop(unsafe { Box::from_raw(client) });
    }
}

/// A call that gets a value: writes none before it begins, so that there is none after a failure, and then what `get` returns.
///
/// # Safety
/// `client` is NULL or a client. So many bytes as said lie at `key`, and `value` is NULL or may be written to.
pub(crate) unsafe fn got(
    client: *const Client,
    (key, key_length): (*const u8, usize),
    value: *mut Value,
    get: impl FnOnce(&nuthatch_client::Client, &[u8]) -> Result<(Status, Value), Error>,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { put(value, Value::NONE) }?;
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        let (status, found) = get(client, key)?;
        // SAFETY: the caller's promise.
        unsafe { put(value, found) }?;
        Ok(status)
    })
}

/// What a get came to that found an item or none.
fn item_or_none(found: Option<Item>) -> (Status, Value) {
    match found {
        Some(item) => (Status::Done, Value::of_item(item)),
        None => (Status::NotFound, Value::NONE),
    }
}

/// Gets the value under a key. Returns 0 if there is one, and then `value` has to be freed; else
/// NUTHATCH_CLIENT_STATUS_NOT_FOUND, or a failure, and `value` is none.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    let get = |client: &nuthatch_client::Client, key: &[u8]| {
        let found = client.get(key)?;
        let status = if found.is_some() {
            Status::Done
        } else {
            Status::NotFound
        };
        Ok((status, Value::of(found)))
    };
    // SAFETY: the caller's promise.
    unsafe { got(client, (key, key_length), value, get) }
}

/// Gets the value under a key as nuthatch_client_get() does, with what else the server knows of it.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get_item(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    let get =
        |client: &nuthatch_client::Client, key: &[u8]| Ok(item_or_none(client.get_item(key)?));
    // SAFETY: the caller's promise.
    unsafe { got(client, (key, key_length), value, get) }
}

/// Gets the value under a key, with its flags and its number, if a server's memory says it ("shm://"), without a system call. Else
/// returns NUTHATCH_CLIENT_STATUS_ASK, and nothing was sent: nuthatch_client_get() asks. This makes no connection; so before
/// the first call that asks, and after a server's end, there is no memory. If the server was stopped in the middle of a change of
/// the key, this tries for 200 ms.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get_local(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    let get = |client: &nuthatch_client::Client, key: &[u8]| {
        let known = client.get_item_local(key)?.map(item_or_none);
        Ok(known.unwrap_or((Status::Ask, Value::NONE)))
    };
    // SAFETY: the caller's promise.
    unsafe { got(client, (key, key_length), value, get) }
}

/// Stores a value for so many milliseconds, rounded up to seconds, or without an end if they are negative.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_set(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    lifetime_ms: i64,
    flags: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        client.set(key, value, keep(lifetime_ms, flags))?;
        Ok(Status::Done)
    })
}

/// Stores a value as nuthatch_client_set() does if there is none; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_add(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    lifetime_ms: i64,
    flags: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        Ok(client.add(key, value, keep(lifetime_ms, flags))?.into())
    })
}

/// Stores a value as nuthatch_client_set() does if there is one; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_replace(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    lifetime_ms: i64,
    flags: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        Ok(client.replace(key, value, keep(lifetime_ms, flags))?.into())
    })
}

/// Stores a value as nuthatch_client_set() does if the item's number is still `cas`; else returns
/// NUTHATCH_CLIENT_STATUS_CHANGED or NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_cas(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    lifetime_ms: i64,
    flags: u32,
    cas: u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        Ok(client
            .cas(key, value, keep(lifetime_ms, flags), cas)?
            .into())
    })
}

/// Adds bytes behind the value there is; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_append(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        Ok(client.append(key, value)?.into())
    })
}

/// Adds bytes in front of the value there is; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_prepend(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { array(value, value_length) }?;
        Ok(client.prepend(key, value)?.into())
    })
}

/// Gives an item a lifetime of so many milliseconds, or one without an end if they are negative. Returns 0 or
/// NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_touch(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    lifetime_ms: i64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        Ok(client.touch(key, lifetime(lifetime_ms))?.into())
    })
}

/// Removes an item. Returns 0 or NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_delete(
    client: *const Client,
    key: *const u8,
    key_length: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        Ok(client.delete(key)?.into())
    })
}

/// Removes an item if its number is still `cas`; else returns NUTHATCH_CLIENT_STATUS_CHANGED or
/// NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_delete_cas(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    cas: u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        Ok(client.delete_cas(key, cas)?.into())
    })
}

/// Adds to a number, which is stored as decimal digits, and writes the sum, which wraps around at 2^64. Returns 0 or
/// NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `number` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_incr(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    delta: u64,
    number: *mut u64,
) -> c_int {
    catch(|| {
        // Before the number is changed.
        check_place(number)?;
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        let Some(found) = client.incr(key, delta)? else {
            return Ok(Status::NotFound);
        };
        // SAFETY: the caller's promise.
        unsafe { put(number, found) }?;
        Ok(Status::Done)
    })
}

/// Subtracts from a number, down to 0, and writes what is left. Returns 0 or
/// NUTHATCH_CLIENT_STATUS_NOT_FOUND.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `number` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_decr(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    delta: u64,
    number: *mut u64,
) -> c_int {
    catch(|| {
        // Before the number is changed.
        check_place(number)?;
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        let Some(found) = client.decr(key, delta)? else {
            return Ok(Status::NotFound);
        };
        // SAFETY: the caller's promise.
        unsafe { put(number, found) }?;
        Ok(Status::Done)
    })
}

/// Removes all items of all servers.
///
/// # Safety
/// `client` is a client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_flush_all(client: *const Client) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        client.flush_all(Duration::ZERO)?;
        Ok(Status::Done)
    })
}
