//! Test of the memory that an empty cache takes. It is a process of its own, because it measures resident memory.
#![cfg(not(loom))]

use std::sync::Arc;

use nuthatch_chained::{Chained, ChainedConfig};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::Engine;
use nuthatch_partition::memory::MEMORY_MAX;
use nuthatch_partition::{LockHash, LockHashConfig};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    1024 * kib.and_then(|kib| kib.parse::<usize>().ok()).unwrap()
}

fn growth<E: Engine>(make: impl FnOnce() -> E) -> usize {
    let before = resident();
    let engine = Arc::new(make());
    let mut handle = engine.handle();
    // The walk and the sweep look where items may be, and not where none ever were.
    let from = nuthatch_engine::Cursor::default();
    let visit = |_: nuthatch_engine::Visit<'_>| panic!("nothing is stored");
    let now = nuthatch_engine::Time(16);
    nuthatch_engine::Handle::visit(&mut handle, now, from, usize::MAX, &mut { visit });
    nuthatch_engine::Handle::maintain(&mut handle, now, 100_000);
    resident().saturating_sub(before)
}

/// However far the limit may be raised, the memory that describes pages is taken by need.
#[test]
fn an_empty_cache_takes_no_memory_for_what_its_limit_may_become() {
    let cuckoo = growth(|| {
        Cuckoo::<nuthatch_cuckoo::layout::EightWay>::new(CuckooConfig {
            memory_limit: 8 * MIB,
            memory_limit_max: 256 * GIB,
            ..CuckooConfig::default()
        })
        .unwrap()
    });
    let chained = growth(|| {
        Chained::new(ChainedConfig {
            memory_limit: 8 * MIB,
            memory_limit_max: 256 * GIB,
            ..ChainedConfig::default()
        })
        .unwrap()
    });
    let lockhash = growth(|| {
        LockHash::new(LockHashConfig {
            memory_limit: 8 * MIB,
            memory_limit_max: MEMORY_MAX,
            partitions: Some(4),
            ..LockHashConfig::default()
        })
        .unwrap()
    });
    println!("resident: cuckoo {cuckoo}, chained {chained}, lockhash {lockhash}");
    // Counters, stripes, locks: a mebibyte is more than enough, and 40 bytes a page would be 10. LockHash has
    // its first buckets besides, which may take a huge page.
    for (name, bytes, most) in [
        ("cuckoo", cuckoo, MIB),
        ("chained", chained, MIB),
        ("lockhash", lockhash, 3 * MIB),
    ] {
        assert!(bytes < most, "{name} takes {bytes} bytes");
    }
}
