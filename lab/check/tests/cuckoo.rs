//! The cuckoo engine's designs under every check: items in a log, in size classes with CLOCK, and the paper's.

use std::sync::Arc;

use nuthatch_check::conformance::Setup;
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;
use nuthatch_cuckoo::layout::{EightWay, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig, CuckooEviction};

fn make<D: Variant>(setup: Setup) -> Arc<Cuckoo<D>> {
    make_evicting(setup, CuckooEviction::S3Fifo)
}

fn make_evicting<D: Variant>(setup: Setup, eviction: CuckooEviction) -> Arc<Cuckoo<D>> {
    let config = CuckooConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        eviction,
        // Small at first, so that it doubles under every check.
        initial_items: Some(100),
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).expect("there is address space"))
}

suite!(eight_way, make::<EightWay>, Extent::SMOKE);

fn clock(setup: Setup) -> Arc<Cuckoo<EightWay>> {
    make_evicting(setup, CuckooEviction::Clock)
}

suite!(clock, clock, PAPER);

/// MemC3's own: 4 slots, 1-byte tags, one writer.
const PAPER: Extent = Extent {
    batches_of_churn: Extent::SMOKE.batches_of_churn,
    histories: Extent::SMOKE.histories,
    ..Extent::SMOKE.part(10)
};
suite!(paper, make::<Paper>, PAPER);
