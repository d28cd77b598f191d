//! The C functions of a store.

use std::ffi::c_int;
use std::io::Write;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_fabric::openshmem::{CannotOpen, OpenShmem, Threads, launched, prepare};
use nuthatch_shmem::{ConfigError, Options, Swapped};

use crate::status::{Status, catch};

/// The configuration of a store: the same on all PEs. Fill it in with nuthatch_shmem_config_default() first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// The number of PEs that do nothing but serve, which are the first ones. 0: every PE serves, in a thread beside
    /// the program's.
    pub servers: usize,
    /// Bytes of memory of each server. Every PE reserves as many bytes of its symmetric memory.
    pub memory: usize,
    /// Bytes of the largest item: its header, key and value. At most a quarter of `memory`. A server evicts early if
    /// `memory` is less than some forty times as much.
    pub item_size_max: usize,
    /// Entries of each PE's directory of pointers.
    pub directory: usize,
    /// 0: a full server refuses to store, instead of evicting items.
    pub evicts: c_int,
}

/// A PE's part of a store. Threads of the PE may use it at the same time; they take turns.
pub struct Store(nuthatch_shmem::Store<OpenShmem>);

/// One key of nuthatch_shmem_multi_get().
#[repr(C)]
pub struct Item {
    /// The key.
    pub key: *const u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// The buffer for the value.
    pub buffer: *mut u8,
    /// Bytes of the buffer.
    pub capacity: usize,
    /// Out: bytes of the value, also if it does not fit.
    pub value_len: usize,
    /// Out: 1 for a hit, 0 for a miss, or NUTHATCH_SHMEM_STATUS_BUFFER_TOO_SMALL for a hit that does not fit.
    pub found: c_int,
}

/// One pair of nuthatch_shmem_multi_set().
#[repr(C)]
pub struct Pair {
    /// The key.
    pub key: *const u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// The value.
    pub value: *const u8,
    /// Bytes of the value.
    pub value_len: usize,
    /// Out: 0 if the pair was stored, or a negative status.
    pub status: c_int,
}

/// Items and bytes of all servers, and counts of this PE's operations since it opened the store.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    /// Items of all servers; expired ones count until their memory is needed.
    pub items: u64,
    /// Bytes of the blocks of these items.
    pub item_bytes: u64,
    /// Bytes of memory that all servers may use.
    pub memory_limit: u64,
    /// Bytes of memory that all servers use.
    pub memory_used: u64,
    /// Live items that were evicted to make room.
    pub evictions: u64,
    /// Expired and flushed items whose memory was reclaimed.
    pub expired: u64,
    /// Stores that were refused because a server was full.
    pub out_of_memory: u64,
    /// Gets of this PE for which its directory led to the item.
    pub directory_hits: u64,
    /// Gets of this PE for which its directory did not.
    pub directory_misses: u64,
    /// Gets that this PE answered itself, without a message.
    pub direct_gets: u64,
    /// Sets that this PE carried out itself.
    pub direct_sets: u64,
    /// Operations for which this PE sent a message to a server.
    pub messages: u64,
}

impl Statistics {
    fn of(counted: &nuthatch_shmem::Statistics) -> Self {
        Self {
            items: counted.items,
            item_bytes: counted.item_bytes,
            memory_limit: counted.memory_limit,
            memory_used: counted.memory_used,
            evictions: counted.evictions,
            expired: counted.expired,
            out_of_memory: counted.out_of_memory,
            directory_hits: counted.directory_hits,
            directory_misses: counted.directory_misses,
            direct_gets: counted.direct_gets,
            direct_sets: counted.direct_sets,
            messages: counted.messages,
        }
    }
}

fn options(config: &Config) -> Options {
    Options {
        servers: config.servers,
        memory: config.memory,
        item_size_max: config.item_size_max,
        directory: config.directory,
        evicts: config.evicts != 0,
    }
}

