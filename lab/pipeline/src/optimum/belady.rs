//! An eviction that knows the requests to come (Belady, 1966): of a key's candidates, and of the new key, the one is not
//! kept whose next request is latest.
//!
//! Where a key has one bucket, or any slot, no policy has more hits. Where buckets overlap the choice of the bucket
//! matters, too, and this one is greedy, as all evictions of the library are: LRU, too, is that of the candidates.

use std::collections::BTreeSet;

use super::places::Places;

/// The position of a request that never comes.
const NEVER: u32 = u32::MAX;
/// No key.
const NONE: u32 = u32::MAX;

/// For each request whether it hits, in a table that is empty at first. Requests are numbers of keys, which `hashes` has
/// the hashes of.
///
/// Panics if there are 2^32 - 1 requests or keys.
pub fn hits(places: &Places, hashes: &[u64], requests: &[u32]) -> Vec<bool> {
    let next = next_requests(requests, hashes.len());
    match places.is_anywhere() {
        true => anywhere(places.slots(), &next, (requests, hashes.len())),
        false => among_candidates(places, hashes, requests, &next),
    }
}

/// For each request the position of the next one for the same key.
fn next_requests(requests: &[u32], keys: usize) -> Vec<u32> {
    assert!(requests.len() < NEVER as usize && keys < NONE as usize);
    let mut next = vec![NEVER; requests.len()];
    let mut later = vec![NEVER; keys];
    for (position, &key) in requests.iter().enumerate().rev() {
        next[position] = std::mem::replace(&mut later[key as usize], position as u32);
    }
    next
}

/// A slot's key and its next request; an empty one is never requested.
#[derive(Clone, Copy)]
struct Held {
    key: u32,
    next: u32,
}

fn among_candidates(places: &Places, hashes: &[u64], requests: &[u32], next: &[u32]) -> Vec<bool> {
    let slots = places.slots();
    let empty = Held {
        key: NONE,
        next: NEVER,
    };
    let mut table = vec![empty; places.buckets() * slots];
    let request = |(&key, &next): (&u32, &u32)| {
        // The candidate to give up if the key is not there: an empty slot, else the one that is requested last.
        let mut victim: Option<usize> = None;
        for bucket in places.of_key(hashes[key as usize]) {
            for slot in bucket * slots..(bucket + 1) * slots {
                let held = table[slot];
                if held.key == key {
                    table[slot].next = next;
                    return true;
                }
                let order = |slot: usize| (table[slot].key == NONE, table[slot].next);
                if victim.is_none_or(|other| order(slot) > order(other)) {
                    victim = Some(slot);
                }
            }
        }
        if let Some(victim) = victim
            && (table[victim].key == NONE || next < table[victim].next)
        {
            table[victim] = Held { key, next };
        }
        false
    };
    requests.iter().zip(next).map(request).collect()
}

/// The same where any key may be in any slot.
fn anywhere(slots: usize, next: &[u32], (requests, keys): (&[u32], usize)) -> Vec<bool> {
    // The next request of each key that is held, and the same keys by it.
    let mut held = vec![None; keys];
    let mut latest: BTreeSet<(u32, u32)> = BTreeSet::new();
    let request = |(&key, &next): (&u32, &u32)| {
        let before = held[key as usize].replace(next);
        if let Some(now) = before {
            latest.remove(&(now, key));
        }
        latest.insert((next, key));
        if latest.len() > slots
            && let Some((_, victim)) = latest.pop_last()
        {
            held[victim as usize] = None;
        }
        before.is_some()
    };
    requests.iter().zip(next).map(request).collect()
}

#[cfg(test)]
mod tests {
    use nuthatch_base::hash::KeyHasher;
    use nuthatch_flow::Layout;
    use nuthatch_workload::Seed;
    use rand::Rng;

    use super::*;

    fn count(hits: &[bool]) -> usize {
        hits.iter().filter(|hit| **hit).count()
    }

    /// The most hits that any sequence of decisions has in one bucket of `slots` slots.
    fn most(requests: &[u32], held: &[u32], slots: usize) -> usize {
        let [key, rest @ ..] = requests else { return 0 };
        if held.contains(key) {
            return 1 + most(rest, held, slots);
        }
        let mut best = most(rest, held, slots);
        let mut kept = held.to_vec();
        kept.push(*key);
        if kept.len() <= slots {
            return best.max(most(rest, &kept, slots));
        }
        for victim in 0..slots {
            let mut kept = kept.clone();
            kept.swap_remove(victim);
            best = best.max(most(rest, &kept, slots));
        }
        best
    }

    #[test]
    fn no_sequence_of_decisions_has_more_hits() {
        let mut random = Seed(3).thread(0);
        for _ in 0..40 {
            let requests: Vec<u32> = (0..11).map(|_| random.random_range(0..5)).collect();
            let found = count(&hits(&Places::anywhere(2), &[0; 5], &requests));
            assert_eq!(found, most(&requests, &[], 2), "{requests:?}");
        }
    }

    /// One bucket of four, by both ways.
    #[test]
    fn a_bucket_is_a_small_table_without_a_layout() {
        let mut random = Seed(4).thread(0);
        let requests: Vec<u32> = (0..3000).map(|_| random.random_range(0..20)).collect();
        // All hashes are of one bucket, with different tags.
        let hashes: Vec<u64> = (0..20).map(|key| (key + 1) << 48).collect();
        let bucket = hits(&Places::of(Layout::FourWay, 0), &hashes, &requests);
        let table = hits(&Places::anywhere(4), &hashes, &requests);
        assert_eq!(count(&bucket), count(&table));
        assert!(count(&bucket) > 600);
    }

    #[test]
    fn it_has_more_hits_than_lru_among_the_candidates() {
        let hasher = KeyHasher::seeded(1);
        let hashes: Vec<u64> = (0..1000_u64)
            .map(|key| hasher.hash(&key.to_le_bytes()))
            .collect();
        let mut random = Seed(5).thread(0);
        // Some keys are requested more than others.
        let requests: Vec<u32> = (0..20_000)
            .map(|_| random.random_range(0..1000_u32) * random.random_range(0..1000) / 1000)
            .collect();
        for layout in Layout::ALL {
            let config = nuthatch_flow::Config::new(256).layout(layout);
            let mut cache = config
                .eviction(nuthatch_flow::Eviction::Lru)
                .entry(nuthatch_flow::Entry::Hash64)
                .build()
                .unwrap();
            let mut lru = 0;
            for &key in &requests {
                let hash = hashes[key as usize];
                match cache.lookup(hash) {
                    Some(_) => lru += 1,
                    None => drop(cache.insert(hash, 1)),
                }
            }
            let belady = count(&hits(&Places::of(layout, 256), &hashes, &requests));
            assert!(belady > lru, "{layout}: {belady} and {lru}");
        }
    }
}
