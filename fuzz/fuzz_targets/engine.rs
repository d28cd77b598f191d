//! Any bytes make a sequence of operations; the engine answers it as the oracle does.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch::{Cuckoo, CuckooConfig};
use nuthatch_check::sequence;

fuzz_target!(|bytes: &[u8]| {
    // Two dozen keys of at most a mebibyte: nothing has to be evicted.
    let config = CuckooConfig {
        memory_limit: 128 << 20,
        memory_limit_max: 128 << 20,
        initial_items: Some(64),
        ..CuckooConfig::default()
    };
    let engine: Cuckoo = Cuckoo::new(config).expect("there is address space");
    sequence::run_bytes(&Arc::new(engine), bytes);
});
