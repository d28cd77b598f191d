//! Invariants of any sequence of operations on a flow cache and on a flow table. Also the body of the fuzz
//! target.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_flow::{
    Config, Entry, Eviction, FiveTuple, FlowCache, FlowInserted, FlowTable, InsertAt, Inserted,
    KeyHasher, Layout, Probability,
};

/// Checks the sequence that these bytes encode: two for the configuration, and three for each operation.
pub fn check(bytes: &[u8]) {
    let Some((&[shape, entry], operations)) = bytes.split_first_chunk() else {
        return;
    };
    let config = config(shape, entry);
    let (operations, _) = operations.as_chunks();
    // Values are the numbers of the operations, as many as fit an entry.
    let operations = &operations[..operations.len().min(1 << 12)];
    check_cache(&config, operations);
    check_flows(&config, operations);
}

fn config(shape: u8, entry: u8) -> Config {
    let (shape, entry) = (usize::from(shape), usize::from(entry));
    let layout = Layout::ALL[shape % Layout::ALL.len()];
    let pblru = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::HALF,
    };
    let evictions = Eviction::ALL.into_iter().chain([pblru]);
    let suited: Vec<_> = evictions.filter(|one| one.suits(layout)).collect();
    Config::new(64)
        .layout(layout)
        .eviction(suited[shape / Layout::ALL.len() % suited.len()])
        .entry(Entry::ALL[entry % Entry::ALL.len()])
        .seed(1)
}

/// A hash whose parts are equal to those of many others, for all ways to cut it.
fn hash(a: u8, b: u8) -> u64 {
    u64::from_le_bytes([a, a, b, b, a, a, b, b])
}

/// A cache and a model of its values. The cache reports which value is evicted, but not the removed ones
/// with the tag of the stored key; with 64-bit tags there are none.
fn check_cache(config: &Config, operations: &[[u8; 3]]) {
    let mut cache = config.build().expect("it suits");
    let exact = config.entry == Entry::Hash64;
    let mut model: HashMap<u64, u64> = HashMap::new();
    let mut known = HashSet::new();
    for (number, &[op, a, b]) in operations.iter().enumerate() {
        let (hash, value) = (hash(a, b), number as u64);
        match op % 8 {
            0 => {
                let removed = cache.remove(hash);
                assert_eq!(cache.peek(hash), None, "{config:?}");
                match exact {
                    true => assert_eq!(removed, model.remove(&hash)),
                    false => assert!(removed.is_none_or(|value| known.contains(&value))),
                }
            }
            1..4 => {
                let found = cache.lookup(hash);
                match exact {
                    true => assert_eq!(found, model.get(&hash).copied(), "{config:?}"),
                    false => assert!(found.is_none_or(|value| known.contains(&value))),
                }
            }
            _ => {
                let inserted = cache.insert(hash, value).expect("the value fits");
                assert_eq!(cache.peek(hash), Some(value), "{config:?}");
                match inserted {
                    Inserted::Updated { old } | Inserted::Evicted { value: old } => {
                        assert!(known.contains(&old), "{config:?}: {inserted:?}");
                    }
                    Inserted::Filled => {}
                }
                known.insert(value);
                if let Inserted::Evicted { value: left } = inserted {
                    model.retain(|_, value| *value != left);
                }
                model.insert(hash, value);
            }
        }
        assert_eq!(cache.stats().occupied(), cache.count(), "{config:?}");
        if exact {
            assert_eq!(cache.count(), model.len() as u64, "{config:?}");
        }
    }
    check_batch(cache, operations);
}

/// A batch of lookups finds the same as single ones.
fn check_batch(mut cache: FlowCache, operations: &[[u8; 3]]) {
    let hashes: Vec<u64> = operations.iter().map(|&[_, a, b]| hash(a, b)).collect();
    let singly: Vec<_> = hashes.iter().map(|&hash| cache.peek(hash)).collect();
    let mut values = vec![u64::MAX; hashes.len()];
    let mut hits = vec![u64::MAX; hashes.len().div_ceil(64)];
    let found = cache.lookup_many(&hashes, &mut values, &mut hits);
    assert_eq!(found, singly.iter().flatten().count());
    // A hit may move an entry, but not change its value.
    for (index, single) in singly.into_iter().enumerate() {
        let hit = hits[index / 64] >> (index % 64) & 1 == 1;
        assert_eq!(hit.then_some(values[index]), single);
    }
}

/// Flows that differ in one part or another.
fn flow(a: u8, b: u8) -> FiveTuple {
    let addresses: (IpAddr, IpAddr) = match a % 2 {
        0 => (Ipv4Addr::from([a; 4]).into(), Ipv4Addr::LOCALHOST.into()),
        _ => (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from([a; 16]).into()),
    };
    FiveTuple {
        source: addresses.0,
        destination: addresses.1,
        source_port: b.into(),
        destination_port: u16::from(b % 3) << 8,
        protocol: b % 2,
    }
}

/// A table of flows, compared with a map from which evicted flows are removed.
fn check_flows(config: &Config, operations: &[[u8; 3]]) {
    let mut table = FlowTable::new(config, KeyHasher::seeded(1)).expect("it suits");
    let mut model: HashMap<FiveTuple, u64> = HashMap::new();
    for (number, &[op, a, b]) in operations.iter().enumerate() {
        let (flow, value) = (flow(a, b), number as u64);
        match op % 8 {
            0 => assert_eq!(table.remove(&flow), model.remove(&flow), "{config:?}"),
            1..4 => assert_eq!(table.lookup(&flow), model.get(&flow).copied(), "{config:?}"),
            _ => {
                let replaced = match table.insert(&flow, value) {
                    FlowInserted::Filled => None,
                    FlowInserted::Updated { old } => Some(old),
                    FlowInserted::Evicted { flow: left, value } => {
                        assert_eq!(model.remove(&left), Some(value), "{config:?}");
                        None
                    }
                };
                assert_eq!(model.insert(flow, value), replaced, "{config:?}");
            }
        }
    }
    let all: HashMap<FiveTuple, u64> = table.iter().collect();
    assert_eq!(all, model, "{config:?}");
}
