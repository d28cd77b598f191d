//! The oracle under every check that engines go through.

use std::sync::Arc;

use nuthatch_check::conformance::Setup;
use nuthatch_check::naive::{Naive, Options};
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;

fn make(setup: Setup) -> Arc<Naive> {
    Naive::new(Options {
        memory_limit: setup.memory_limit,
        memory_limit_max: setup.memory_limit,
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
