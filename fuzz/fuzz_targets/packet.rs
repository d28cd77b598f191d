//! Any bytes as a capture and as a frame: the invariants of their property tests, and the classifier
//! against the list of rules, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../lab/pipeline/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|input: &[u8]| invariants::check(input));
