//! The LockHash engine under every check, with both ways of eviction.

use std::sync::Arc;

use nuthatch::partition::Eviction;
use nuthatch::{Engine, LockHash, LockHashConfig};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::history::{self, Plan};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::soak;
use nuthatch_check::stress::{self, Load};

fn make(setup: Setup) -> Arc<LockHash> {
    of(setup, Eviction::Lru, None)
}

/// Evicts at random.
fn random(setup: Setup) -> Arc<LockHash> {
    of(setup, Eviction::Random, None)
}

/// One partition, so that every thread wants the same lock.
fn single(setup: Setup) -> Arc<LockHash> {
    of(setup, Eviction::Lru, Some(1))
}

/// Evicts at random, in one partition: every thread writes under one lock and reads beside its holder.
fn single_random(setup: Setup) -> Arc<LockHash> {
    of(setup, Eviction::Random, Some(1))
}

/// Partitions too small for the largest values, which take memory from many of them.
fn scattered(setup: Setup) -> Arc<LockHash> {
    of(setup, Eviction::Lru, Some(100))
}

fn of(setup: Setup, eviction: Eviction, partitions: Option<u32>) -> Arc<LockHash> {
    let config = LockHashConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        eviction,
        partitions,
        ..LockHashConfig::default()
    };
    Arc::new(LockHash::new(config).expect("there is address space"))
}

#[test]
fn conforms() {
    conformance::run(make);
}

#[test]
fn conforms_with_random_eviction() {
    conformance::run(random);
}

#[test]
fn conforms_in_one_partition() {
    conformance::run(single);
}

#[test]
fn conforms_in_many_small_partitions() {
    conformance::run(scattered);
}

#[test]
fn answers_sequences_as_the_model_does() {
    for make in [make, random] {
        sequence::property(200 * soak(), Misses::Never, || make(Setup::AMPLE));
    }
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    for make in [make, random, scattered] {
        sequence::property(40 * soak(), Misses::Lawful, || full(make(Setup::TIGHT)));
    }
}

/// Fills an engine with other keys, until it has to evict.
fn full<E: Engine>(engine: Arc<E>) -> Arc<E> {
    let mut client = Client::new(Arc::clone(&engine));
    let mut number = 0_u64;
    while engine.stats().evictions == 0 {
        for _ in 0..1000 {
            client.set(format!("ballast {number}").as_bytes(), &[b'b'; 3000]);
            number += 1;
        }
    }
    engine
}

#[test]
fn stress_in_ample_memory() {
    for make in [make, single, single_random] {
        let seen = stress::everything(&make(Setup::AMPLE), &Load::SMOKE.times(soak()));
        assert!(
            seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
            "{seen:?}"
        );
    }
}

#[test]
fn stress_under_pressure_with_mixed_sizes() {
    for make in [random, single_random, scattered] {
        let engine = make(Setup::TIGHT);
        let seen = stress::everything(&engine, &Load::MIXED.times(soak()));
        assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
        assert!(engine.stats().evictions > 0);
    }
}

#[test]
fn residents_are_never_missed() {
    for make in [make, random, single_random] {
        assert!(stress::residents(&make(Setup::AMPLE), &Load::SMOKE.times(soak())) > 0);
    }
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 500,
        ..Load::SMOKE
    };
    for make in [single, single_random] {
        stress::counter(&make(Setup::AMPLE), &load.times(soak()));
    }
}

#[test]
fn histories_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds * soak(),
        ..Plan::SMOKE
    };
    for make in [make, single, random, single_random] {
        history::linearizable(&make(Setup::AMPLE), &plan);
    }
}
