//! The functions on tables.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};

use nuthatch_flow::Inserted;

use crate::arrays::{Results, input};
use crate::cache::{self, Cache, Common, Owned};
use crate::config::{Config, Sharing, checked};
use crate::stats::Stats;
use crate::status::{Out, Status, borrow, catch};
use crate::strided::Strided;

/// A flow cache, or one thread's handle of a flow cache that threads share.
///
/// One thread at a time uses a nuthatch_flow_table, of either kind; any thread may call
/// nuthatch_flow_get_stats() and nuthatch_flow_share() at any time. Threads that work on the same
/// flows have a handle each: nuthatch_flow_create_shared() makes the first and nuthatch_flow_share()
/// the others. These threads may all look up and change flows at the same time.
pub struct Table {
    /// Only the thread that uses the table refers to it.
    owned: UnsafeCell<Owned>,
    /// Never changed, so that any thread may refer to it.
    common: Common,
}

const _: () = {
    const fn any_thread_may_own<T: Send>() {}
    const fn all_threads_may_read<T: Sync>() {}
    any_thread_may_own::<Owned>();
    all_threads_may_read::<Common>();
};

/// The owned part of a table.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses for `'a`, nor the caller by another
/// reference.
unsafe fn owned_of<'a>(table: *const Table) -> Result<&'a mut Owned, Status> {
    // SAFETY: the caller's promise. Other threads may hold such a reference too, but it does not
    // cover what is in the `UnsafeCell`.
    let table: &Table = unsafe { borrow(table) }?;
    // SAFETY: only the calling thread is here: the caller's promise. `nuthatch_flow_get_stats` and
    // `nuthatch_flow_share`, which others may call, look at `common` alone.
    Ok(unsafe { &mut *table.owned.get() })
}

/// The cache of a table.
///
/// # Safety
/// As for [`owned_of`].
unsafe fn cache_of<'a>(table: *const Table) -> Result<&'a mut Cache, Status> {
    // SAFETY: the caller's promise.
    Ok(&mut unsafe { owned_of(table) }?.cache)
}

/// What an insert did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Outcome {
    /// An empty slot was taken.
    Filled = 1,
    /// The flow was in the table, and has a new value.
    Updated = 2,
    /// All slots were taken: another flow was evicted.
    Evicted = 3,
}

/// Creates an empty table and stores it in `*table`; NULL if it fails. Destroy it after use.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a configuration; `table` is NULL or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_create(
    config: *const Config,
    table: *mut *mut Table,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe {
            store_new(table, || {
                cache::exclusive(&checked(config, Sharing::Exclusive)?)
            })
        }
    })
}

/// As nuthatch_flow_create(), for a table that threads share: `*table` is its first handle, for the
/// calling thread.
///
/// Not for the evictions LRU and DC_BUBBLE, nor for the entry HASH64. PBLRU with a swap probability
/// of 1/4, the default here, lets three hits in four leave the table's cache lines unwritten.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// As nuthatch_flow_create().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_create_shared(
    config: *const Config,
    table: *mut *mut Table,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { store_new(table, || cache::shared(&checked(config, Sharing::Shared)?)) }
    })
}

/// Stores another handle of a shared table in `*other`, for another thread; NULL if it fails. Each
/// handle is destroyed by itself, and the table is freed with the last one. Any thread may call this
/// while another one uses `table`.
///
/// Returns 0 or a negative status: NOT_SHARED for a table from nuthatch_flow_create().
///
/// # Safety
/// `table` is NULL or a table that is not destroyed meanwhile; `other` is NULL or points to a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_share(table: *const Table, other: *mut *mut Table) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { store_new(other, || borrow(table)?.common.share()) }
    })
}

