//! The most frequent keys and prefixes of requests: `stats hotkeys`.
//!
//! Each worker samples one of about 256 requests and counts keys by Space-Saving (Metwally, Agrawal, El Abbadi, ICDT
//! 2005): there is a fixed number of counters, and a key without one takes over the smallest, whose count becomes the
//! key's possible error. So a key of more than a 128th of the sampled requests certainly has a counter, and the memory
//! is bounded whatever the requests are. Counts are halved from time to time, so that keys that were hot an hour ago
//! are forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{Key, KeyHasher, Request};

use crate::telemetry::Report;
use crate::telemetry::watch::line;

/// Requests between two samples, on average. A power of two.
const EVERY: usize = 256;

/// The number of a worker's counters for keys, and for prefixes.
const COUNTERS: usize = 128;

/// Counts are halved when their sum is this.
const HALVED_AT: u32 = 1 << 14;

/// The most keys that a report shows, and the most prefixes.
const NAMED: usize = 20;

/// Smaller counts have no significance.
const COUNT_MIN: u32 = 4;

/// Ends a prefix, as in `stats detail`.
const DELIMITER: u8 = b':';

/// The samples of one worker, which alone adds to them.
#[derive(Default)]
pub struct Hot {
    /// Requests left to skip before the next sample.
    left: AtomicUsize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    keys: SpaceSaving,
    prefixes: SpaceSaving,
    /// The state of the generator of gaps.
    random: u32,
}