/// Prints the reason on standard error.
fn explained(status: Status, why: &dyn std::fmt::Display) -> Status {
    // In one write: several PEs may print it. There is no other place for it.
    let _ = std::io::stderr().write_all(format!("nuthatch_shmem: {why}\n").as_bytes());
    status
}

/// The status of a store that cannot be opened: for its settings, or for want of memory.
fn refused(error: &ConfigError) -> Status {
    let status = match error {
        ConfigError::Setting(_) | ConfigError::Unequal { .. } => Status::Settings,
        ConfigError::Memory(_) => Status::NoMemory,
    };
    explained(status, error)
}

/// A reference to what C points to.
///
/// # Safety
/// NULL, or valid for `'a`.
unsafe fn borrow<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Status::NullPointer)
}

/// More elements than memory can have, as of a negative number that became a `size_t`: no slice may be as long.
fn is_too_long<T>(count: usize) -> bool {
    count > isize::MAX as usize / size_of::<T>()
}

/// Bytes that C points to. NULL is valid for no bytes.
///
/// # Safety
/// NULL, or `len` bytes that stay as they are for `'a`; more than memory can have are refused with `too_long`.
unsafe fn bytes<'a>(pointer: *const u8, len: usize, too_long: Status) -> Result<&'a [u8], Status> {
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Status::NullPointer),
        (false, _) if is_too_long::<u8>(len) => Err(too_long),
        // SAFETY: the caller's promise, and the length is that of a slice.
        (false, _) => Ok(unsafe { slice::from_raw_parts(pointer, len) }),
    }
}

/// A key that C points to.
///
/// # Safety
/// That of [`bytes`].
unsafe fn key<'a>(pointer: *const u8, len: usize) -> Result<&'a [u8], Status> {
    // SAFETY: the caller's promise.
    unsafe { bytes(pointer, len, Status::Key) }
}

/// A key and a value that C points to.
///
/// # Safety
/// That of [`bytes`], for both.
unsafe fn pair<'a>(
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
) -> Result<(&'a [u8], &'a [u8]), Status> {
    // SAFETY: the caller's promise.
    unsafe {
        let name = key(name, name_len)?;
        Ok((name, bytes(value, value_len, Status::TooLarge)?))
    }
}

/// A list that C points to. NULL is valid for an empty one.
///
/// # Safety
/// NULL, or `count` elements, which nothing else uses for `'a`; more than memory can have are refused.
unsafe fn list<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], Status> {
    match (first.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Status::NullPointer),
        (false, _) if is_too_long::<T>(count) => Err(Status::TooLarge),
        // SAFETY: the caller's promise, and the length is that of a slice.
        (false, _) => Ok(unsafe { slice::from_raw_parts_mut(first, count) }),
    }
}

/// Stores a result where C wants it, unless the pointer is NULL.
///
/// # Safety
/// NULL, or room for it.
unsafe fn tell<T>(to: *mut T, result: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(result) };
    }
}

/// The time to live of a number of seconds; 0: none.
fn life(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// Copies a value to C's buffer. Returns 1, or BUFFER_TOO_SMALL.
///
/// # Safety
/// `buffer` is NULL or has `capacity` bytes.
unsafe fn lay(value: &[u8], buffer: *mut u8, capacity: usize) -> c_int {
    if value.len() > capacity || (buffer.is_null() && !value.is_empty()) {
        return Status::BufferTooSmall as c_int;
    }
    if !value.is_empty() {
        // SAFETY: the buffer has that much room, and none of our memory overlaps it.
        unsafe { buffer.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    }
    1
}

/// Stores the defaults in `*config`: every PE serves, 64 MiB each, items of up to 1 MiB.
///
/// # Safety
/// `config` is NULL or points to a configuration, which may be uninitialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_config_default(config: *mut Config) -> c_int {
    catch(|| {
        let options = Options::default();
        let default = Config {
            servers: options.servers,
            memory: options.memory,
            item_size_max: options.item_size_max,
            directory: options.directory,
            evicts: options.evicts.into(),
        };
        match config.is_null() {
            true => Err(Status::NullPointer),
            false => {
                // SAFETY: the caller's promise.
                unsafe { config.write(default) };
                Ok(0)
            }
        }
    })
}

/// Sets the environment variables that OpenSHMEM reads when it starts, except for those that the user has set: a
/// symmetric heap for this store and for `more` bytes of the program's, and what Open MPI needs. Call it before
/// shmem_init_thread(). Without it, the user who starts the program must set SHMEM_SYMMETRIC_SIZE (Open MPI 4:
/// SHMEM_SYMMETRIC_HEAP_SIZE).
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a configuration. No other thread uses the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_prepare(config: *const Config, more: usize) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let options = options(unsafe { borrow(config) }?);
        let words = options
            .symmetric_words(launched().unwrap_or(1))
            .map_err(|error| refused(&error))?;
        // SAFETY: the caller's promise.
        unsafe { prepare(words + more.div_ceil(8)) }
            .map_err(|error| explained(Status::NoMemory, &error))?;
        Ok(0)
    })
}

