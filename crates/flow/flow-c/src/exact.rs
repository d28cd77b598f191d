//! The functions on tables that store and compare whole five-tuples.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::slice;

use nuthatch_flow::{self as flow, FlowInserted, FlowTable, KeyHasher, PACKED, StatsReader};

use crate::arrays::{Results, WORD, input};
use crate::config::{Config, Sharing, checked};
use crate::hash::Tuple;
use crate::stats::Stats;
use crate::status::{Out, Status, borrow, catch};
use crate::table::Outcome;

/// An exact-match table of connections: a lookup compares the whole five-tuple and never returns the
/// value of another connection. This costs one more cache line per hit and 64 more bytes per flow.
/// One thread at a time uses the table; any thread may call nuthatch_flow_exact_get_stats() at any
/// time.
pub struct Exact {
    /// Only the thread that uses the table refers to it.
    table: UnsafeCell<FlowTable>,
    /// Never changed, so that any thread may refer to them.
    config: flow::Config,
    stats: StatsReader,
}

/// The table itself.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses for `'a`, nor the caller by another
/// reference.
unsafe fn table_of<'a>(table: *mut Exact) -> Result<&'a mut FlowTable, Status> {
    // SAFETY: the caller's promise. Other threads may hold such a reference too, but it does not
    // cover what is in the `UnsafeCell`.
    let table: &Exact = unsafe { borrow(table) }?;
    // SAFETY: only the calling thread is here: the caller's promise. `nuthatch_flow_exact_get_stats`,
    // which others may call, looks at the other fields.
    Ok(unsafe { &mut *table.table.get() })
}

/// Creates an empty table and stores it in `*table`; NULL if it fails. Destroy it after use. The
/// field `entry` of the configuration is not used, and values have 64 bits. `hash_seed` should be
/// random: see nuthatch_flow_random_seed().
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
    catch(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Out::checked(table) }?;
        place.set(std::ptr::null_mut());
        // SAFETY: the caller's promise.
        let config = unsafe { checked(config, Sharing::Exclusive) }?;
        let table = FlowTable::new(&config, KeyHasher::seeded(hash_seed))?;
        place.set(Box::into_raw(Box::new(Exact {
            config: table.config().clone(),
            stats: table.stats_reader(),
            table: UnsafeCell::new(table),
        })));
        Ok(0)
    })
}

/// Frees a table; does nothing with NULL.
///
/// # Safety
/// `table` is NULL or from nuthatch_flow_exact_create() and not used during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_destroy(table: *mut Exact) {
    if !table.is_null() {
        catch(|| {
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
/// `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `value`
/// is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_lookup(
    table: *mut Exact,
    tuple: *const Tuple,
    value: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, value) =
            unsafe { (table_of(table)?, borrow(tuple)?, Out::checked(value)?) };
        let found = table.lookup(&tuple.checked()?);
        found.inspect(|&found| value.set(found));
        Ok(c_int::from(found.is_some()))
    })
}

/// Looks any number of connections up in one call, with their cache misses overlapped. `values` and
/// `hits` are filled in as by nuthatch_flow_lookup_many(), and untouched after an error. A tuple
/// whose version is neither 4 nor 6 is an error.
///
/// Returns how many were found, or a negative status. Without tuples the arrays may be NULL.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; each array is NULL or has its length: `count`
/// tuples, `count` values, and a word of hits for every 64 tuples or part of 64.
/// cbindgen:prefix=NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_lookup_many(
    table: *mut Exact,
    tuples: *const Tuple,
    count: usize,
    values: *mut u64,
    hits: *mut u64,
) -> i64 {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuples, results) = unsafe {
            let tuples = input(tuples, count)?;
            (
                table_of(table)?,
                tuples,
                Results::checked(count, values, hits)?,
            )
        };
        let Results { values, hits } = results;
        if !tuples.iter().all(Tuple::is_valid) {
            return Err(Status::AddressVersion);
        }
        let words = tuples.chunks(WORD).zip(values.chunks_mut(WORD));
        let mut packed = [[0; PACKED]; WORD];
        let mut found = 0;
        for ((tuples, values), word) in words.zip(hits) {
            for (packed, tuple) in packed.iter_mut().zip(tuples) {
                *packed = tuple.packed()?;
            }
            let flows = &packed[..tuples.len()];
            let hits = slice::from_mut(word);
            found += table.lookup_many_packed(flows, values, hits);
        }
        Ok(found as i64)
    })
}

/// Stores a value for a connection, and evicts another one if all slots are taken.
///
/// Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
/// evicted, and `old` is not NULL, that value is stored in `*old`.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `old` is
/// NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_insert(
    table: *mut Exact,
    tuple: *const Tuple,
    value: u64,
    old: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, old) = unsafe { (table_of(table)?, borrow(tuple)?, Out::optional(old)) };
        let (outcome, displaced) = match table.insert(&tuple.checked()?, value) {
            FlowInserted::Filled => (Outcome::Filled, None),
            FlowInserted::Updated { old } => (Outcome::Updated, Some(old)),
            FlowInserted::Evicted { value, .. } => (Outcome::Evicted, Some(value)),
        };
        old.set_some(displaced);
        Ok(outcome as c_int)
    })
}

/// Removes a connection. If it was there, and `old` is not NULL, its value is stored in `*old`.
///
/// Returns 1 if it was there, 0 if not, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `old` is
/// NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_remove(
    table: *mut Exact,
    tuple: *const Tuple,
    old: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (table, tuple, old) = unsafe { (table_of(table)?, borrow(tuple)?, Out::optional(old)) };
        let removed = table.remove(&tuple.checked()?);
        old.set_some(removed);
        Ok(c_int::from(removed.is_some()))
    })
}

/// Removes all connections with a value, as when a rule is deleted. Reads the whole table.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_forget_value(table: *mut Exact, value: u64) -> i64 {
    // SAFETY: the caller's promise.
    catch(|| Ok(unsafe { table_of(table) }?.forget_value(value) as i64))
}

/// Removes all connections.
///
/// Returns how many there were, or a negative status.
///
/// # Safety
/// `table` is NULL or a table that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_clear(table: *mut Exact) -> i64 {
    // SAFETY: the caller's promise.
    catch(|| Ok(unsafe { table_of(table) }?.clear() as i64))
}

/// Stores what the table counted in `*stats`; only verified hits count as hits, and `bytes` are those
/// of the slots alone. Any thread may call this while another one uses the table, as with
/// nuthatch_flow_get_stats().
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `table` is NULL or a table that is not destroyed meanwhile; `stats` is NULL or points to a
/// nuthatch_flow_stats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_exact_get_stats(
    table: *const Exact,
    stats: *mut Stats,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for both.
        let (table, stats) = unsafe { (borrow(table)?, Out::checked(stats)?) };
        stats.set(Stats::new(table.stats.stats(), &table.config));
        Ok(0)
    })
}