/// Stores a new table in `*table`, or NULL if there is none.
///
/// # Safety
/// `table` is NULL or points to a pointer.
unsafe fn store_new(
    table: *mut *mut Table,
    make: impl FnOnce() -> Result<(Owned, Common), Status>,
) -> Result<c_int, Status> {
    // SAFETY: the caller's promise.
    let table = unsafe { Out::checked(table) }?;
    table.set(std::ptr::null_mut());
    let (owned, common) = make()?;
    let owned = UnsafeCell::new(owned);
    table.set(Box::into_raw(Box::new(Table { owned, common })));
    Ok(0)
}

/// Frees a table, or a handle of a shared one; does nothing with NULL.
///
/// # Safety
/// `table` is NULL, or from this library and not used during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_destroy(table: *mut Table) {
    if !table.is_null() {
        catch(|| {
            // SAFETY: `store_new` made it from a box, and the caller gives it back.
            drop(unsafe { Box::from_raw(table) });
            Ok(0)
        });
    }
}

/// Looks one flow up. If it is there its value is stored in `*value`; if not, `*value` is not
/// touched.
///
/// Returns 1 if it is there, 0 if not, or a negative status. nuthatch_flow_lookup_many() is much
/// faster for a burst, and says what a hit changes.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `value` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_lookup(
    table: *mut Table,
    hash: u64,
    value: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (cache, value) = unsafe { (cache_of(table)?, Out::checked(value)?) };
        let found = cache.lookup(hash);
        found.inspect(|&found| value.set(found));
        Ok(c_int::from(found.is_some()))
    })
}

/// Looks any number of flows up in one call, with their cache misses overlapped.
///
/// Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit i % 64 of `hits[i / 64]` tells
/// whether it was found; further bits of the last word are 0. After an error `values` and `hits` are
/// untouched: initialise `hits`, or look at the return value first. The arrays must not overlap.
///
/// A hit changes the table before the caller can verify it: LRU, BUBBLE, PBLRU and DC_BUBBLE move
/// the entry up, or note its use, as soon as a tag matches. An entry of another flow with the same
/// tag is moved up by mistake as well. This costs hits only if it happens often: with the entry
/// TAG16 in one lookup in some 8,000 of absent flows. If the verification fails, insert the flow
/// under its hash: it takes the place of that entry.
///
/// Returns how many were found, or a negative status. Without flows the arrays may be NULL.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; each array is NULL or has its length: `count`
/// hashes, `count` values, and a word of hits for every 64 flows or part of 64.
/// cbindgen:prefix=NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_lookup_many(
    table: *mut Table,
    hashes: *const u64,
    count: usize,
    values: *mut u64,
    hits: *mut u64,
) -> i64 {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (cache, hashes, results) = unsafe {
            let hashes = input(hashes, count)?;
            (
                cache_of(table)?,
                hashes,
                Results::checked(count, values, hits)?,
            )
        };
        Ok(cache.lookup_many(hashes, results) as i64)
    })
}

/// As nuthatch_flow_lookup_many(), for hashes of 32 bits that are fields of the structs of an array:
/// hash number i is at `hashes` + i * `stride` bytes, and is widened as by nuthatch_flow_widen(). For
/// an array `packet` of structs with a field `hash`, pass `&packet[0].hash` and `sizeof(packet[0])`.
/// The hashes need not be aligned.
///
/// Returns how many were found, or a negative status: STRIDE if `stride` is below 4,
/// COUNT_TOO_LARGE if the hashes would take more than half the address space.
///
/// # Safety
/// As nuthatch_flow_lookup_many(); `hashes` is NULL or points into an array in which there are four
/// bytes at each of the `count` places.
/// cbindgen:prefix=NUTHATCH_FLOW_WRITES(5, 4)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_lookup_strided(
    table: *mut Table,
    hashes: *const c_void,
    stride: usize,
    count: usize,
    values: *mut u64,
    hits: *mut u64,
) -> i64 {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (owned, hashes, results) = unsafe {
            let hashes = Strided::checked(hashes, stride, count)?;
            (
                owned_of(table)?,
                hashes,
                Results::checked(count, values, hits)?,
            )
        };
        Ok(owned.lookup_strided(&hashes, results) as i64)
    })
}

