//! The chained engine's three designs under every check.

use std::sync::Arc;

use nuthatch_chained::{self as chained, Chained, ChainedConfig, Locks, POLICIES, PolicyKind};
use nuthatch_check::conformance::Setup;
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;

fn make(setup: Setup, locks: Locks, eviction: &'static PolicyKind) -> Arc<Chained> {
    let config = ChainedConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        // Small at first, so that it doubles under every check.
        initial_items: Some(100),
        locks,
        eviction,
        ..ChainedConfig::default()
    };
    Arc::new(Chained::new(config).expect("there is address space"))
}

/// memcached 1.4: one lock, strict LRU.
fn classic(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Global, &chained::lru::KIND)
}

/// Bucket locks, strict LRU.
fn buckets(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Buckets, &chained::lru::KIND)
}

/// Bucket locks, CLOCK.
fn clock(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Buckets, &chained::clock::KIND)
}

/// A third of the sequences, which are the slow checks. The interaction of threads depends on the design's locks and
/// lists, so each design has all checks of that.
const THIRD: Extent = Extent {
    batches: Extent::SMOKE.batches,
    batches_of_churn: Extent::SMOKE.batches_of_churn,
    batches_of_increments: Extent::SMOKE.batches_of_increments,
    histories: Extent::SMOKE.histories,
    ..Extent::SMOKE.part(3)
};

suite!(classic, classic, THIRD);
suite!(buckets, buckets, THIRD);
suite!(clock, clock, THIRD);

/// Class of fault: a policy that no check is run on. With a suite above, it gets its place here.
#[test]
fn every_policy_has_a_suite() {
    let with_suites = [&chained::lru::KIND, &chained::clock::KIND];
    for kind in POLICIES {
        assert!(with_suites.contains(kind), "{kind:?} has no suite here");
    }
}
