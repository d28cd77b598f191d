//! Layouts: which slots may hold a key.
//!
//! ```text
//! 4-way        [ . . . . ]                                one bucket of 4
//! 8-way        [ . . . . . . . . ]                        one bucket of 8
//! cuckoo-lite  [ . . . . ]   . . .   [ . . . . ]          two buckets of 4, anywhere
//! window       [.][.][.][.][.][.][.][.]                   8 neighbouring buckets of 1
//! blp-2-4      [ . . . . ][ . . . . ]                     two neighbouring buckets of 4
//! blp-2-8      [ . . . . . . . . ][ . . . . . . . . ]     two neighbouring buckets of 8
//! ```
//!
//! Bounded linear probing is two neighbouring buckets: one read loads both, and a full bucket overflows
//! into its neighbour. After the last bucket there are as many spare ones as a key of the last bucket
//! may overflow into, so that no lookup wraps around.
//!
//! The paper defines its "hopscotch-like" design only as "any of the H buckets from the one it hashes
//! to" (section 3); `window` is this with eight candidates, like the others, and without displacement.

use std::fmt;
use std::str::FromStr;

use nuthatch_base::hash::split;

use crate::name::{UnknownName, by_name};

/// Which slots may hold a key, for tables chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// One bucket of four slots: Open vSwitch's signature cache.
    FourWay,
    /// One bucket of eight slots.
    EightWay,
    /// Two independent buckets of four slots: the first and the tag give the second. No key is ever moved
    /// between them.
    CuckooLite,
    /// Eight neighbouring buckets of one slot: like hopscotch hashing, without displacement.
    Window,
    /// Two neighbouring buckets of four slots: the paper's 2-4 bounded linear probing.
    #[default]
    Blp2x4,
    /// Two neighbouring buckets of eight slots.
    Blp2x8,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 6] = [
        Layout::FourWay,
        Layout::EightWay,
        Layout::CuckooLite,
        Layout::Window,
        Layout::Blp2x4,
        Layout::Blp2x8,
    ];

    /// Its name, which [`FromStr`] parses.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::FourWay => "4-way",
            Layout::EightWay => "8-way",
            Layout::CuckooLite => "cuckoo-lite",
            Layout::Window => "window",
            Layout::Blp2x4 => "blp-2-4",
            Layout::Blp2x8 => "blp-2-8",
        }
    }

    /// Slots of a bucket.
    pub const fn slots(self) -> usize {
        match self {
            Layout::Window => 1,
            Layout::FourWay | Layout::CuckooLite | Layout::Blp2x4 => 4,
            Layout::EightWay | Layout::Blp2x8 => 8,
        }
    }

    /// Buckets that may hold a key.
    pub const fn buckets(self) -> usize {
        match self {
            Layout::FourWay | Layout::EightWay => 1,
            Layout::CuckooLite | Layout::Blp2x4 | Layout::Blp2x8 => 2,
            Layout::Window => 8,
        }
    }

    /// Slots that may hold a key.
    pub const fn candidates(self) -> usize {
        self.slots() * self.buckets()
    }

    /// True if a key's buckets are neighbours.
    pub const fn is_consecutive(self) -> bool {
        !matches!(self, Layout::CuckooLite)
    }

    /// Spare buckets after the last, for keys that overflow (section 5: the buffer bucket).
    pub const fn spare_buckets(self) -> usize {
        if self.is_consecutive() {
            self.buckets() - 1
        } else {
            0
        }
    }

    /// Buckets for at least `entries` slots: a power of two, at least 8, not counting the spare.
    pub(crate) const fn buckets_for(self, entries: u64) -> u64 {
        let buckets = entries.div_ceil(self.slots() as u64).next_power_of_two();
        if buckets < BUCKETS_MIN {
            BUCKETS_MIN
        } else {
            buckets
        }
    }
}

