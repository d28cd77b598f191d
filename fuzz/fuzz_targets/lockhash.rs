//! Any bytes make a sequence of operations; partitions behind locks answer it as the oracle does, however
//! many there are and which item has to leave.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch_check::sequence::Room;
use nuthatch_check::{Engine, sequence};
use nuthatch_partition::{Eviction, LockHash, LockHashConfig};

fuzz_target!(|bytes: &[u8]| {
    let Some((&design, bytes)) = bytes.split_first() else {
        return;
    };
    let room = Room::of(design >> 3);
    let config = LockHashConfig {
        memory_limit: room.bytes(),
        memory_limit_max: room.bytes(),
        eviction: [Eviction::Lru, Eviction::Random][usize::from(design & 1)],
        partitions: Some([1, 3, 64, 500][usize::from(design >> 1 & 3)]),
        // Small at first, so that it grows.
        initial_items: Some(64),
        ..LockHashConfig::default()
    };
    let engine = LockHash::new(config).expect("there is address space");
    sequence::run_bytes(&Arc::new(engine).any(), bytes, room.misses());
});
