//! The server's answer, parsed and checked.

use std::collections::{BTreeMap, HashMap};

use nuthatch_base::spread::{Histogram, Perfect};

use super::target::Target;
use nuthatch_program::Failure;

/// Slots of a bucket and bits of a tag that an index can have.
const SLOTS_MAX: u64 = 64;
const TAG_BITS_MAX: u64 = 64;

/// Counts since the server's start or its last `stats reset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searches {
    /// Searches that found their key.
    pub hits: u64,
    /// Searches that did not.
    pub misses: u64,
    /// Objects that the hits examined.
    pub searched_hit: u64,
    /// Objects that the misses examined.
    pub searched_miss: u64,
}

impl Searches {
    /// Objects a hit; `None` if there was none.
    pub fn per_hit(&self) -> Option<f64> {
        (self.hits > 0).then(|| self.searched_hit as f64 / self.hits as f64)
    }

    /// Objects a miss, likewise.
    pub fn per_miss(&self) -> Option<f64> {
        (self.misses > 0).then(|| self.searched_miss as f64 / self.misses as f64)
    }

    /// The counts since an earlier look; `None` if the counters were reset between.
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            hits: self.hits.checked_sub(before.hits)?,
            misses: self.misses.checked_sub(before.misses)?,
            searched_hit: self.searched_hit.checked_sub(before.searched_hit)?,
            searched_miss: self.searched_miss.checked_sub(before.searched_miss)?,
        })
    }
}

/// The buckets that were examined.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Buckets of the whole index.
    pub all: u64,
    /// Slots of each, if they have slots; else each begins a chain.
    pub slots: Option<u64>,
    /// Sizes of the buckets that were examined.
    pub seen: Histogram,
    /// The expected values of a perfect hash for them.
    pub perfect: Perfect,
    /// Sizes for which there were too many lines.
    pub left_out: u64,
}

impl Buckets {
    /// True if not all were examined.
    pub fn is_sample(&self) -> bool {
        self.seen.buckets() < self.all
    }
}

/// One look at a server.
#[derive(Clone, Debug)]
pub struct View {
    /// The engine's name.
    pub engine: String,
    /// Items in the index.
    pub items: u64,
    /// Searches of it.
    pub searches: Searches,
    /// Tags that matched though the key did not.
    pub false_tags: u64,
    /// Reads that were retried after a concurrent change.
    pub read_retries: u64,
    /// Items moved by inserts.
    pub displacements: u64,
    /// At `n`, inserts that moved `n + 1` items; at the end also more.
    pub path_lengths: Vec<u64>,
    /// The index's buckets, if the engine shows them.
    pub buckets: Option<Buckets>,
}

impl View {
    /// Reads an answer. Errors: something is missing, or no number.
    pub fn read(pairs: &[(String, String)], target: &Target) -> Result<Self, Failure> {
        let stats = pairs.iter().map(|(name, value)| (&**name, &**value));
        let stats = Stats {
            values: stats.collect(),
            target,
        };
        let engine: String = stats.text("engine")?.chars().take(40).collect();
        let engine = engine.escape_debug().to_string();
        let path_lengths = (1..)
            .map_while(|length| stats.optional(&format!("path_length:{length}")).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Self {
            engine,
            items: stats.number("items")?,
            searches: Searches {
                hits: stats.number("lookup_hits")?,
                misses: stats.number("lookup_misses")?,
                searched_hit: stats.number("searched_hit")?,
                searched_miss: stats.number("searched_miss")?,
            },
            false_tags: stats.number("false_tags")?,
            read_retries: stats.number("read_retries")?,
            displacements: stats.number("displacements")?,
            path_lengths,
            buckets: match stats.optional("buckets")? {
                Some(all) => Some(stats.buckets(all)?),
                None => None,
            },
        })
    }
}

/// An answer, by name.
struct Stats<'a> {
    values: HashMap<&'a str, &'a str>,
    target: &'a Target,
}

