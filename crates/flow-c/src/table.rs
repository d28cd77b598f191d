//! Tables, and what is done with them.

use std::ffi::c_int;

use nuthatch_flow::Inserted;

use crate::arrays::Arrays;
use crate::cache::Cache;
use crate::config::{Config, For, checked};
use crate::status::{Place, Status, answer, read, small, write};

/// A flow cache, or one thread's part in a flow cache that threads share.
///
/// One thread at a time uses a nuthatch_flow_table, whichever it is. Threads that work on the same
/// flows have one each: nuthatch_flow_create_shared() makes the first and nuthatch_flow_share() the
/// others. They may all look up and change flows at the same time.
pub struct Table {
    cache: Cache,
}

/// What an insert did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Outcome {
    /// An empty slot was taken.
    Filled = 1,
    /// The flow was there, and has a new value.
    Updated = 2,
    /// All slots were taken: another flow left.
    Evicted = 3,
}

/// What a table counts, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Flows looked up.
    pub lookups: u64,
    /// Flows that were found.
    pub hits: u64,
    /// Inserts that took an empty slot.
    pub filled: u64,
    /// Inserts that replaced the value of a flow that was there.
    pub updated: u64,
    /// Inserts that drove another flow out.
    pub evicted: u64,
    /// Flows that were removed one by one.
    pub removed: u64,
    /// Flows that were removed by nuthatch_flow_forget_value() and nuthatch_flow_clear().
    pub forgotten: u64,
    /// Flows that are there now.
    pub occupied: u64,
    /// Slots, as rounded up; not counting the few behind the last bucket.
    pub entries: u64,
    /// Bytes of all slots.
    pub bytes: u64,
}

impl Stats {
    pub(crate) fn of(counted: nuthatch_flow::Stats, config: &nuthatch_flow::Config) -> Self {
        Self {
            lookups: counted.lookups,
            hits: counted.hits,
            filled: counted.filled,
            updated: counted.updated,
            evicted: counted.evicted,
            removed: counted.removed,
            forgotten: counted.forgotten,
            occupied: counted.occupied(),
            entries: config.rounded_entries(),
            bytes: config.bytes(),
        }
    }
}

/// Makes an empty table and stores it in `*table`; NULL if it fails. Destroy it after use.
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
    small(|| {
        // SAFETY: the caller's promise.
        unsafe { hand_out(table, || Cache::of_one(&checked(config, For::One)?)) }
    })
}

/// The same for a table that threads share, with the calling thread's part in it.
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
    small(|| {
        // SAFETY: the caller's promise.
        unsafe { hand_out(table, || Cache::of_many(&checked(config, For::Many)?)) }
    })
}

/// Stores another part in a shared table in `*other`, for another thread; NULL if it fails. Each
/// part is destroyed for itself, and the flows go with the last.
///
/// Returns 0 or a negative status: NOT_SHARED for a table from nuthatch_flow_create().
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `other` is NULL or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_share(table: *const Table, other: *mut *mut Table) -> c_int {
    small(|| {
        // SAFETY: the caller's promise.
        unsafe { hand_out(other, || read(table)?.cache.share()) }
    })
}

/// Stores a new table where C asked for it, or NULL if there is none.
///
/// # Safety
/// `place` is NULL or points to a pointer.
unsafe fn hand_out(
    place: *mut *mut Table,
    make: impl FnOnce() -> Result<Cache, Status>,
) -> Result<c_int, Status> {
    // SAFETY: the caller's promise.
    let place = unsafe { Place::checked(place) }?;
    place.put(std::ptr::null_mut());
    let cache = make()?;
    place.put(Box::into_raw(Box::new(Table { cache })));
    Ok(0)
}

/// Frees a table, or a thread's part in one; does nothing with NULL.
///
/// # Safety
/// `table` is NULL or from this library, nobody uses it, and nobody will again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_destroy(table: *mut Table) {
    if !table.is_null() {
        small(|| {
            // SAFETY: `hand_out` made it from a box, and the caller gives it back.
            drop(unsafe { Box::from_raw(table) });
            Ok(0)
        });
    }
}

