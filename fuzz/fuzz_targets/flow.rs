//! Any bytes make a flow table and a sequence of operations on it: the invariants of its property test.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/flow/flow/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|input: &[u8]| invariants::check(input));
