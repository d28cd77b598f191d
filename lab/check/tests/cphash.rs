//! The CPHash engine under every check, with both designs of its rings.

use std::sync::Arc;

use nuthatch::Engine;
use nuthatch::partition::Eviction;
use nuthatch::partition::cphash::config::{CpHashConfig, ServerThreads};
use nuthatch::partition::cphash::{CpHash, Rings};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::history::{self, Plan};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::soak;
use nuthatch_check::stress::{self, Load};
use nuthatch_sync::ring::{Array, Single};
use nuthatch_workload::Seed;
use rand::Rng;

fn config(setup: Setup) -> CpHashConfig {
    CpHashConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        server_threads: ServerThreads::Adaptive { min: 1, max: 2 },
        ..CpHashConfig::default()
    }
}

fn start<D: Rings>(config: CpHashConfig) -> Arc<CpHash<D>> {
    Arc::new(CpHash::new(config).expect("there are memory and threads"))
}

/// The array of buffers.
fn make(setup: Setup) -> Arc<CpHash> {
    start(config(setup))
}

/// The single buffer.
fn single(setup: Setup) -> Arc<CpHash<Single>> {
    start(config(setup))
}

/// More server threads than cores, and partitions of which each has several.
fn crowded(setup: Setup) -> Arc<CpHash> {
    start(CpHashConfig {
        partitions: 8,
        server_threads: ServerThreads::Fixed(4),
        ..config(setup)
    })
}

#[test]
fn conforms() {
    conformance::run(make);
}

#[test]
fn conforms_with_single_buffers() {
    conformance::run(single);
}

#[test]
fn conforms_with_random_eviction() {
    conformance::run(|setup| {
        start::<Array>(CpHashConfig {
            eviction: Eviction::Random,
            ..config(setup)
        })
    });
}

#[test]
fn answers_sequences_as_the_model_does() {
    sequence::property(100 * soak(), Misses::Never, || make(Setup::AMPLE));
}

#[test]
fn answers_sequences_through_single_buffers() {
    sequence::property(50 * soak(), Misses::Never, || single(Setup::AMPLE));
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    sequence::property(20 * soak(), Misses::Lawful, || full(make(Setup::TIGHT)));
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
    let load = Load {
        batches: 1000,
        ..Load::SMOKE
    };
    let seen = stress::everything(&make(Setup::AMPLE), &load.times(soak()));
    assert!(
        seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
        "{seen:?}"
    );
}

#[test]
fn stress_on_more_threads_than_cores() {
    let load = Load {
        batches: 500,
        threads: 8,
        ..Load::SMOKE
    };
    let seen = stress::everything(&crowded(Setup::AMPLE), &load.times(soak()));
    assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
}

#[test]
fn stress_under_pressure_with_mixed_sizes() {
    let engine = make(Setup::TIGHT);
    let seen = stress::everything(&engine, &Load::MIXED.times(soak()));
    assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
    assert!(engine.stats().evictions > 0);
}

#[test]
fn residents_are_never_missed() {
    let load = Load {
        batches: 400,
        ..Load::SMOKE
    };
    assert!(stress::residents(&make(Setup::AMPLE), &load.times(soak())) > 0);
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 100,
        ..Load::SMOKE
    };
    stress::counter(&make(Setup::AMPLE), &load.times(soak()));
    stress::counter(&single(Setup::AMPLE), &load.times(soak()));
}

#[test]
fn histories_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds / 3 * soak(),
        ..Plan::SMOKE
    };
    history::linearizable(&make(Setup::AMPLE), &plan);
}

#[test]
fn histories_through_single_buffers_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds / 3 * soak(),
        ..Plan::SMOKE
    };
    history::linearizable(&single(Setup::AMPLE), &plan);
}

#[test]
fn histories_on_many_server_threads_are_linearizable() {
    let plan = Plan {
        rounds: Plan::SMOKE.rounds / 3 * soak(),
        ..Plan::SMOKE
    };
    history::linearizable(&crowded(Setup::AMPLE), &plan);
}

#[test]
fn any_bytes_make_a_sequence() {
    let mut random = Seed(1).thread(0);
    for _ in 0..30 * soak() {
        let mut bytes = vec![0; random.random_range(0..4000)];
        random.fill(&mut bytes[..]);
        sequence::run_bytes(&make(Setup::AMPLE), &bytes);
    }
}