/// Opens a store and stores it in `*store`; NULL if it fails. Collective: all PEs call it, with the same configuration,
/// after shmem_init_thread(). If a PE has another configuration, the call fails on all PEs, and standard error says in
/// what it differs. If config->servers is 0, shmem_init_thread() must have provided SHMEM_THREAD_MULTIPLE.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a configuration; `store` is NULL or points to a pointer. OpenSHMEM is started, and not
/// ended before the store is closed. If OpenSHMEM was started with less than SHMEM_THREAD_MULTIPLE, only one thread of
/// the PE calls this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_open(
    config: *const Config,
    store: *mut *mut Store,
) -> c_int {
    catch(|| {
        if store.is_null() {
            return Err(Status::NullPointer);
        }
        // SAFETY: the caller's promise.
        unsafe { store.write(std::ptr::null_mut()) };
        // SAFETY: the caller's promise.
        let options = options(unsafe { borrow(config) }?);
        // SAFETY: the caller's promise.
        let fabric = unsafe { OpenShmem::join() }.map_err(|error| match error {
            CannotOpen::Memory(none) => explained(Status::NoMemory, &none),
            CannotOpen::Library => Status::Defect,
        })?;
        if options.servers == 0 && fabric.threads() != Threads::Multiple {
            return Err(Status::Threads);
        }
        let opened = nuthatch_shmem::Store::open(Arc::new(fabric), &options)
            .map_err(|error| refused(&error))?;
        // SAFETY: the caller's promise.
        unsafe { store.write(Box::into_raw(Box::new(Store(opened)))) };
        Ok(0)
    })
}

/// Returns 1 on a PE that only serves, which must call nuthatch_shmem_serve(), and 0 on other PEs.
///
/// # Safety
/// `store` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_is_server(store: *const Store) -> c_int {
    // SAFETY: the caller's promise.
    catch(|| Ok(unsafe { borrow(store) }?.0.is_server().into()))
}

/// Serves until every client has closed the store. The caller then closes it too.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `store` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_serve(store: *const Store) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let store = unsafe { borrow(store) }?;
        if !store.0.is_server() {
            return Err(Status::NoServer);
        }
        store.0.serve();
        Ok(0)
    })
}

/// Closes a store. Collective: all PEs call it. The items of the store are lost. Does nothing with NULL. A PE that ends
/// without this call leaves the others waiting, as at any barrier; shmem_global_exit() ends all of them.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `store` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_close(store: *mut Store) -> c_int {
    catch(|| {
        if !store.is_null() {
            // SAFETY: it was made by `nuthatch_shmem_open`, and the caller gives it up.
            unsafe { Box::from_raw(store) }.0.close();
        }
        Ok(0)
    })
}

/// Stores a value with a time to live of `seconds`; 0: until it is evicted.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `store` is NULL or open; `key` and `value` are NULL or have `key_len` and `value_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_set(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, value, value_len)?) };
        store.0.set(pair.0, pair.1, life(seconds))?;
        Ok(0)
    })
}