/// Prefetches the cache lines that a lookup or an insert of this flow will read. Call it as soon as
/// the hash is known, some hundred nanoseconds before the lookup. It changes and counts nothing.
/// nuthatch_flow_lookup_many() prefetches by itself for all but the first flows.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_prefetch(table: *const Table, hash: u64) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { cache_of(table) }?.prefetch(hash);
        Ok(0)
    })
}

/// As nuthatch_flow_prefetch(), for many flows: as many as the processor can fetch at a time, some 10
/// to 40 lines. The processor may drop requests beyond that, or wait for them.
///
/// Returns 0 or a negative status. Without flows the array may be NULL.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `hashes` is NULL or as long as `count` says.
/// cbindgen:prefix=NUTHATCH_FLOW_READS(2, 3)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_prefetch_many(
    table: *const Table,
    hashes: *const u64,
    count: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (cache, hashes) = unsafe { (cache_of(table)?, input(hashes, count)?) };
        cache.prefetch_many(hashes);
        Ok(0)
    })
}

/// As nuthatch_flow_prefetch_many(), for hashes of 32 bits that are fields of structs, which are
/// passed as to nuthatch_flow_lookup_strided().
///
/// Returns 0, or a negative status as nuthatch_flow_lookup_strided() does.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `hashes` is NULL or points into an array in
/// which there are four bytes at each of the `count` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_prefetch_strided(
    table: *const Table,
    hashes: *const c_void,
    stride: usize,
    count: usize,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (owned, hashes) =
            unsafe { (owned_of(table)?, Strided::checked(hashes, stride, count)?) };
        owned.prefetch_strided(&hashes);
        Ok(0)
    })
}

/// Stores a value for a flow, and evicts another flow if all slots are taken: it always finds a
/// slot, and no other flow moves to another bucket. Does nothing if the value is wider than an entry
/// keeps.
///
/// Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
/// evicted, and `old` is not NULL, that value is stored in `*old`.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `old` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_insert(
    table: *mut Table,
    hash: u64,
    value: u64,
    old: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (cache, old) = unsafe { (cache_of(table)?, Out::optional(old)) };
        let (outcome, displaced) = match cache.insert(hash, value)? {
            Inserted::Filled => (Outcome::Filled, None),
            Inserted::Updated { old } => (Outcome::Updated, Some(old)),
            Inserted::Evicted { value } => (Outcome::Evicted, Some(value)),
        };
        old.set_some(displaced);
        Ok(outcome as c_int)
    })
}

/// Removes a flow. If it was there, and `old` is not NULL, its value is stored in `*old`.
///
/// Returns 1 if it was there, 0 if not, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `old` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_remove(
    table: *mut Table,
    hash: u64,
    old: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (cache, old) = unsafe { (cache_of(table)?, Out::optional(old)) };
        let removed = cache.remove(hash);
        old.set_some(removed);
        Ok(c_int::from(removed.is_some()))
    })
}

/// Removes all flows with a value, as when a rule is deleted. Reads the whole table. Flows that other
/// threads insert with this value meanwhile may stay.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_forget_value(table: *mut Table, value: u64) -> i64 {
    // SAFETY: the caller's promise.
    catch(|| Ok(unsafe { cache_of(table) }?.forget_value(value) as i64))
}

/// Removes all flows.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_clear(table: *mut Table) -> i64 {
    // SAFETY: the caller's promise.
    catch(|| Ok(unsafe { cache_of(table) }?.clear() as i64))
}

/// Stores what the table counted in `*stats`; for a shared one, what all its handles counted.
///
/// Any thread may call this while another one uses the table. Each number is then read by itself: the
/// numbers may be some operations apart from each other, but none decreases between two calls of a
/// thread.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `table` is NULL or a table that is not destroyed meanwhile; `stats` is NULL or points to a
/// nuthatch_flow_stats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_get_stats(table: *const Table, stats: *mut Stats) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (table, stats) = unsafe { (borrow(table)?, Out::checked(stats)?) };
        stats.set(table.common.stats());
        Ok(0)
    })
}
