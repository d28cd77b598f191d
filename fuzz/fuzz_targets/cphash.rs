//! Any bytes make a sequence of operations; partitions with threads of their own, asked by messages of
//! either design, answer it as the oracle does. Where threads take turns differently each time, so do the
//! ways that the fuzzer sees.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch_base::sync::ring::{Array, Single};
use nuthatch_check::Engine;
use nuthatch_check::sequence::{self, Room};
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_cphash::{CpHash, Rings};
use nuthatch_partition::Eviction;

fuzz_target!(|bytes: &[u8]| {
    let Some((&design, bytes)) = bytes.split_first() else {
        return;
    };
    let config = CpHashConfig {
        eviction: [Eviction::Lru, Eviction::Random][usize::from(design >> 1 & 1)],
        server_threads: [
            ServerThreads::Fixed(1),
            ServerThreads::Adaptive { min: 1, max: 2 },
        ][usize::from(design >> 2 & 1)],
        partitions: 2,
        // Small at first, so that it grows.
        initial_items: Some(64),
        ..CpHashConfig::default()
    };
    let room = Room::of(design >> 3);
    match design & 1 {
        0 => run::<Array>(config, room, bytes),
        _ => run::<Single>(config, room, bytes),
    }
});

fn run<D: Rings>(config: CpHashConfig, room: Room, bytes: &[u8]) {
    let config = CpHashConfig {
        memory_limit: room.bytes(),
        memory_limit_max: room.bytes(),
        ..config
    };
    let engine: CpHash<D> = CpHash::new(config).expect("there are memory and threads");
    sequence::run_bytes(&Arc::new(engine).any(), bytes, room.misses());
}