/// Stores a value as nuthatch_shmem_set() does, unless the key has one.
///
/// Returns 1 if the value was stored, 0 if the key has a value, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_set().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_add(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, value, value_len)?) };
        Ok(store.0.add(pair.0, pair.1, life(seconds))?.into())
    })
}

/// Stores a value as nuthatch_shmem_set() does, if the key has one.
///
/// Returns 1 if the value was stored, 0 if the key has none, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_set().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_replace(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, value, value_len)?) };
        Ok(store.0.replace(pair.0, pair.1, life(seconds))?.into())
    })
}

/// Adds bytes behind the value of a key. The time at which it expires stays the same.
///
/// Returns 1, 0 if the key has no value, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_set().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_append(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    bytes: *const u8,
    bytes_len: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, bytes, bytes_len)?) };
        Ok(store.0.append(pair.0, pair.1)?.into())
    })
}

/// Adds bytes before the value of a key. The time at which it expires stays the same.
///
/// Returns 1, 0 if the key has no value, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_set().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_prepend(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    bytes: *const u8,
    bytes_len: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, bytes, bytes_len)?) };
        Ok(store.0.prepend(pair.0, pair.1)?.into())
    })
}

/// Stores a value if the key still has the value for which nuthatch_shmem_gets() stored `unique`.
///
/// Returns 1 if the value was stored, 0 if the key has none, NUTHATCH_SHMEM_STATUS_CHANGED if it has another value, or
/// another negative status.
///
/// # Safety
/// As nuthatch_shmem_set().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_compare_and_set(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    unique: u64,
    value: *const u8,
    value_len: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pair) = unsafe { (borrow(store)?, pair(key, key_len, value, value_len)?) };
        let store = &store.0;
        match store.compare_and_set(pair.0, unique, pair.1, life(seconds))? {
            Swapped::Stored => Ok(1),
            Swapped::Missing => Ok(0),
            Swapped::Changed => Err(Status::Changed),
        }
    })
}

/// Stores many values at once, with a time to live of `seconds`; 0: until they are evicted. Requests that can travel
/// together do. The `status` of each pair says whether it was stored.
///
/// Returns how many pairs were stored, or a negative status: then none was.
///
/// # Safety
/// `store` is NULL or open; `pairs` is NULL or has `count` pairs, whose keys and values are NULL or have `key_len` and
/// `value_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_multi_set(
    store: *const Store,
    pairs: *mut Pair,
    count: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, pairs) = unsafe { (borrow(store)?, list(pairs, count)?) };
        let borrowed = pairs.iter().map(|of| {
            // SAFETY: the caller's promise.
            unsafe { pair(of.key, of.key_len, of.value, of.value_len) }
        });
        let borrowed: Vec<_> = borrowed.collect::<Result<_, _>>()?;
        let mut stored = 0;
        let became = store.0.multi_set(&borrowed, life(seconds))?;
        for (pair, became) in pairs.iter_mut().zip(became) {
            pair.status = became.map_or_else(|error| Status::from(error) as c_int, |()| 0);
            stored += c_int::from(pair.status == 0);
        }
        Ok(stored)
    })
}

/// Sets the time to live of a value to `seconds` from now on; 0: until it is evicted.
///
/// Returns 1, 0 if the key has no value, or a negative status.
///
/// # Safety
/// `store` is NULL or open; `key` is NULL or has `key_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_touch(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    seconds: u32,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        Ok(store.0.touch(key, life(seconds))?.into())
    })
}

/// Removes everything, for all PEs.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `store` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_flush(store: *const Store) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { borrow(store) }?.0.flush();
        Ok(0)
    })
}

/// Stores the statistics of all servers, and of this PE's operations, in `*statistics`.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `store` is NULL or open; `statistics` is NULL or points to statistics, which may be uninitialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_get_statistics(
    store: *const Store,
    statistics: *mut Statistics,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let store = unsafe { borrow(store) }?;
        if statistics.is_null() {
            return Err(Status::NullPointer);
        }
        let counted = Statistics::of(&store.0.statistics());
        // SAFETY: the caller's promise.
        unsafe { statistics.write(counted) };
        Ok(0)
    })
}

