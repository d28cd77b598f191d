//! Any bytes make a sequence of operations; each design of the cuckoo engine answers it as the oracle does.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch_check::Engine;
use nuthatch_check::sequence::{self, Room};
use nuthatch_cuckoo::layout::{EightWay, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};

fuzz_target!(|bytes: &[u8]| {
    let Some((&design, bytes)) = bytes.split_first() else {
        return;
    };
    let room = Room::of(design >> 1);
    match design & 1 {
        0 => run::<EightWay>(room, bytes),
        _ => run::<Paper>(room, bytes),
    }
});

fn run<D: Variant>(room: Room, bytes: &[u8]) {
    let config = CuckooConfig {
        memory_limit: room.bytes(),
        memory_limit_max: room.bytes(),
        initial_items: Some(64),
        ..CuckooConfig::default()
    };
    let engine: Cuckoo<D> = Cuckoo::new(config).expect("there is address space");
    sequence::run_bytes(&Arc::new(engine).any(), bytes, room.misses());
}
