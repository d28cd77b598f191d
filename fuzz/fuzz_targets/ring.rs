//! A ring pair in memory that two processes write, beside a peer that does anything: the invariants of its property test.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/ring/tests/peer_invariants/mod.rs"]
mod peer_invariants;

fuzz_target!(|input: &[u8]| peer_invariants::check(input));
