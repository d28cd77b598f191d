//! The configuration of evictions: which entry is replaced when all candidates are taken, and what a
//! hit changes. The algorithms are in `policy.rs`.
//!
//! The bubble evictions use the order of the slots in a bucket as the order of recency, without extra
//! bits; slot 0 is the first. A hit swaps an entry with the one before it. Entries never move to
//! another bucket: a table that stores only tags does not know an entry's other bucket.
//!
//! ```text
//! hit on c:      [a b c d] -> [a c b d]        (with the swap probability)
//! insert e:      [a b c d] -> [a b c e]        InsertAt::Last
//!                [a b c d] -> [a b e c]        InsertAt::SecondToLast
//! ```

use std::fmt;
use std::str::FromStr;

use crate::layout::Layout;
use crate::name::UnknownName;

/// Which entry is replaced when all candidates of a key are taken, for tables chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Eviction {
    /// A random candidate.
    #[default]
    Random,
    /// A random slot of the second bucket. With bounded linear probing this reaches the hit rate of
    /// [`Eviction::Random`] on uniform traffic in a fifth of the time; with cuckoo-lite it stays .018
    /// below (tests/theory.rs). Needs two buckets.
    RandomSecond,
    /// The least recently used candidate, as a reference. 8 more bytes a slot, written on every hit. Not
    /// for shared tables.
    Lru,
    /// A hit always moves an entry up; the last entry of a random bucket is replaced by the new one.
    Bubble,
    /// Probabilistic Bubble LRU (section 5.3): a hit moves an entry up with a probability; the last
    /// entry of a random bucket is evicted.
    Pblru {
        /// Where in the bucket a new key is inserted.
        insert: InsertAt,
        /// The probability that a hit moves an entry up.
        swap: Probability,
    },
    /// Divide-and-conquer bubble (Zhang and Xue, ICS 2009): a hit always moves an entry up and sets its
    /// bucket's flag. In a random bucket the last entry is evicted if the flag is set, which clears it,
    /// and the first one if not: the entries of a bucket without hits are old. A new key is inserted
    /// last. One flag for each bucket. Not for shared tables. Only the paper's abstract is public, so the
    /// use of the flag is a guess; it gains less than strict LRU (tests/eviction.rs).
    DcBubble,
}

impl Eviction {
    /// One of each kind, and both [`Eviction::PBLRU`] and [`Eviction::PBLRU_AUTHORS`].
    pub const ALL: [Eviction; 7] = [
        Eviction::Random,
        Eviction::RandomSecond,
        Eviction::Lru,
        Eviction::Bubble,
        Eviction::PBLRU,
        Eviction::PBLRU_AUTHORS,
        Eviction::DcBubble,
    ];

    /// PBLRU with the most hits: new keys are inserted last, every hit moves up. The same as
    /// [`Eviction::Bubble`].
    pub const PBLRU: Eviction = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::ALWAYS,
    };

    /// PBLRU as in its authors' code: new keys are inserted second to last, every hit moves up. One point
    /// less of hit rate on skewed flows, ten points less under a scan, and a third of a point more if one
    /// packet in fifty is the first of a flow.
    pub const PBLRU_AUTHORS: Eviction = Eviction::Pblru {
        insert: InsertAt::SecondToLast,
        swap: Probability::ALWAYS,
    };

    /// PBLRU for tables that threads share: new keys are inserted last, one hit in four writes. This costs
    /// half a point of hit rate on skewed flows, and more if flows are short.
    pub const PBLRU_SHARED: Eviction = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::QUARTER,
    };

    /// Its name, without PBLRU's parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Eviction::Random => "random",
            Eviction::RandomSecond => "random-second",
            Eviction::Lru => "lru",
            Eviction::Bubble => "bubble",
            Eviction::Pblru { .. } => "pblru",
            Eviction::DcBubble => "dc-bubble",
        }
    }

    /// True if it works on this layout.
    pub const fn suits(self, layout: Layout) -> bool {
        match self {
            Eviction::Random | Eviction::Lru => true,
            Eviction::RandomSecond => layout.buckets() == 2,
            Eviction::Bubble | Eviction::Pblru { .. } | Eviction::DcBubble => layout.slots() > 1,
        }
    }

    /// True if threads can share a table with this eviction.
    pub const fn suits_shared(self) -> bool {
        !matches!(self, Eviction::Lru | Eviction::DcBubble)
    }

    /// The probability that a hit swaps an entry with the one before it, if hits do so.
    pub(crate) const fn swap(self) -> Option<Probability> {
        match self {
            Eviction::Random | Eviction::RandomSecond | Eviction::Lru => None,
            Eviction::Bubble | Eviction::DcBubble => Some(Probability::ALWAYS),
            Eviction::Pblru { swap, .. } => Some(swap),
        }
    }

    /// True if a hit may change the table.
    pub(crate) const fn uses_hits(self) -> bool {
        matches!(self, Eviction::Lru) || self.swap().is_some()
    }
}

/// `random`, `random-second`, `lru`, `bubble`, `dc-bubble`, or `pblru:INSERT:PROBABILITY` without the
/// parameters that are those of [`Eviction::PBLRU`].
impl fmt::Display for Eviction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Eviction::PBLRU => out.pad("pblru"),
            Eviction::Pblru {
                insert,
                swap: Probability::ALWAYS,
            } => out.pad(&format!("pblru:{}", insert.name())),
            Eviction::Pblru { insert, swap } => {
                out.pad(&format!("pblru:{}:{}", insert.name(), swap.get()))
            }
            other => out.pad(other.name()),
        }
    }
}

