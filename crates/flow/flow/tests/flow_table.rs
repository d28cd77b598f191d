//! Tests of the exact-match table: a lookup finds only the flow itself, whatever other flows have its tag.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_base::hash::split;
use nuthatch_flow::{
    Config, ConfigError, Eviction, FiveTuple, FlowInserted, FlowTable, KeyHasher, Layout,
};

/// A flow for each number; every second one is IPv4.
fn flow(number: u32) -> FiveTuple {
    let (source, destination): (IpAddr, IpAddr) = if number.is_multiple_of(2) {
        (Ipv4Addr::from(number).into(), Ipv4Addr::LOCALHOST.into())
    } else {
        (
            Ipv6Addr::from(u128::from(number)).into(),
            Ipv6Addr::LOCALHOST.into(),
        )
    };
    FiveTuple {
        source,
        destination,
        source_port: number as u16,
        destination_port: 443,
        protocol: 17,
    }
}

fn table(layout: Layout, eviction: Eviction, entries: u64) -> FlowTable {
    let config = Config::new(entries)
        .layout(layout)
        .eviction(eviction)
        .seed(1);
    FlowTable::new(&config, KeyHasher::seeded(1)).unwrap()
}

/// Random operations, compared with a map from which evicted flows are removed.
#[test]
fn it_agrees_with_a_map_without_the_evicted_flows() {
    for layout in Layout::ALL {
        for eviction in Eviction::ALL.into_iter().filter(|one| one.suits(layout)) {
            let mut table = table(layout, eviction, 128);
            let mut map = HashMap::new();
            let mut state = 1_u64;
            for step in 0..5000_u64 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let flow = flow((state >> 33) as u32 % 300);
                match (state >> 20) % 8 {
                    0 => assert_eq!(table.remove(&flow), map.remove(&flow)),
                    1..4 => assert_eq!(table.lookup(&flow), map.get(&flow).copied()),
                    _ => match table.insert(&flow, step) {
                        FlowInserted::Filled => assert_eq!(map.insert(flow, step), None),
                        FlowInserted::Updated { old } => {
                            assert_eq!(map.insert(flow, step), Some(old));
                        }
                        FlowInserted::Evicted { flow: left, value } => {
                            assert_eq!(map.remove(&left), Some(value));
                            assert_eq!(map.insert(flow, step), None);
                        }
                    },
                }
                if step % 1000 == 999 {
                    let condemned = |value: u64| value.is_multiple_of(3);
                    let before = map.len();
                    map.retain(|_, value| !condemned(*value));
                    let forgotten = table.forget(|_, value| condemned(value));
                    assert_eq!(forgotten as usize, before - map.len());
                }
            }
            let all: HashMap<_, _> = table.iter().collect();
            assert_eq!(all, map, "{layout} {eviction}");
            assert_eq!(table.stats().occupied() as usize, map.len());
            assert_eq!(table.clear() as usize, map.len());
            assert_eq!(table.iter().count(), 0);
        }
    }
}

#[test]
fn batches_of_any_length_find_what_single_lookups_find() {
    let mut table = table(Layout::Blp2x4, Eviction::Random, 1024);
    for number in 0..900 {
        table.insert(&flow(number), u64::from(number) << 40);
    }
    let mut answered = 0;
    for flows in [0, 1, 63, 64, 65, 200, 1800] {
        let flows: Vec<_> = (0..flows).map(flow).collect();
        let mut values = vec![u64::MAX; flows.len()];
        let mut hits = vec![u64::MAX; flows.len().div_ceil(64)];
        let found = table.lookup_many(&flows, &mut values, &mut hits);
        let mut expected = 0;
        for (index, flow) in flows.iter().enumerate() {
            let hit = hits[index / 64] >> (index % 64) & 1 == 1;
            assert_eq!(hit.then_some(values[index]), table.peek(flow));
            assert!(hit || values[index] == 0);
            expected += usize::from(hit);
        }
        assert_eq!(found, expected);
        answered += found as u64;
    }
    let stats = table.stats();
    assert_eq!((stats.lookups, stats.hits), (2193, answered));
}

#[test]
fn tables_too_large_for_their_records_are_refused() {
    for entries in [1 << 32, u64::MAX] {
        let error = FlowTable::new(&Config::new(entries), KeyHasher::seeded(1))
            .err()
            .unwrap();
        assert!(matches!(error, ConfigError::TooManyEntries(_)));
    }
}

/// Two flows with one tag in a table of 16 buckets, the second one so many buckets after the first.
fn two_with_one_tag(hasher: &KeyHasher, buckets_apart: u64) -> (FiveTuple, FiveTuple) {
    // Of half a million flows some 30 pairs have the same 32 bits.
    let mut tags: Vec<_> = (0..1 << 19)
        .map(|number| (split::tag32(flow(number).hash(hasher)), number))
        .collect();
    tags.sort_unstable();
    let bucket = |number| split::bucket(flow(number).hash(hasher), 15);
    let same = tags.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let mut pairs = same.flat_map(|pair| [(pair[0].1, pair[1].1), (pair[1].1, pair[0].1)]);
    let (one, other) = pairs
        .find(|&(one, other)| bucket(one) + buckets_apart == bucket(other))
        .unwrap();
    (flow(one), flow(other))
}

#[test]
fn flows_with_the_same_tag_and_buckets_are_distinguished() {
    let hasher = KeyHasher::seeded(1);
    let (one, other) = two_with_one_tag(&hasher, 0);
    let mut table = FlowTable::new(&Config::new(64), hasher).unwrap();
    assert_eq!(table.insert(&one, 10), FlowInserted::Filled);
    assert_eq!(table.lookup(&other), None);
    assert_eq!(table.lookup(&one), Some(10));
    let inserted = table.insert(&other, 20);
    let evicted = FlowInserted::Evicted {
        flow: one,
        value: 10,
    };
    assert_eq!(inserted, evicted);
    assert_eq!(table.lookup(&one), None);
    assert_eq!(table.lookup(&other), Some(20));
    let stats = table.stats();
    assert_eq!((stats.lookups, stats.hits), (4, 2));
    assert_eq!((stats.filled, stats.updated, stats.evicted), (1, 0, 1));
    assert_eq!(table.iter().collect::<Vec<_>>(), [(other, 20)]);
}

/// Two flows of neighbouring buckets with the same tag: an update or a removal of one removes the
/// other, and no record is leaked.
#[test]
fn neighbours_with_the_same_tag_are_removed_together() {
    let hasher = KeyHasher::seeded(1);
    let (one, other) = two_with_one_tag(&hasher, 1);
    let mut table = FlowTable::new(&Config::new(64), hasher).unwrap();
    for round in 0..1000 {
        table.insert(&one, round);
        assert_eq!(table.insert(&other, 20), FlowInserted::Filled);
        assert_eq!(table.lookup(&one), Some(round));
        assert_eq!(table.lookup(&other), Some(20));
        if round % 2 == 0 {
            let updated = table.insert(&one, 11);
            assert_eq!(updated, FlowInserted::Updated { old: round });
            assert_eq!(table.iter().collect::<Vec<_>>(), [(one, 11)]);
        }
        assert!(table.remove(&one).is_some());
        assert_eq!(table.iter().count(), 0);
        assert_eq!(table.stats().occupied(), 0);
    }
}
