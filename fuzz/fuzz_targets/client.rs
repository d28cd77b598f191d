//! The client's parser of replies under arbitrary bytes: the invariants of its property tests, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| nuthatch_client::fuzzing::check(input));
