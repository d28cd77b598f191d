//! The sizing of an index: how many buckets it has at the start, and how it grows.

use std::fmt;

/// The largest part of the memory that an index may take while there are no items.
const INDEX_PART: u64 = 4;

/// The rule that decided the size of our index at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRule {
    /// The memory: room for one item in each so many KiB of it.
    Memory {
        /// KiB of memory for an item.
        kib: u64,
    },
    /// The configured number of items.
    Items,
    /// The limit: a quarter of the memory.
    Quarter,
    /// The smallest index.
    Least,
}

impl fmt::Display for IndexRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory { kib: 1 } => "room for one item a KiB of memory",
            Self::Memory { kib } => {
                return write!(out, "room for one item in {kib} KiB of memory");
            }
            Self::Items => "room for the items asked for",
            Self::Quarter => "cut to a quarter of the memory",
            Self::Least => "the least there is",
        })
    }
}

/// The properties of an index on which its size depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexShape {
    /// Slots of a bucket; 1 where a bucket is the head of a chain.
    pub slots: u64,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Items to slots that it is sized for, as a fraction.
    pub load: (u64, u64),
    /// KiB of memory for which it has room for one item at the start, unless the items are known.
    pub kib_per_item: u64,
}

impl IndexShape {
    /// Buckets of classic memcached's table: a pointer each, doubled when there are three items to two.
    pub const CHAINS: Self = Self {
        slots: 1,
        slot_bytes: 8,
        load: (3, 2),
        kib_per_item: 1,
    };
    /// Buckets of a partition: half a word each, one more with every item more.
    pub const PARTITIONS: Self = Self {
        slots: 1,
        slot_bytes: 4,
        load: (1, 1),
        kib_per_item: 1,
    };

    /// Cuckoo hashing with `slots` slots a bucket: nine items to ten slots. It begins small: items of several KiB leave
    /// most of a larger one unused (1.3 % of the memory), and to double it twice more costs less than is measured.
    pub const fn cuckoo(slots: u64) -> Self {
        Self {
            slots,
            slot_bytes: 8,
            load: (9, 10),
            kib_per_item: 4,
        }
    }
}

/// The size of our index at the start, and the rule that decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSize {
    /// Buckets, a power of two.
    pub buckets: u64,
    /// Slots of a bucket.
    pub slots: u64,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// The rule that decided.
    pub rule: IndexRule,
}

impl IndexSize {
    /// Bytes of the index.
    pub fn bytes(&self) -> u64 {
        self.buckets * self.slots * self.slot_bytes
    }

    /// The same cuckoo index when it holds `items` items: it doubles whenever 96 % of its slots are taken.
    pub fn grown_to(self, items: u64) -> Self {
        let mut buckets = self.buckets;
        while u128::from(items) * 100 > u128::from(buckets * self.slots) * 96 {
            buckets *= 2;
        }
        Self { buckets, ..self }
    }

    /// Slots that a search of a key with two buckets looks at without success because their 16-bit tag matches, when
    /// the index holds `items` items.
    pub fn false_tags(&self, items: u64) -> f64 {
        let load = items as f64 / (self.buckets * self.slots) as f64;
        2.0 * self.slots as f64 * load / 65_535.0
    }
}

/// The index of an engine at the start.
///
/// It has room for `items` if they are given, else for one item in each KiB of memory, or in several; at the load of its
/// shape, rounded up to a power of two of buckets; no more than a quarter of the memory, and no fewer than `least`
/// buckets (a power of two). From there it grows while it is used. That is few: a cache of small items doubles its index
/// a few times, at no cost that a request would notice, and one of large items wastes 1 % of its memory, or less,
/// instead of 20.
pub fn index(memory: u64, items: Option<u64>, shape: IndexShape, least: u64) -> IndexSize {
    let (wanted_items, rule) = match items {
        Some(items) => (items, IndexRule::Items),
        None => (
            memory / (shape.kib_per_item << 10),
            IndexRule::Memory {
                kib: shape.kib_per_item,
            },
        ),
    };
    let IndexShape {
        slots,
        slot_bytes,
        load: (load, of),
        ..
    } = shape;
    let wanted_slots = wanted_items
        .max(1)
        .saturating_mul(of)
        .div_ceil(load * slots);
    let most = power_of_two_up_to(memory / INDEX_PART / (slots * slot_bytes)).max(least);
    // A count without a power of two above it is more than any memory holds.
    let wanted = wanted_slots.checked_next_power_of_two().unwrap_or(u64::MAX);
    let (buckets, rule) = match wanted {
        few if few < least => (least, IndexRule::Least),
        many if many > most => (most, IndexRule::Quarter),
        buckets => (buckets, rule),
    };
    IndexSize {
        buckets,
        slots,
        slot_bytes,
        rule,
    }
}

fn power_of_two_up_to(most: u64) -> u64 {
    most.checked_ilog2().map_or(1, |bits| 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const EIGHT: IndexShape = IndexShape::cuckoo(8);

    #[test]
    fn our_index_follows_memory_then_items_within_limits() {
        let size = index(64 * MIB, None, EIGHT, 4);
        // 16384 items at nine tenths are 18205 slots, 2276 buckets, 4096.
        let rule = IndexRule::Memory { kib: 4 };
        assert_eq!((size.buckets, size.rule), (4096, rule));
        assert_eq!(size.bytes(), MIB / 4);
        let size = index(64 * MIB, Some(100_000), EIGHT, 4);
        assert_eq!((size.buckets, size.rule), (16_384, IndexRule::Items));
        let size = index(64 * MIB, Some(u64::MAX), EIGHT, 4);
        assert_eq!((size.bytes(), size.rule), (16 * MIB, IndexRule::Quarter));
        let size = index(4 * MIB, Some(0), EIGHT, 4);
        assert_eq!((size.buckets, size.rule), (4, IndexRule::Least));
    }

    #[test]
    fn chains_and_partitions_follow_the_same_rule() {
        let chains = index(64 * MIB, None, IndexShape::CHAINS, 64);
        // 65536 items at three halves are 43690 buckets, 65536: memcached's own beginning.
        let rule = IndexRule::Memory { kib: 1 };
        assert_eq!((chains.buckets, chains.rule), (65_536, rule));
        assert_eq!(chains.bytes(), MIB / 2);
        let partitions = index(64 * MIB, None, IndexShape::PARTITIONS, 64);
        assert_eq!((partitions.buckets, partitions.bytes()), (65_536, MIB / 4));
        let full = index(MIB, Some(u64::MAX), IndexShape::PARTITIONS, 64);
        assert_eq!((full.bytes(), full.rule), (MIB / 4, IndexRule::Quarter));
    }

    #[test]
    fn our_index_grows() {
        let size = index(64 * MIB, None, EIGHT, 4);
        assert_eq!(size.grown_to(31_000).buckets, 4096);
        assert_eq!(size.grown_to(125_000).buckets, 16_384);
        assert_eq!(size.grown_to(126_000).buckets, 32_768);
        let full = size.grown_to(125_000).false_tags(125_000);
        assert!((full - 16.0 * 0.9537 / 65_535.0).abs() < 1e-6, "{full}");
    }
}
