//! Tables that keep the whole five-tuple, and verify it.

use std::ffi::c_int;
use std::slice;

use nuthatch_flow::{FlowInserted, FlowTable, KeyHasher, PACKED};

use crate::arrays::{Arrays, WORD};
use crate::config::{Config, For, checked};
use crate::hash::Tuple;
use crate::status::{Place, Status, answer, read, small, write};
use crate::table::{Outcome, Stats};

/// An exact-match table of connections: it answers with a connection's own value or not at all, for
/// one more cache line a lookup and 64 more bytes a flow. One thread at a time uses it.
pub struct Exact {
    table: FlowTable,
}

/// Makes an empty table and stores it in `*table`; NULL if it fails. Destroy it after use. The
/// entry of the configuration does not matter, values may be any; `hash_seed` is best random.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a configuration; `table` is NULL or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_create(
    config: *const Config,
    hash_seed: u64,
    table: *mut *mut Exact,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::checked(table) }?;
        place.put(std::ptr::null_mut());
        // SAFETY: the caller's promise.
        let config = unsafe { checked(config, For::One) }?;
        let table = FlowTable::new(&config, KeyHasher::seeded(hash_seed))?;
        place.put(Box::into_raw(Box::new(Exact { table })));
        Ok(0)
    })
}

/// Frees a table; does nothing with NULL.
///
/// # Safety
/// `table` is NULL or from nuthatch_flow_exact_create(), nobody uses it, and nobody will again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_destroy(table: *mut Exact) {
    if !table.is_null() {
        small(|| {
            // SAFETY: `nuthatch_flow_exact_create` made it from a box; the caller gives it back.
            drop(unsafe { Box::from_raw(table) });
            Ok(0)
        });
    }
}

/// Looks one connection up. If it is there its value is stored in `*value`.
///
/// Returns 1 if it is there, 0 if not, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `value`
/// is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_lookup(
    table: *mut Exact,
    tuple: *const Tuple,
    value: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, value) =
            unsafe { (write(table)?, read(tuple)?, Place::checked(value)?) };
        let found = table.table.lookup(&tuple.checked()?);
        found.inspect(|&found| value.put(found));
        Ok(c_int::from(found.is_some()))
    })
}

/// Looks any number of connections up in one call, with their cache misses overlapped. Values and
/// hits are as those of nuthatch_flow_lookup_many(). Does nothing if a tuple's version is wrong.
///
/// Returns how many were there, or a negative status. Without tuples the arrays may be NULL.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; each array is NULL or as long as said:
/// `count` tuples, `count` values, and a word of hits for every 64 begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_lookup_many(
    table: *mut Exact,
    tuples: *const Tuple,
    count: usize,
    values: *mut u64,
    hits: *mut u64,
) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise, for all.
        let (table, arrays) =
            unsafe { (write(table)?, Arrays::checked(tuples, count, values, hits)?) };
        let Arrays { keys, values, hits } = arrays;
        if !keys.iter().all(Tuple::is_valid) {
            return Err(Status::AddressVersion);
        }
        let words = keys.chunks(WORD).zip(values.chunks_mut(WORD));
        let mut packed = [[0; PACKED]; WORD];
        let mut found = 0;
        for ((tuples, values), word) in words.zip(hits) {
            for (packed, tuple) in packed.iter_mut().zip(tuples) {
                *packed = tuple.packed()?;
            }
            let flows = &packed[..tuples.len()];
            let hits = slice::from_mut(word);
            found += table.table.lookup_many_packed(flows, values, hits);
        }
        Ok(found as i64)
    })
}

/// Remembers a value for a connection. It always finds a place.
///
/// Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
/// driven out, and `old` is not NULL, that value is stored in `*old`.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `old` is
/// NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_insert(
    table: *mut Exact,
    tuple: *const Tuple,
    value: u64,
    old: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, old) = unsafe { (write(table)?, read(tuple)?, Place::optional(old)) };
        let (outcome, gone) = match table.table.insert(&tuple.checked()?, value) {
            FlowInserted::Filled => (Outcome::Filled, None),
            FlowInserted::Updated { old } => (Outcome::Updated, Some(old)),
            FlowInserted::Evicted { value, .. } => (Outcome::Evicted, Some(value)),
        };
        if let (Some(gone), Some(old)) = (gone, old) {
            old.put(gone);
        }
        Ok(outcome as c_int)
    })
}

/// Removes a connection. If it was there, and `old` is not NULL, its value is stored in `*old`.
///
/// Returns 1 if it was there, 0 if not, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `old` is
/// NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_remove(
    table: *mut Exact,
    tuple: *const Tuple,
    old: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, old) = unsafe { (write(table)?, read(tuple)?, Place::optional(old)) };
        let removed = table.table.remove(&tuple.checked()?);
        if let (Some(value), Some(old)) = (removed, old) {
            old.put(value);
        }
        Ok(c_int::from(removed.is_some()))
    })
}

/// Removes all connections with a value, as when a rule dies. Reads the whole table.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_forget_value(table: *mut Exact, value: u64) -> i64 {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { write(table) }?.table.forget_value(value) as i64))
}

/// Removes all connections.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_clear(table: *mut Exact) -> i64 {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { write(table) }?.table.clear() as i64))
}

/// Stores what the table counted in `*stats`; only verified hits are hits, and the bytes are those
/// of the slots alone.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `table` is NULL or a table that nobody else changes; `stats` is NULL or points to counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_get_stats(
    table: *const Exact,
    stats: *mut Stats,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for both.
        let (table, stats) = unsafe { (read(table)?, Place::checked(stats)?) };
        stats.put(Stats::of(table.table.stats(), table.table.config()));
        Ok(0)
    })
}
