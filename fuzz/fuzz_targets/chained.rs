//! Any bytes make a sequence of operations; each design of the chained engine answers it as the oracle
//! does.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch_chained::{Chained, ChainedConfig, Locks, clock, lru};
use nuthatch_check::sequence::Room;
use nuthatch_check::{Engine, sequence};

fuzz_target!(|bytes: &[u8]| {
    let Some((&design, bytes)) = bytes.split_first() else {
        return;
    };
    let room = Room::of(design >> 2);
    let config = ChainedConfig {
        memory_limit: room.bytes(),
        memory_limit_max: room.bytes(),
        initial_items: Some(64),
        locks: [Locks::Global, Locks::Buckets][usize::from(design & 1)],
        eviction: [&lru::KIND, &clock::KIND][usize::from(design >> 1 & 1)],
        ..ChainedConfig::default()
    };
    let engine = Chained::new(config).expect("there is address space");
    sequence::run_bytes(&Arc::new(engine).any(), bytes, room.misses());
});
