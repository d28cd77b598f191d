//! The cuckoo engine under every check.

use std::sync::Arc;

use nuthatch::{Cuckoo, CuckooConfig, Engine};
use nuthatch_check::conformance::{self, Client, Setup};
use nuthatch_check::sequence::{self, Misses};

fn make(setup: Setup) -> Arc<Cuckoo> {
    let config = CuckooConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).expect("there is address space"))
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
    sequence::property(100, Misses::Lawful, || full(make(Setup::TIGHT)));
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
