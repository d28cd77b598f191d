//! Keys that are used several times at once, and then never again, must not push out a working set: at least what LRU
//! keeps of it stays.
//!
//! Class: a burst that counts for the items that it touches, or against those that it does not touch.

use std::collections::{HashMap, VecDeque};

use nuthatch::Cache;

const LIMIT: usize = 2 << 20;

/// The LRU that the cache is compared with pays for what a real cache has besides keys and values: so much for an item
/// (header, index, ghosts, the rest of a word), and one part in `SPARE` of the memory (bits, a page that is free).
const OVERHEAD: usize = 36;
const SPARE: usize = 32;

/// What a burst does with a new key.
#[derive(Clone, Copy, Debug)]
enum Burst {
    /// It is stored, and read twice.
    Reads,
    /// It is stored three times.
    Writes,
    /// The same, each time in another length.
    Lengths,
    /// It is stored, read, and stored again, twice.
    Changes,
}

const BURSTS: [Burst; 4] = [Burst::Reads, Burst::Writes, Burst::Lengths, Burst::Changes];

/// Requests for popular keys, with bursts between them.
#[derive(Clone, Copy, Debug)]
struct Mix {
    burst: Burst,
    /// Bursts of a hundred steps.
    share: u64,
    /// The number of popular keys at first and at last.
    keys: [f64; 2],
    /// The length of each value is that of its key: one of these.
    lens: &'static [usize],
}

/// A small generator of random numbers: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of so many keys, about by Zipf's law with an exponent of 0.9.
    fn popular(&mut self, keys: f64) -> usize {
        (keys.powf(0.1) * self.unit()).powi(10) as usize
    }
}

/// A cache: LRU, or ours.
trait Held {
    fn get(&mut self, key: &str) -> bool;
    fn set(&mut self, key: &str, len: usize);
}

impl Held for Cache {
    fn get(&mut self, key: &str) -> bool {
        Cache::get(self, key).is_some()
    }

    fn set(&mut self, key: &str, len: usize) {
        self.insert(key, vec![1; len]).expect("there is room");
    }
}

/// Exact LRU by bytes.
#[derive(Default)]
struct Lru {
    /// The size of each item, and the number of its last use.
    items: HashMap<String, (usize, u64)>,
    /// All uses, the oldest first: those that are not their item's last mean nothing.
    uses: VecDeque<(String, u64)>,
    used: usize,
    now: u64,
}

impl Lru {
    fn use_now(&mut self, key: &str) {
        self.now += 1;
        self.uses.push_back((key.to_owned(), self.now));
    }
}

impl Held for Lru {
    fn get(&mut self, key: &str) -> bool {
        if !self.items.contains_key(key) {
            return false;
        }
        self.use_now(key);
        self.items.get_mut(key).expect("it is there").1 = self.now;
        true
    }

    fn set(&mut self, key: &str, len: usize) {
        let bytes = OVERHEAD + key.len() + len;
        self.use_now(key);
        let old = self.items.insert(key.to_owned(), (bytes, self.now));
        self.used += bytes;
        self.used -= old.map_or(0, |(bytes, _)| bytes);
        while self.used > LIMIT - LIMIT / SPARE {
            let (key, when) = self.uses.pop_front().expect("each item was used");
            if let Some(&(bytes, last)) = self.items.get(&key)
                && last == when
            {
                self.items.remove(&key);
                self.used -= bytes;
            }
        }
    }
}

/// The share of the reads of popular keys that hit.
fn hits(mix: &Mix, cache: &mut impl Held) -> f64 {
    const STEPS: usize = 100_000;
    let (mut random, mut hits, mut reads) = (Random(0x9e37_79b9_7f4a_7c15), 0, 0);
    for step in 0..STEPS {
        if random.next() % 100 < mix.share {
            burst(mix, cache, step);
            continue;
        }
        let over = step as f64 / STEPS as f64;
        let number = random.popular(mix.keys[0] * (mix.keys[1] / mix.keys[0]).powf(over));
        let key = format!("popular{number:010}");
        let hit = cache.get(&key);
        if !hit {
            cache.set(&key, mix.lens[number % mix.lens.len()]);
        }
        if step > STEPS / 3 {
            reads += 1;
            hits += u32::from(hit);
        }
    }
    f64::from(hits) / f64::from(reads)
}

fn burst(mix: &Mix, cache: &mut impl Held, number: usize) {
    let (key, len) = (
        format!("once{number:010}"),
        mix.lens[number % mix.lens.len()],
    );
    match mix.burst {
        Burst::Reads => {
            cache.set(&key, len);
            assert!(cache.get(&key) && cache.get(&key));
        }
        Burst::Writes => (0..3).for_each(|_| cache.set(&key, len)),
        Burst::Lengths => (0..3).for_each(|more| cache.set(&key, len + 16 * more)),
        Burst::Changes => {
            cache.set(&key, len);
            for more in 0..2 {
                assert!(cache.get(&key));
                cache.set(&key, len + 16 * more);
            }
        }
    }
}

#[test]
fn bursts_push_out_no_more_than_under_lru() {
    let plain = Mix {
        burst: Burst::Reads,
        share: 30,
        keys: [25_000.0; 2],
        lens: &[200],
    };
    let mut mixes: Vec<Mix> = BURSTS.map(|burst| Mix { burst, ..plain }).into();
    for burst in [Burst::Reads, Burst::Writes] {
        let plain = Mix { burst, ..plain };
        mixes.extend([10, 60].map(|share| Mix { share, ..plain }));
        let keys = [
            [8_000.0; 2],
            [80_000.0; 2],
            [1_500.0, 25_000.0],
            [25_000.0, 1_500.0],
        ];
        mixes.extend(keys.map(|keys| Mix { keys, ..plain }));
        let lens: [&[usize]; 3] = [&[30], &[1000], &[50, 200, 200, 1000, 4000]];
        mixes.extend(lens.map(|lens| Mix { lens, ..plain }));
    }
    for mix in mixes {
        let builder = Cache::builder().memory_limit(LIMIT).hash_seed(5);
        let ours = hits(&mix, &mut builder.build().unwrap());
        let least = hits(&mix, &mut Lru::default());
        // A hundredth, since the costs of an item are not exactly those of the LRU.
        assert!(
            ours + 0.01 > least,
            "{ours:.4}, and LRU {least:.4}, of {mix:?}"
        );
    }
}