/// Parses the names of [`Display`](fmt::Display), with or without default parameters.
impl FromStr for Eviction {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let simple = |one: &Eviction| one.name() == name;
        if let Some(known) = Self::ALL.into_iter().find(simple) {
            return Ok(known);
        }
        parse_pblru(name).ok_or_else(|| {
            let mut known: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
            known.dedup();
            known.push("pblru:last|second-to-last[:PROBABILITY above 0 up to 1]");
            UnknownName::new("eviction", name, &known)
        })
    }
}

fn parse_pblru(name: &str) -> Option<Eviction> {
    let parameters = name.strip_prefix("pblru:")?;
    let (insert, swap) = match parameters.split_once(':') {
        Some((insert, swap)) => (insert, Probability::new(swap.parse().ok()?)?),
        None => (parameters, Probability::ALWAYS),
    };
    let insert = [InsertAt::Last, InsertAt::SecondToLast]
        .into_iter()
        .find(|at| at.name() == insert)?;
    Some(Eviction::Pblru { insert, swap })
}

/// Where in its bucket PBLRU inserts a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InsertAt {
    /// Last, in place of the evicted entry: it is the next to be evicted, unless it is hit before. The
    /// flows of a scan evict each other.
    Last,
    /// Before the last entry, as in the authors' code. A new key survives one more eviction without a
    /// hit, at the expense of an older one.
    SecondToLast,
}

impl InsertAt {
    /// `last` or `second-to-last`.
    pub const fn name(self) -> &'static str {
        match self {
            InsertAt::Last => "last",
            InsertAt::SecondToLast => "second-to-last",
        }
    }
}

/// A probability above 0 and up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probability {
    /// A draw of 32 random bits up to this one succeeds.
    highest: u32,
}

impl Probability {
    /// 1.
    pub const ALWAYS: Self = Self { highest: u32::MAX };
    /// 1/2.
    pub const HALF: Self = Self {
        highest: u32::MAX / 2,
    };
    /// 1/4: for tables that threads share.
    pub const QUARTER: Self = Self {
        highest: u32::MAX / 4,
    };

    /// `None` unless above 0 and at most 1. Rounded to a multiple of 2^-32.
    pub fn new(probability: f64) -> Option<Self> {
        if !(probability > 0.0 && probability <= 1.0) {
            return None;
        }
        let draws = (probability * 2_f64.powi(32)).round().max(1.0);
        Some(Self {
            highest: (draws - 1.0) as u32,
        })
    }

    /// The number.
    pub fn get(self) -> f64 {
        (f64::from(self.highest) + 1.0) / 2_f64.powi(32)
    }

    /// A word of which each bit is set with this probability, from as many uniformly random words as the
    /// probability has binary digits.
    ///
    /// A bit that is set with probability q, ORed with a random one, is set with (1 + q) / 2, and ANDed,
    /// with q / 2: this puts a binary digit 1 or 0 before those of q. It starts from the last digit.
    #[inline(always)]
    pub(crate) fn bits(self, mut random: impl FnMut() -> u64) -> u64 {
        if self == Self::ALWAYS {
            return u64::MAX;
        }
        let digits = self.highest + 1;
        (digits.trailing_zeros()..32).fold(0, |set, digit| {
            if digits >> digit & 1 == 1 {
                set | random()
            } else {
                set & random()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn names_are_read_back() {
        let shared = Eviction::Pblru {
            insert: InsertAt::Last,
            swap: Probability::QUARTER,
        };
        for eviction in Eviction::ALL.into_iter().chain([shared]) {
            assert_eq!(eviction.to_string().parse(), Ok(eviction));
        }
        assert_eq!("pblru".parse(), Ok(Eviction::PBLRU));
        assert_eq!("pblru:last:1".parse(), Ok(Eviction::PBLRU));
        assert_eq!(Eviction::PBLRU.to_string(), "pblru");
        assert_eq!(Eviction::PBLRU_AUTHORS.to_string(), "pblru:second-to-last");
        assert_eq!(shared.to_string(), "pblru:last:0.25");
        for wrong in [
            "",
            "mru",
            "pblru:",
            "pblru:first",
            "pblru:last:0",
            "pblru:last:2",
        ] {
            assert!(wrong.parse::<Eviction>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn probabilities_are_above_zero_and_up_to_one() {
        for wrong in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::new(wrong), None);
        }
        assert_eq!(Probability::new(1.0), Some(Probability::ALWAYS));
        assert_eq!(Probability::new(0.5), Some(Probability::HALF));
        assert_eq!(Probability::new(0.25), Some(Probability::QUARTER));
    }

    #[test]
    fn bits_are_set_as_often_as_they_should() {
        let mut random = SmallRng::seed_from_u64(1);
        for probability in [1.0, 0.5, 0.25, 0.75, 0.1, 0.999, 1e-9] {
            let chance = Probability::new(probability).unwrap();
            let words = 20_000;
            let set: u32 = (0..words)
                .map(|_| chance.bits(|| random.next_u64()).count_ones())
                .sum();
            let share = f64::from(set) / f64::from(64 * words);
            // Five standard deviations of this number of draws.
            let bound = 5.0 * (probability * (1.0 - probability) / f64::from(64 * words)).sqrt();
            assert!(
                (share - probability).abs() <= bound + 1e-6,
                "{probability}: {share}"
            );
        }
        // One random word for each binary digit.
        let words = |chance: Probability| {
            let mut words = 0;
            chance.bits(|| {
                words += 1;
                0
            });
            words
        };
        assert_eq!(words(Probability::ALWAYS), 0);
        assert_eq!(words(Probability::HALF), 1);
        assert_eq!(words(Probability::QUARTER), 2);
    }
}
