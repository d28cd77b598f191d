//! The chained engine's three designs under every check.

use std::sync::Arc;

use nuthatch::{Chained, ChainedConfig, ChainedEviction, Engine, Locks};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::history::{self, Plan};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::soak;
use nuthatch_check::stress::{self, Load};
use nuthatch_workload::Seed;
use rand::Rng;

type Make = fn(Setup) -> Arc<Chained>;

/// memcached 1.4: one lock, strict LRU.
fn classic(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Global, ChainedEviction::Lru)
}

/// Bucket locks, strict LRU.
fn buckets(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Buckets, ChainedEviction::Lru)
}

/// Bucket locks, CLOCK.
fn clock(setup: Setup) -> Arc<Chained> {
    make(setup, Locks::Buckets, ChainedEviction::Clock)
}

const DESIGNS: [Make; 3] = [classic, buckets, clock];

fn make(setup: Setup, locks: Locks, eviction: ChainedEviction) -> Arc<Chained> {
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

#[test]
fn the_classic_design_conforms() {
    conformance::run(classic);
}

#[test]
fn bucket_locks_conform() {
    conformance::run(buckets);
}

#[test]
fn clock_conforms() {
    conformance::run(clock);
}

#[test]
fn answers_sequences_as_the_model_does() {
    for design in DESIGNS {
        sequence::property(70 * soak(), Misses::Never, || design(Setup::AMPLE));
    }
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    for design in DESIGNS {
        sequence::property(30 * soak(), Misses::Lawful, || full(design(Setup::TIGHT)));
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
    for design in DESIGNS {
        let seen = stress::everything(&design(Setup::AMPLE), &Load::SMOKE.times(soak()));
        assert!(
            seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
            "{seen:?}"
        );
    }
}

#[test]
fn stress_under_pressure_with_mixed_sizes() {
    for design in DESIGNS {
        let engine = design(Setup::TIGHT);
        let third = Load {
            batches: Load::MIXED.batches / 3,
            ..Load::MIXED
        };
        let seen = stress::everything(&engine, &third.times(soak()));
        assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
        assert!(engine.stats().evictions > 0);
    }
}

#[test]
fn residents_are_never_missed() {
    for design in DESIGNS {
        assert!(stress::residents(&design(Setup::AMPLE), &Load::SMOKE.times(soak())) > 0);
    }
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 500,
        ..Load::SMOKE
    };
    for design in DESIGNS {
        stress::counter(&design(Setup::AMPLE), &load.times(soak()));
    }
}

#[test]
fn histories_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds * soak(),
        ..Plan::SMOKE
    };
    for design in DESIGNS {
        history::linearizable(&design(Setup::AMPLE), &plan);
    }
}

#[test]
fn any_bytes_make_a_sequence() {
    let mut random = Seed(1).thread(0);
    for number in 0..100 * soak() {
        let mut bytes = vec![0; random.random_range(0..4000)];
        random.fill(&mut bytes[..]);
        sequence::run_bytes(&DESIGNS[number % 3](Setup::AMPLE), &bytes);
    }
}
