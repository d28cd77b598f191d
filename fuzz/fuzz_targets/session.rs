//! Any bytes from a client of Redis' protocol, in one piece and in many, through a worker and a small engine.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::{AnyEngine, Engine};
use nuthatch_server::fuzzing;

#[path = "../memory.rs"]
mod memory;

/// Less than values and transactions may take, so that refusals are met, too.
const MEMORY: usize = 256 << 10;

/// Buffers of a worker, those of the connection, the engine, and answers.
const HELD_MAX: usize = 32 << 20;

/// The first bytes of an input tell the lengths of the pieces of the others.
const CUTS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    if let Some((cuts, input)) = bytes.split_at_checked(CUTS) {
        memory::at_most(HELD_MAX, || fuzzing::session(input, cuts, &engine));
    }
});

fn engine() -> Arc<AnyEngine> {
    let options = Options {
        memory_limit: MEMORY,
        memory_limit_max: MEMORY,
        item_size_max: MEMORY / 4,
        ..Options::default()
    };
    Naive::new(options).any()
}
