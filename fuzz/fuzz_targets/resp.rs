//! The parser of Redis' protocol under arbitrary bytes: the invariants of its property tests, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/resp/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|input: &[u8]| invariants::check(input));
