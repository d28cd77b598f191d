//! The LockHash engine under every check, with both ways of eviction.

use std::sync::Arc;

use nuthatch_check::conformance::Setup;
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;
use nuthatch_partition::{Eviction, LockHash, LockHashConfig};

fn make(setup: Setup, eviction: Eviction, partitions: Option<u32>) -> Arc<LockHash> {
    let config = LockHashConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        // Small at first, so that it grows under every check.
        initial_items: Some(100),
        eviction,
        partitions,
        ..LockHashConfig::default()
    };
    Arc::new(LockHash::new(config).expect("there is address space"))
}

fn lru(setup: Setup) -> Arc<LockHash> {
    make(setup, Eviction::Lru, None)
}

fn random(setup: Setup) -> Arc<LockHash> {
    make(setup, Eviction::Random, None)
}

/// One partition, so that every thread wants the same lock.
fn single(setup: Setup) -> Arc<LockHash> {
    make(setup, Eviction::Lru, Some(1))
}

/// Evicts at random, in one partition: every thread writes under one lock and reads beside its holder.
fn single_random(setup: Setup) -> Arc<LockHash> {
    make(setup, Eviction::Random, Some(1))
}

/// Partitions too small for the largest values, which take memory from many of them.
fn scattered(setup: Setup) -> Arc<LockHash> {
    make(setup, Eviction::Lru, Some(100))
}

/// A quarter of the slow checks, half of those that depend on the locks.
const EXTENT: Extent = Extent {
    cases: Extent::CASES_OF_PARTITIONS,
    batches: Extent::SMOKE.batches / 2,
    batches_mixed: Extent::SMOKE.batches_mixed / 2,
    batches_of_increments: Extent::SMOKE.batches_of_increments,
    histories: Extent::SMOKE.histories / 2,
    ..Extent::SMOKE.part(4)
};

/// As above; only the cases of reads and of operations that change the values read.
const EXTENT_BESIDE: Extent = Extent {
    cases: &["batch", "read", "store", "delta", "expiry", "visit"],
    ..EXTENT
};

suite!(lru, lru, EXTENT);
suite!(random, random, EXTENT);
suite!(single, single, EXTENT);
suite!(single_random, single_random, EXTENT_BESIDE);
suite!(scattered, scattered, EXTENT);
