//! Tests that the rival behaves as a cache: its values are right, and it is never fuller than its limit.
#![cfg(feature = "rte-hash")]

use nuthatch_rte_hash::{Eviction, RteHash};

const ENTRIES: u32 = 4096;
const ROOM: u32 = RteHash::room_for(ENTRIES);

/// Well mixed, as a real hash: SplitMix64.
fn hash(flow: u64) -> u64 {
    let mut mixed = (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn it_is_a_cache() {
    for eviction in [Eviction::Oldest, Eviction::Random] {
        let mut table = RteHash::new(ENTRIES, ROOM, eviction).expect("a table");
        let flows: Vec<u64> = (0..3 * u64::from(ENTRIES)).collect();
        let hashes: Vec<u64> = flows.iter().map(|&flow| hash(flow)).collect();
        for (&flow, &hash) in flows.iter().zip(&hashes) {
            table.insert(flow, hash, flow * 7);
        }
        let mut values = vec![0; flows.len()];
        let mut hits = vec![0; flows.len().div_ceil(64)];
        let found = table.lookup_many(&flows, &hashes, &mut values, &mut hits);
        let hit = |at: usize| hits[at / 64] >> (at % 64) & 1 == 1;
        let right = (0..flows.len()).filter(|&at| hit(at) && values[at] == flows[at] * 7);
        assert_eq!(right.count(), found, "{eviction:?}");
        assert!(found <= ROOM as usize, "{eviction:?}: {found}");
        // A search for a path of moves may fail, and then more than one key is evicted for a new one.
        assert!(found > ROOM as usize * 15 / 16, "{eviction:?}: {found}");
        if eviction == Eviction::Oldest {
            assert!(hit(flows.len() - 1), "the newest left");
            assert!(!hit(0), "the oldest stayed");
        }
    }
}