/// The smallest table. Atomics are expensive in loom, so a model has fewer buckets.
const BUCKETS_MIN: u64 = if cfg!(loom) { 2 } else { 8 };

impl fmt::Display for Layout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name("layout", name, &Self::ALL, Self::name)
    }
}

/// Other crates cannot define layouts or slots: vector code reads as many slots as a [`Shape`] says, of the size of a
/// [`Slot`](crate::Slot)'s entry.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A layout as a type, so that the loops around it are compiled for it. The types of
/// [`types`](crate::types) are all there are.
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct TooFew;
///
/// impl nuthatch_flow::Shape for TooFew {
///     const LAYOUT: nuthatch_flow::Layout = nuthatch_flow::Layout::FourWay;
///     const RUN: usize = 1;
/// }
/// ```
pub trait Shape: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Which one it is.
    const LAYOUT: Layout;
    /// Slots of a bucket.
    const SLOTS: usize = Self::LAYOUT.slots();
    /// Slots that may hold a key.
    const CANDIDATES: usize = Self::LAYOUT.candidates();
    /// Contiguous candidates: all of them, or half of them in each of two places.
    const RUN: usize = if Self::LAYOUT.is_consecutive() {
        Self::CANDIDATES
    } else {
        Self::SLOTS
    };
    /// Slots that one lock guards in a shared table: two locks guard a key's candidates.
    const GUARDED: usize = if Self::LAYOUT.buckets() > 2 {
        Self::CANDIDATES
    } else {
        Self::SLOTS
    };
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl sealed::Sealed for $name {}

        impl Shape for $name {
            const LAYOUT: Layout = Layout::$name;
        }
    )*};
}

shapes! {
    /// One bucket of four slots.
    FourWay;
    /// One bucket of eight slots.
    EightWay;
    /// Two buckets of four slots, anywhere.
    CuckooLite;
    /// Eight neighbouring buckets of one slot.
    Window;
    /// Two neighbouring buckets of four slots.
    Blp2x4;
    /// Two neighbouring buckets of eight slots.
    Blp2x8;
}

/// Where a key may be: the indices of the first slots of its one or two runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    pub first: usize,
    pub second: usize,
}

impl Candidates {
    /// The candidates of a key in a table of `mask + 1` buckets.
    #[inline(always)]
    pub fn of<L: Shape>(hash: u64, tag: u64, mask: u64) -> Self {
        let home = split::bucket(hash, mask);
        let second = if L::LAYOUT.is_consecutive() {
            home
        } else {
            home ^ (split::partner_offset(tag) & mask)
        };
        Self {
            first: home as usize * L::SLOTS,
            second: second as usize * L::SLOTS,
        }
    }

    /// The index of candidate `number`, which is below `L::CANDIDATES`.
    #[inline(always)]
    pub fn slot<L: Shape>(self, number: usize) -> usize {
        if L::LAYOUT.is_consecutive() || number < L::RUN {
            self.first + number
        } else {
            self.second + number - L::RUN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for layout in Layout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        let error = "5-way".parse::<Layout>().unwrap_err().to_string();
        assert!(
            error.contains("\"5-way\"") && error.contains("blp-2-4"),
            "{error}"
        );
    }

    #[test]
    fn tables_are_rounded_up_to_a_power_of_two() {
        assert_eq!(Layout::Blp2x4.buckets_for(0), 8);
        assert_eq!(Layout::Blp2x4.buckets_for(1 << 20), 1 << 18);
        assert_eq!(Layout::Blp2x4.buckets_for((1 << 20) + 1), 1 << 19);
        assert_eq!(Layout::Window.buckets_for(1 << 20), 1 << 20);
    }

    #[test]
    fn a_cuckoo_key_has_two_different_buckets() {
        for hash in (0..1000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let at = Candidates::of::<CuckooLite>(hash, split::tag16(hash), 7);
            assert_ne!(at.first, at.second);
            assert!(at.first < 32 && at.second < 32);
        }
    }
}
