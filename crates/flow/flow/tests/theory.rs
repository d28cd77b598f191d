//! The theory against simulation, to three decimals.
//!
//! In two steps, since a table that a test can fill differs from the mean of all tables by more than a
//! thousandth. Exact placement of large random instances, which is only counting, must agree with the
//! theory; and small tables, filled by inserting missing keys until they hold no more, must hold as many
//! as exact placement of their own keys.
#![cfg(not(loom))]

use nuthatch_flow::{Config, Entry, Eviction, FlowCache, Inserted, Layout, theory};

const ALPHAS: [f64; 8] = [0.5, 0.8, 0.9, 0.95, 1.0, 1.1, 1.25, 2.0];

/// Three decimals.
const CLOSE: f64 = 0.0005;

/// Multiplier of the work: NUTHATCH_SOAK if that is set.
fn soak() -> u64 {
    let wanted = std::env::var("NUTHATCH_SOAK").ok();
    wanted.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Mixes a number into 64 random-looking bits.
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(77);
    bits ^= bits >> 30;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^= bits >> 27;
    bits = bits.wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The largest number of keys that can be in the table at once, given the keys of each first bucket.
fn placed(layout: Layout, homes: &[u8]) -> u64 {
    let (slots, room) = (layout.slots(), layout.candidates());
    let (mut placed, mut waiting) = (0, 0);
    for &home in homes.iter().chain(&[0; 8][..layout.spare_buckets()]) {
        // The keys that were spilled furthest are placed first; keys that would be spilled too far are not
        // placed.
        let admitted = usize::from(home).min(room - waiting);
        placed += admitted as u64;
        waiting = (waiting + admitted).saturating_sub(slots);
    }
    placed
}

/// The number of keys, of the first `keys`, for each first bucket.
fn homes(layout: Layout, entries: u64, keys: u64) -> Vec<u8> {
    let mut homes = vec![0; entries as usize / layout.slots()];
    let mask = homes.len() as u64 - 1;
    for key in 0..keys {
        homes[(mix(key) & mask) as usize] += 1;
    }
    homes
}

fn consecutive() -> impl Iterator<Item = Layout> {
    Layout::ALL
        .into_iter()
        .filter(|layout| layout.is_consecutive())
}

#[test]
fn exact_placement_of_large_tables_agrees_with_the_theory() {
    let entries = 1_u64 << if soak() > 1 { 25 } else { 23 };
    for layout in consecutive() {
        let mask = entries / layout.slots() as u64 - 1;
        let mut homes = vec![0_u8; mask as usize + 1];
        let mut keys = 0;
        // Each working set contains the smaller ones, so that each key is drawn once.
        for alpha in ALPHAS {
            while (keys as f64) < alpha * entries as f64 {
                let home = &mut homes[(mix(keys) & mask) as usize];
                *home = home.saturating_add(1);
                keys += 1;
            }
            let rate = placed(layout, &homes) as f64 / keys as f64;
            let theory = theory::hit_rate(layout, alpha);
            assert!(
                (rate - theory).abs() < CLOSE,
                "{layout} {alpha}: {rate} and {theory}"
            );
        }
    }
}

/// Inserts missing keys in random order until none is missing, for `rounds` rounds of the working set at
/// most; returns how many are missing. Lookups of the others would change nothing.
fn fill(cache: &mut FlowCache, keys: u64, rounds: f64) -> u64 {
    let mut missing: Vec<u64> = (0..keys).collect();
    let (mut done, mut draw) = (0.0, 1 << 40);
    while done < rounds && !missing.is_empty() {
        // The mean number of accesses until one misses.
        done += 1.0 / missing.len() as f64;
        draw += 1;
        let at = ((u128::from(mix(draw)) * missing.len() as u128) >> 64) as usize;
        let key = missing[at];
        match cache.insert(mix(key), key).unwrap() {
            Inserted::Filled => drop(missing.swap_remove(at)),
            Inserted::Evicted { value } => missing[at] = value,
            Inserted::Updated { .. } => panic!("a key was both missing and there"),
        }
    }
    missing.len() as u64
}

/// The hit rate of a pass over all keys that changes nothing.
fn measured(cache: &mut FlowCache, keys: u64) -> f64 {
    let hashes: Vec<u64> = (0..keys).map(mix).collect();
    let (mut values, mut hits) = (vec![0; hashes.len()], vec![0; hashes.len().div_ceil(64)]);
    let found = cache.lookup_many(&hashes, &mut values, &mut hits);
    found as f64 / keys as f64
}

/// Evictions that fill tables soon: of the second bucket if that suffices, else LRU. Random ones fill them
/// too, but take thousands of rounds for the last thousandths.
fn quickest(layout: Layout) -> Eviction {
    match layout {
        Layout::Blp2x4 | Layout::Blp2x8 => Eviction::RandomSecond,
        _ => Eviction::Lru,
    }
}

#[test]
fn tables_come_to_hold_what_exact_placement_says() {
    let entries = 1_u64 << if soak() > 1 { 18 } else { 14 };
    for layout in consecutive() {
        for alpha in ALPHAS {
            let config = Config::new(entries)
                .layout(layout)
                .eviction(quickest(layout));
            let mut cache = config.entry(Entry::Hash64).seed(1).build().unwrap();
            let keys = (alpha * entries as f64) as u64;
            fill(&mut cache, keys, 200.0);
            let rate = measured(&mut cache, keys);
            let most = placed(layout, &homes(layout, entries, keys)) as f64 / keys as f64;
            assert!(
                rate <= most,
                "{layout} {alpha}: more than there is room for"
            );
            assert!(most - rate < CLOSE, "{layout} {alpha}: {rate}, not {most}");
        }
    }
}

/// Two independent buckets: there is no fast exact placement, but large tables hardly differ.
#[test]
fn cuckoo_lite_comes_to_hold_what_the_theory_says() {
    let entries = 1_u64 << if soak() > 1 { 20 } else { 18 };
    for alpha in ALPHAS {
        // The nearer to the threshold, the longer the random walks to the last free slots.
        let rounds = if alpha <= 1.0 { 200.0 } else { 40.0 / alpha };
        let config = Config::new(entries)
            .layout(Layout::CuckooLite)
            .eviction(Eviction::Lru);
        let mut cache = config.entry(Entry::Hash64).seed(1).build().unwrap();
        let keys = (alpha * entries as f64) as u64;
        fill(&mut cache, keys, rounds);
        let rate = measured(&mut cache, keys);
        let theory = theory::hit_rate(Layout::CuckooLite, alpha);
        assert!(
            (rate - theory).abs() < CLOSE,
            "{alpha}: {rate}, not {theory}"
        );
    }
}

fn warm(layout: Layout, eviction: Eviction) -> (f64, f64) {
    let entries = 1_u64 << if soak() > 1 { 18 } else { 14 };
    let keys = (0.95 * entries as f64) as u64;
    let config = Config::new(entries).layout(layout).eviction(eviction);
    let mut cache = config.entry(Entry::Hash64).seed(1).build().unwrap();
    let rounds = theory::warm_up_rounds(layout, eviction);
    fill(&mut cache, keys, f64::from(rounds));
    let most = if layout.is_consecutive() {
        placed(layout, &homes(layout, entries, keys)) as f64 / keys as f64
    } else {
        theory::hit_rate(layout, 0.95)
    };
    (measured(&mut cache, keys), most)
}

#[test]
fn tables_are_warm_after_the_rounds_that_are_said() {
    for layout in Layout::ALL {
        for eviction in [Eviction::Random, Eviction::RandomSecond, Eviction::Lru] {
            if !eviction.suits(layout) {
                continue;
            }
            let (rate, most) = warm(layout, eviction);
            if (layout, eviction) == (Layout::CuckooLite, Eviction::RandomSecond) {
                assert!(
                    (0.015..0.022).contains(&(most - rate)),
                    "{rate}, not {most}"
                );
            } else {
                assert!(
                    most - rate < 0.005,
                    "{layout} {eviction}: {rate}, not {most}"
                );
            }
        }
    }
}
