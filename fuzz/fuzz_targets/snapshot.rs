//! Any bytes as a file of items: the invariants of its tests, with coverage as guide.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

#[path = "../memory.rs"]
mod memory;

#[path = "../../crates/core/snapshot/tests/invariants/mod.rs"]
mod invariants;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// What a reader takes for its buffer and for an input of any length that the fuzzer makes; a file may announce
/// gigabytes.
const HELD_MAX: usize = 16 << 20;

fuzz_target!(|input: &[u8]| {
    let path = FOLDER.path().join("items");
    memory::at_most(HELD_MAX, || invariants::check(input, &path));
});
