//! Any text as a script of Redis' clients: the invariants of its property tests, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../memory.rs"]
mod memory;

#[path = "../../crates/server/script/tests/invariants/mod.rs"]
mod invariants;

/// In memory a script is up to some thirty times as long as its text, and makes a megabyte at most.
const HELD_MAX: usize = 8 << 20;

fuzz_target!(|text: &[u8]| memory::at_most(HELD_MAX, || invariants::check(text)));
