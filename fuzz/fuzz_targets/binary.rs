//! The binary protocol's parser under arbitrary bytes: the invariants of its property tests.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/protocol/tests/binary_invariants/mod.rs"]
mod binary_invariants;

fuzz_target!(|input: &[u8]| binary_invariants::check(input));
