//! memcached's datagrams under arbitrary bytes: the invariants of their property tests.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/protocol/tests/datagram_invariants/mod.rs"]
mod datagram_invariants;

fuzz_target!(|input: &[u8]| datagram_invariants::check(input));