impl Hot {
    /// Samples some of these requests.
    #[inline]
    pub fn look(&self, requests: &[Request<'_>], hasher: &KeyHasher) {
        // Relaxed, here and below: only the worker itself reads and writes it.
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(requests.len()) {
            Some(rest) => self.left.store(rest, Ordering::Relaxed),
            None => self.count(left, requests, hasher),
        }
    }

    /// Counts the request at `next`, and later samples.
    #[cold]
    fn count(&self, mut next: usize, requests: &[Request<'_>], hasher: &KeyHasher) {
        let mut counts = self.counts.lock();
        while let Some(request) = requests.get(next) {
            counts.count(&request.key, hasher);
            next += 1 + counts.gap();
        }
        self.left.store(next - requests.len(), Ordering::Relaxed);
    }

    /// `stats reset`.
    pub fn reset(&self) {
        let mut counts = self.counts.lock();
        counts.keys = SpaceSaving::default();
        counts.prefixes = SpaceSaving::default();
    }
}

impl Counts {
    fn count(&mut self, key: &Key<'_>, hasher: &KeyHasher) {
        // Of a long key its front counts.
        let key = match key.bytes().get(..KEY_LEN_MAX) {
            Some(front) => &Key::new(front, hasher),
            None => key,
        };
        self.keys.count(key);
        let end = key.bytes().iter().position(|&byte| byte == DELIMITER);
        if let Some(end) = end.filter(|&end| end > 0) {
            let prefix = Key::new(&key.bytes()[..end], hasher);
            self.prefixes.count(&prefix);
        }
    }

    /// The requests to skip: a random number, because clients send in rhythms. Less than twice [`EVERY`].
    fn gap(&mut self) -> usize {
        // A linear congruential generator: its upper bits are good enough for gaps.
        let next = self.random.wrapping_mul(1_664_525);
        self.random = next.wrapping_add(1_013_904_223);
        (self.random >> 16) as usize % (2 * EVERY - 1)
    }
}

/// Counters of the most frequent words of a sequence.
#[derive(Default)]
struct SpaceSaving {
    counters: Vec<Counter>,
    /// The sum of all counts, halved when the counters are.
    sum: u32,
}

struct Counter {
    hash: u64,
    word: Vec<u8>,
    count: u32,
    /// The part of the count that may belong to other words.
    error: u32,
}

impl SpaceSaving {
    fn count(&mut self, key: &Key<'_>) {
        self.sum += 1;
        if self.sum == HALVED_AT {
            self.halve();
        }
        let same = |counter: &&mut Counter| {
            counter.hash == key.hash() && counter.word.as_slice() == key.bytes()
        };
        if let Some(counter) = self.counters.iter_mut().find(same) {
            counter.count += 1;
        } else if self.counters.len() < COUNTERS {
            self.counters.push(Counter {
                hash: key.hash(),
                word: key.bytes().to_vec(),
                count: 1,
                error: 0,
            });
        } else if let Some(least) = self.counters.iter_mut().min_by_key(|least| least.count) {
            least.hash = key.hash();
            least.word.clear();
            least.word.extend_from_slice(key.bytes());
            least.error = least.count;
            least.count += 1;
        }
    }

    fn halve(&mut self) {
        self.sum /= 2;
        for counter in &mut self.counters {
            counter.count /= 2;
            counter.error /= 2;
        }
        self.counters.retain(|counter| counter.count > 0);
    }
}

/// A word with its counts of all workers.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// The bounds of its count.
    least: u32,
    most: u32,
}

/// The words with the largest counts, the largest first, and the sum of all counts.
fn largest<'c>(workers: impl Iterator<Item = &'c SpaceSaving>) -> (Vec<(&'c [u8], Counted)>, u32) {
    let mut words: HashMap<&[u8], Counted> = HashMap::new();
    let mut sum = 0;
    for worker in workers {
        sum += worker.sum;
        for counter in &worker.counters {
            let counted = words.entry(&counter.word).or_default();
            counted.least += counter.count - counter.error;
            counted.most += counter.count;
        }
    }
    words.retain(|_, counted| counted.least >= COUNT_MIN);
    let mut words: Vec<_> = words.into_iter().collect();
    // Names break ties, so that lines keep their order.
    words.sort_by(|one, other| other.1.least.cmp(&one.1.least).then(one.0.cmp(other.0)));
    words.truncate(NAMED);
    (words, sum)
}

/// `stats hotkeys`: each key's share of the requests, in percent: at least and at most.
pub fn report<'h>(report: &mut Report<'_, '_>, workers: impl Iterator<Item = &'h Hot>) {
    let counts: Vec<_> = workers.map(|worker| worker.counts.lock()).collect();
    let keys = largest(counts.iter().map(|counts| &counts.keys));
    let prefixes = largest(counts.iter().map(|counts| &counts.prefixes));
    let all = keys.1;
    report.line("looked_at", all);
    for (kind, (words, _)) in [("key", keys), ("prefix", prefixes)] {
        for (index, (word, counted)) in words.into_iter().enumerate() {
            let percent = |count: u32| f64::from(count) * 100.0 / f64::from(all.max(1));
            let mut name = Vec::new();
            line::key(&mut name, word);
            let name = String::from_utf8_lossy(&name);
            report.line(&format!("{kind}:{}", index + 1), name);
            let (least, most) = (percent(counted.least), percent(counted.most));
            report.line(
                &format!("{kind}:{}:percent", index + 1),
                format_args!("{least:.2}"),
            );
            report.line(
                &format!("{kind}:{}:percent_max", index + 1),
                format_args!("{most:.2}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_engine::Op;

    fn look(hot: &Hot, hasher: &KeyHasher, batch: usize, keys: impl Iterator<Item = String>) {
        let keys: Vec<String> = keys.collect();
        for some in keys.chunks(batch) {
            let requests: Vec<_> = some
                .iter()
                .map(|key| Request {
                    key: Key::new(key.as_bytes(), hasher),
                    op: Op::Get,
                })
                .collect();
            hot.look(&requests, hasher);
        }
    }

    fn reported(workers: &[Hot]) -> HashMap<String, String> {
        let mut lines = HashMap::new();
        let mut sink = |name: &str, value: &str| {
            lines.insert(name.to_owned(), value.to_owned());
        };
        report(&mut Report::new(&mut sink), workers.iter());
        lines
    }

    #[test]
    fn a_hot_key_is_found_among_many_at_its_share() {
        let hasher = KeyHasher::seeded(1);
        for batch in [1, 7, 64, 1000] {
            let workers = [Hot::default(), Hot::default()];
            // A tenth of all requests is for one key, in a rhythm. All other keys differ.
            let keys = (0..400_000).map(|number| match number % 10 {
                0 => "user:7".to_owned(),
                _ => format!("page:{number}"),
            });
            look(&workers[batch % 2], &hasher, batch, keys);
            let found = reported(&workers);
            let number = |name: &str| found[name].parse::<f64>().unwrap();
            let looked_at = number("looked_at");
            assert!((1250.0..1900.0).contains(&looked_at), "{looked_at}");
            assert_eq!(found["key:1"], "user%3A7");
            assert!(!found.contains_key("key:2"), "{found:?}");
            assert!((8.0..12.0).contains(&number("key:1:percent")), "{found:?}");
            assert!(number("key:1:percent_max") >= number("key:1:percent"));
            assert_eq!(
                (found["prefix:1"].as_str(), found["prefix:2"].as_str()),
                ("page", "user")
            );
            assert!((88.0..92.0).contains(&number("prefix:1:percent")));
        }
    }

    #[test]
    fn what_was_hot_is_forgotten() {
        let hasher = KeyHasher::seeded(1);
        let hot = [Hot::default()];
        let often = |word: &'static str| (0..8_000_000).map(move |_| word.to_owned());
        look(&hot[0], &hasher, 64, often("old"));
        look(&hot[0], &hasher, 64, often("new"));
        let found = reported(&hot);
        assert_eq!(
            (found["key:1"].as_str(), found["key:2"].as_str()),
            ("new", "old")
        );
        assert!(found["looked_at"].parse::<u32>().unwrap() < HALVED_AT);
        hot[0].reset();
        assert_eq!(super::tests::reported(&hot)["looked_at"], "0");
    }

    #[test]
    fn the_memory_is_bounded() {
        let hasher = KeyHasher::seeded(1);
        let hot = Hot::default();
        let keys = (0..100_000).map(|number| format!("{number:0200}:{number}"));
        look(&hot, &hasher, 10, keys);
        let counts = hot.counts.lock();
        for words in [&counts.keys, &counts.prefixes] {
            assert_eq!(words.counters.len(), COUNTERS);
            let bytes: usize = words
                .counters
                .iter()
                .map(|counter| counter.word.capacity())
                .sum();
            assert!(bytes <= COUNTERS * 2 * KEY_LEN_MAX);
        }
    }
}
