//! Evictions: who leaves when all candidates are taken, and what a hit changes.
//!
//! A bubble queue needs no extra bits: the order of the slots of a bucket is the order of its keys.
//! Slot 0 is the top. A hit exchanges a key with the one above it in the same bucket; it never
//! leaves its bucket, because a table that keeps tags alone does not know where a neighbour of
//! another bucket may go.
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

/// Who leaves when all of a key's candidates are taken, for tables chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Eviction {
    /// Any candidate, all alike.
    #[default]
    Random,
    /// Any slot of the second bucket. With bounded linear probing it reaches the hit rate of
    /// [`Eviction::Random`] on uniform traffic in a fifth of the time; with cuckoo-lite
    /// it stays .018 below (tests/theory.rs). Needs two buckets.
    RandomSecond,
    /// The candidate whose last hit is longest ago: the yardstick. 8 more bytes a slot, written on
    /// every hit. Not for shared tables.
    Lru,
    /// A hit always moves a key up; the last of a random bucket leaves, and the new key comes in
    /// there.
    Bubble,
    /// Probabilistic Bubble LRU (section 5.3): a hit moves a key up with a probability; the last of
    /// a random bucket leaves.
    Pblru {
        /// Where in the bucket a new key comes in.
        insert: InsertAt,
        /// How probably a hit moves a key up.
        swap: Probability,
    },
    /// Divide-and-conquer bubble (Zhang and Xue, ICS 2009): a hit always moves a key up and sets
    /// its bucket's flag. In a random bucket the last leaves if the flag is set, which clears it,
    /// and the top one if it is not: a bucket without hits holds yesterday's flows. A new key comes
    /// in last. A flag a bucket more. Not for shared tables. Only its abstract being public, the
    /// use of the flag is our reading; it gains less than strict LRU (tests/eviction.rs).
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

    /// PBLRU as it keeps most hits: new keys come in last, every hit moves up. The same as
    /// [`Eviction::Bubble`].
    pub const PBLRU: Eviction = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::ALWAYS,
    };

    /// PBLRU as its authors' code has it: new keys come in second to last, every hit moves up. A
    /// point less of hits on skewed flows, ten points less under a scan, and a third of a point more
    /// where flows come and go so fast that one packet in fifty is the first of a flow.
    pub const PBLRU_AUTHORS: Eviction = Eviction::Pblru {
        insert: InsertAt::SecondToLast,
        swap: Probability::ALWAYS,
    };

    /// PBLRU for tables that threads share: new keys come in last, one hit in four writes. It costs
    /// half a point of hits on skewed flows, and more where flows come and go.
    pub const PBLRU_SHARED: Eviction = Eviction::Pblru {
        insert: InsertAt::Last,
        swap: Probability::QUARTER,
    };

    /// The name of its kind.
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

    /// True if it makes sense on this layout.
    pub const fn suits(self, layout: Layout) -> bool {
        match self {
            Eviction::Random | Eviction::Lru => true,
            Eviction::RandomSecond => layout.buckets() == 2,
            Eviction::Bubble | Eviction::Pblru { .. } | Eviction::DcBubble => layout.slots() > 1,
        }
    }

    /// True if threads can share a table that evicts this way.
    pub const fn suits_shared(self) -> bool {
        !matches!(self, Eviction::Lru | Eviction::DcBubble)
    }

    /// How probably a hit exchanges a key with the one above.
    pub(crate) const fn swap(self) -> Option<Probability> {
        match self {
            Eviction::Random | Eviction::RandomSecond | Eviction::Lru => None,
            Eviction::Bubble | Eviction::DcBubble => Some(Probability::ALWAYS),
            Eviction::Pblru { swap, .. } => Some(swap),
        }
    }

    /// True if a hit may change the table.
    pub(crate) const fn learns_from_hits(self) -> bool {
        matches!(self, Eviction::Lru) || self.swap().is_some()
    }
}

/// `random`, `random-second`, `lru`, `bubble`, `dc-bubble`, or `pblru:INSERT:PROBABILITY`, of which
/// is left out what [`Eviction::PBLRU`] has.
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

/// Reads what [`Display`](fmt::Display) writes, or all of it.
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

/// Where in its bucket PBLRU puts a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InsertAt {
    /// In the place of the key that leaves: the next to leave itself, unless it is hit before. A
    /// scan's flows drive each other out.
    Last,
    /// Above the last, which the key that was there becomes: as the authors' code has it. A new
    /// key survives one more eviction without a hit, at the expense of one that was there before.
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
    /// 1/4: the swap probability for tables that threads share.
    pub const QUARTER: Self = Self {
        highest: u32::MAX / 4,
    };

    /// `None` unless above 0 and at most 1. Exact to 2^-32.
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

    /// A word each of whose bits is set with this probability, made of fair words: as many as the
    /// probability has binary places.
    ///
    /// A bit that is set with probability q, ORed with a fair one, is set with (1 + q) / 2, and
    /// ANDed, with q / 2: each writes one binary place in front of q, the last place first.
    #[inline(always)]
    pub(crate) fn bits(self, mut fair: impl FnMut() -> u64) -> u64 {
        if self == Self::ALWAYS {
            return u64::MAX;
        }
        let places = self.highest + 1;
        (places.trailing_zeros()..32).fold(0, |set, place| {
            if places >> place & 1 == 1 {
                set | fair()
            } else {
                set & fair()
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
        let fancy = Eviction::Pblru {
            insert: InsertAt::Last,
            swap: Probability::QUARTER,
        };
        for eviction in Eviction::ALL.into_iter().chain([fancy]) {
            assert_eq!(eviction.to_string().parse(), Ok(eviction));
        }
        assert_eq!("pblru".parse(), Ok(Eviction::PBLRU));
        assert_eq!("pblru:last:1".parse(), Ok(Eviction::PBLRU));
        assert_eq!(Eviction::PBLRU.to_string(), "pblru");
        assert_eq!(Eviction::PBLRU_AUTHORS.to_string(), "pblru:second-to-last");
        assert_eq!(fancy.to_string(), "pblru:last:0.25");
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
            // Five standard deviations of so many draws.
            let bound = 5.0 * (probability * (1.0 - probability) / f64::from(64 * words)).sqrt();
            assert!(
                (share - probability).abs() <= bound + 1e-6,
                "{probability}: {share}"
            );
        }
        // One fair word for each binary place.
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