/// Copies a key's value to `buffer`, and stores its length in `*value_len`, also if it does not fit. Stores in
/// `*unique` the number that tells the value from every other value that the key has or had.
///
/// Returns 1 for a hit, 0 for a miss, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_get(); `unique` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_gets(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    buffer: *mut u8,
    capacity: usize,
    value_len: *mut usize,
    unique: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        let Some((value, number)) = store.0.gets(key)? else {
            return Ok(0);
        };
        // SAFETY: the caller's promise.
        unsafe {
            tell(value_len, value.len());
            tell(unique, number);
            Ok(lay(&value, buffer, capacity))
        }
    })
}

/// Copies a key's value to `buffer`, and stores its length in `*value_len`, also if it does not fit.
///
/// Returns 1 for a hit, 0 for a miss, or a negative status.
///
/// # Safety
/// `store` is NULL or open; `key` is NULL or has `key_len` bytes; `buffer` is NULL or has `capacity` bytes; `value_len`
/// is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_get(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    buffer: *mut u8,
    capacity: usize,
    value_len: *mut usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        let Some(value) = store.0.get(key)? else {
            return Ok(0);
        };
        // SAFETY: the caller's promise.
        unsafe {
            tell(value_len, value.len());
            Ok(lay(&value, buffer, capacity))
        }
    })
}

/// Gets many keys at once. Requests that can travel together do. The `found` of each item says whether it was a hit.
///
/// Returns the number of hits, or a negative status.
///
/// # Safety
/// `store` is NULL or open; `items` is NULL or has `count` items, whose keys and buffers are as for nuthatch_shmem_get().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_multi_get(
    store: *const Store,
    items: *mut Item,
    count: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, items) = unsafe { (borrow(store)?, list(items, count)?) };
        let keys = items.iter().map(|item| {
            // SAFETY: the caller's promise.
            unsafe { key(item.key, item.key_len) }
        });
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        let mut hits = 0;
        for (item, value) in items.iter_mut().zip(store.0.multi_get(&keys)?) {
            let value = value.as_deref();
            item.value_len = value.map_or(0, <[u8]>::len);
            // SAFETY: the caller's promise.
            item.found = value.map_or(0, |value| unsafe { lay(value, item.buffer, item.capacity) });
            hits += c_int::from(value.is_some());
        }
        Ok(hits)
    })
}

/// Removes a key.
///
/// Returns 1 if the key had a value, 0 if not, or a negative status.
///
/// # Safety
/// `store` is NULL or open; `key` is NULL or has `key_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_delete(
    store: *const Store,
    key: *const u8,
    key_len: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        Ok(store.0.delete(key)?.into())
    })
}

/// Adds to the decimal number that a key has as its value, modulo 2^64, and stores the sum in `*number`.
///
/// Returns 1, 0 if the key has no value, or a negative status.
///
/// # Safety
/// `store` is NULL or open; `key` is NULL or has `key_len` bytes; `number` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_incr(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    by: u64,
    number: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        let Some(sum) = store.0.incr(key, by)? else {
            return Ok(0);
        };
        // SAFETY: the caller's promise.
        unsafe { tell(number, sum) };
        Ok(1)
    })
}

/// Subtracts from the decimal number that a key has as its value, down to 0, and stores the rest in `*number`.
///
/// Returns 1, 0 if the key has no value, or a negative status.
///
/// # Safety
/// As nuthatch_shmem_incr().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_shmem_decr(
    store: *const Store,
    key: *const u8,
    key_len: usize,
    by: u64,
    number: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let (store, key) = unsafe { (borrow(store)?, self::key(key, key_len)?) };
        let Some(rest) = store.0.decr(key, by)? else {
            return Ok(0);
        };
        // SAFETY: the caller's promise.
        unsafe { tell(number, rest) };
        Ok(1)
    })
}
