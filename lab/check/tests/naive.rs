//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch::Engine;
use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::soak;
use nuthatch_check::stress::{self, Load};
use nuthatch_workload::Seed;
use rand::Rng;

fn make(setup: Setup) -> Arc<Naive> {
    Naive::new(Options {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        ..Options::default()
    })
}

#[test]
fn conforms() {
    conformance::run(make);
}

#[test]
fn answers_sequences_as_the_model_does() {
    sequence::property(200 * soak(), Misses::Never, || make(Setup::AMPLE));
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    let tight = Setup {
        memory_limit: 2 << 20,
        ..Setup::AMPLE
    };
    sequence::property(100 * soak(), Misses::Lawful, || make(tight));
}

#[test]
fn stress_in_ample_memory() {
    let seen = stress::everything(&make(Setup::AMPLE), &Load::SMOKE.times(soak()));
    assert!(
        seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
        "{seen:?}"
    );
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
    assert!(stress::residents(&make(Setup::AMPLE), &Load::SMOKE.times(soak())) > 0);
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 500,
        ..Load::SMOKE
    };
    stress::counter(&make(Setup::AMPLE), &load.times(soak()));
}

#[test]
fn any_bytes_make_a_sequence() {
    let mut random = Seed(1).thread(0);
    for _ in 0..100 * soak() {
        let mut bytes = vec![0; random.random_range(0..4000)];
        random.fill(&mut bytes[..]);
        sequence::run_bytes(&make(Setup::AMPLE), &bytes);
    }
}

/// An engine that forgets, where none may.
fn forgetful(setup: Setup) -> Arc<Naive> {
    make(Setup {
        memory_limit: 20_000,
        ..setup
    })
}

#[test]
#[should_panic(expected = "size_every_small_one")]
fn canary_the_suite_convicts_a_forgetful_engine() {
    conformance::run_matching("size_every_small_one", forgetful);
}

#[test]
#[should_panic(expected = "answered")]
fn canary_sequences_convict_a_forgetful_engine() {
    sequence::property(500, Misses::Never, || forgetful(Setup::AMPLE));
}

#[test]
#[should_panic(expected = "was missed")]
fn canary_readers_convict_a_forgetful_engine() {
    stress::residents(&forgetful(Setup::AMPLE), &Load::SMOKE);
}
