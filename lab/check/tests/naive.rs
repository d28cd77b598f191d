//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_check::sequence::{self, Misses};
use nuthatch_check::stress::{self, Load};
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;

fn make(setup: Setup) -> Arc<Naive> {
    Naive::new(Options {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        ..Options::default()
    })
}

/// The oracle has to be filled item by item as well, and is slow at it.
const EXTENT: Extent = Extent {
    sequences_full: Extent::SMOKE.sequences_full / 2,
    ..Extent::SMOKE
};

suite!(naive, make, EXTENT);

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
    conformance::run(&["size_every_small_one"], forgetful);
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
