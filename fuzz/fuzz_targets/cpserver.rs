//! CPServer's parser under arbitrary bytes: the invariants of its property tests.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/protocol/tests/cpserver_invariants/mod.rs"]
mod cpserver_invariants;

fuzz_target!(|input: &[u8]| cpserver_invariants::check(input));
