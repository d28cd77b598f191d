//! Any bytes from a server that hands over, with descriptors: a successor takes all of it or none, and leaves nothing
//! open.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::Engine;
use nuthatch_server::fuzzing;

#[path = "../memory.rs"]
mod memory;

/// The buffer for items, that for a message, and the items.
const HELD_MAX: usize = 8 << 20;

/// The first bytes of an input tell the numbers of descriptors.
const MESSAGES: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    if let Some((descriptors, input)) = bytes.split_at_checked(MESSAGES) {
        memory::at_most(HELD_MAX, || {
            let engine = Naive::new(Options::default()).any();
            fuzzing::successor(input, descriptors, &engine);
        });
    }
});