impl Stats<'_> {
    fn wrong(&self, words: &str) -> Failure {
        let target = self.target;
        Failure::run(format!("{target}: `stats hash` {words}: another version?"))
    }

    fn text(&self, name: &str) -> Result<&str, Failure> {
        let value = self.values.get(name).copied();
        value.ok_or_else(|| self.wrong(&format!("lacks `{name}`")))
    }

    fn optional(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(value) = self.values.get(name) else {
            return Ok(None);
        };
        // Sums of a few such numbers must not overflow: no count of a real server is near this bound.
        let number = value.parse().ok().filter(|&number: &u64| number >> 62 == 0);
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(&format!("has no number for `{name}`"))),
        }
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let number = self.optional(name)?;
        number.ok_or_else(|| self.wrong(&format!("lacks `{name}`")))
    }

    fn buckets(&self, all: u64) -> Result<Buckets, Failure> {
        let sizes = self.values.keys().filter_map(|name| {
            let size = name.strip_prefix("size:")?.strip_suffix(":buckets")?;
            Some((size.parse::<u64>().ok()?, *name))
        });
        let mut by_size = BTreeMap::new();
        for (size, name) in sizes {
            by_size.insert(size, self.number(name)?);
        }
        // The sums of all items and buckets must not overflow.
        let items = by_size.iter().try_fold(0_u64, |sum, (&size, &buckets)| {
            size.checked_mul(buckets)?.checked_add(sum)
        });
        let looked_at = self.number("buckets_sampled")?;
        let counted = by_size
            .values()
            .try_fold(0_u64, |sum, &more| sum.checked_add(more));
        let left_out = self.number("sizes_left_out")?;
        let fits = counted.is_some_and(|counted| counted == looked_at || left_out > 0);
        let (Some(items), true) = (items, fits) else {
            return Err(self.wrong("has sizes that do not add up"));
        };
        let seen = Histogram::of_sizes(by_size);
        let slots = self.optional("bucket_slots")?;
        let perfect = match slots {
            None => Perfect::of(items, seen.buckets()),
            Some(slots @ 1..=SLOTS_MAX) => {
                let tag_bits = self.number("tag_bits")?.min(TAG_BITS_MAX) as u32;
                Perfect::in_slots(items, seen.buckets(), slots, tag_bits)
            }
            Some(_) => return Err(self.wrong("has buckets without sense")),
        };
        Ok(Buckets {
            all,
            slots,
            seen,
            perfect,
            left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "engine cuckoo\nitems 3\nlookup_hits 2\nlookup_misses 1\n\
        searched_hit 2\nsearched_miss 0\nfalse_tags 0\nread_retries 0\ndisplacements 0\n\
        path_length:1 5\npath_length:2 1\nbuckets 8\nbuckets_sampled 4\nbucket_slots 8\n\
        tag_bits 16\nsize:0:buckets 2\nsize:1:buckets 1\nsize:2:buckets 1\nsizes_left_out 0";

    fn read(answer: &str) -> Result<View, Failure> {
        let pairs = answer.lines().filter_map(|line| line.split_once(' '));
        let pairs: Vec<_> = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        View::read(&pairs, &Target::Tcp("here:1".into()))
    }

    #[test]
    fn an_answer_is_read() {
        let view = read(ANSWER).unwrap();
        assert_eq!((view.items, &*view.path_lengths), (3, &[5, 1][..]));
        assert_eq!(view.searches.per_hit(), Some(1.0));
        let buckets = view.buckets.unwrap();
        assert!(buckets.is_sample());
        assert_eq!((buckets.seen.items(), buckets.slots), (3, Some(8)));
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        for (from, to, why) in [
            ("engine cuckoo", "motor cuckoo", "lacks `engine`"),
            ("items 3", "items many", "no number for `items`"),
            (
                "items 3",
                "items 99999999999999999999",
                "no number for `items`",
            ),
            ("size:1:buckets 1", "size:1:buckets 2", "do not add up"),
            ("size:2:", "size:18446744073709551615:", ""),
            (
                "size:2:buckets 1",
                "size:9223372036854775807:buckets 4611686018427387903",
                "do not add up",
            ),
            ("bucket_slots 8", "bucket_slots 0", "without sense"),
            ("bucket_slots 8", "bucket_slots 4000000000", "without sense"),
        ] {
            let answer = ANSWER.replace(from, to);
            match read(&answer) {
                Ok(_) => assert!(why.is_empty(), "{to}"),
                Err(Failure::Run(words)) => assert!(words.contains(why), "{to}: {words}"),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}
