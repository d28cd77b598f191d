//! Any text as a script in Lua: the invariants of its property tests, with coverage as guide.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/lua/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|text: &[u8]| invariants::check(text));