/// Looks one flow up. If it is there its value is stored in `*value`.
///
/// Returns 1 if it is there, 0 if not, or a negative status. Bursts are looked up much faster by
/// nuthatch_flow_lookup_many().
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `value` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_lookup(
    table: *mut Table,
    hash: u64,
    value: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for both.
        let (table, value) = unsafe { (write(table)?, Place::checked(value)?) };
        let found = table.cache.lookup(hash);
        found.inspect(|&found| value.put(found));
        Ok(c_int::from(found.is_some()))
    })
}

/// Looks any number of flows up in one call, with their cache misses overlapped.
///
/// Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit i % 64 of `hits[i / 64]` tells
/// whether it was there; further bits of the last word are 0. The arrays must not overlap.
///
/// Returns how many were there, or a negative status. Without flows the arrays may be NULL.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; each array is NULL or as long as said:
/// `count` hashes, `count` values, and a word of hits for every 64 begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_lookup_many(
    table: *mut Table,
    hashes: *const u64,
    count: usize,
    values: *mut u64,
    hits: *mut u64,
) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise, for all.
        let (table, arrays) =
            unsafe { (write(table)?, Arrays::checked(hashes, count, values, hits)?) };
        let Arrays { keys, values, hits } = arrays;
        Ok(table.cache.lookup_many(keys, values, hits) as i64)
    })
}

/// Remembers a value for a flow. It always finds a place, and no other flow moves to another
/// bucket. Does nothing if the value is wider than an entry keeps.
///
/// Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
/// driven out, and `old` is not NULL, that value is stored in `*old`.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `old` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_insert(
    table: *mut Table,
    hash: u64,
    value: u64,
    old: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { write(table) }?;
        let inserted = table.cache.insert(hash, value)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { outcome(inserted, old) } as c_int)
    })
}

/// What an insert did, with the value that gave way in `*old`.
///
/// # Safety
/// `old` is NULL or points to a number.
pub(crate) unsafe fn outcome(inserted: Inserted, old: *mut u64) -> Outcome {
    let (outcome, gone) = match inserted {
        Inserted::Filled => (Outcome::Filled, None),
        Inserted::Updated { old } => (Outcome::Updated, Some(old)),
        Inserted::Evicted { value } => (Outcome::Evicted, Some(value)),
    };
    // SAFETY: the caller's promise.
    if let (Some(gone), Some(old)) = (gone, unsafe { Place::optional(old) }) {
        old.put(gone);
    }
    outcome
}

/// Removes a flow. If it was there, and `old` is not NULL, its value is stored in `*old`.
///
/// Returns 1 if it was there, 0 if not, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `old` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_remove(
    table: *mut Table,
    hash: u64,
    old: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise.
        let removed = unsafe { write(table) }?.cache.remove(hash);
        // SAFETY: the caller's promise.
        if let (Some(value), Some(old)) = (removed, unsafe { Place::optional(old) }) {
            old.put(value);
        }
        Ok(c_int::from(removed.is_some()))
    })
}

/// Removes all flows with a value, as when a rule dies. Reads the whole table. Other threads go on
/// meanwhile: what they insert with that value may stay.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_forget_value(table: *mut Table, value: u64) -> i64 {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { write(table) }?.cache.forget_value(value) as i64))
}

/// Removes all flows.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_clear(table: *mut Table) -> i64 {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { write(table) }?.cache.clear() as i64))
}

/// Stores what the table counted in `*stats`; in a shared one, what all threads did.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else changes; `stats` is NULL or points to counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_get_stats(table: *const Table, stats: *mut Stats) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for both.
        let (table, stats) = unsafe { (read(table)?, Place::checked(stats)?) };
        stats.put(table.cache.stats());
        Ok(0)
    })
}
