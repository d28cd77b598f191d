//! What a cache takes before anything is in it. A process of its own: it measures resident memory.
#![cfg(not(loom))]

use std::sync::Arc;

use nuthatch::partition::memory::MEMORY_MAX;
use nuthatch::{Chained, ChainedConfig, Cuckoo, CuckooConfig, Engine, LockHash, LockHashConfig};

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
    let from = nuthatch::engine::Cursor::default();
    let visit = |_: nuthatch::engine::Visit<'_>| panic!("nothing is stored");
    let now = nuthatch::Time(16);
    nuthatch::Handle::visit(&mut handle, now, from, usize::MAX, &mut { visit });
    nuthatch::Handle::maintain(&mut handle, now, 100_000);
    resident().saturating_sub(before)
}

/// However far the limit may be raised, what is known of pages is taken by need.
#[test]
fn an_empty_cache_takes_no_memory_for_what_its_limit_may_become() {
    let cuckoo = growth(|| {
        Cuckoo::<nuthatch::cuckoo::layout::EightWay>::new(CuckooConfig {
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
