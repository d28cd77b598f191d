//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch::Engine;
use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::stress::{self, Load};

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
    sequence::property(300, Misses::Never, || make(Setup::AMPLE));
}

#[test]
fn forgets_only_whole_items_under_pressure() {
    let tight = Setup {
        memory_limit: 2 << 20,
        ..Setup::AMPLE
    };
    sequence::property(300, Misses::Lawful, || make(tight));
}

#[test]
fn stress_in_ample_memory() {
    let seen = stress::everything(&make(Setup::AMPLE), &Load::SMOKE);
    assert!(
        seen.hits > 0 && seen.misses > 0 && seen.changes > 0,
        "{seen:?}"
    );
}

#[test]
fn stress_under_pressure_with_mixed_sizes() {
    let engine = make(Setup::TIGHT);
    let seen = stress::everything(&engine, &Load::MIXED);
    assert!(seen.hits > 0 && seen.changes > 0, "{seen:?}");
    assert!(engine.stats().evictions > 0);
}

#[test]
fn residents_are_never_missed() {
    assert!(stress::residents(&make(Setup::AMPLE), &Load::SMOKE) > 0);
}

#[test]
fn no_increment_is_lost() {
    let load = Load {
        batches: 500,
        ..Load::SMOKE
    };
    stress::counter(&make(Setup::AMPLE), &load);
}
