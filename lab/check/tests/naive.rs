//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_check::sequence::{self, Misses};

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
