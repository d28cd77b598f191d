//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch_check::conformance::{self, Setup};
use nuthatch_check::naive::{Naive, Options};

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
