//! The parser of Redis' protocol under arbitrary bytes: the invariants of its property tests, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/protocol/tests/resp_invariants/mod.rs"]
mod resp_invariants;

fuzz_target!(|input: &[u8]| resp_invariants::check(input));
