//! The buckets that may hold a key, of any layout.

use nuthatch_base::hash::split;
use nuthatch_flow::{Config, Layout};

/// Buckets, their slots, and which of them are a key's.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Nothing if any key may be in any slot, of the only bucket.
    layout: Option<Layout>,
    /// Without the spare ones.
    buckets: usize,
    slots: usize,
}

impl Places {
    /// Those of a table of the library of this layout. The second bucket of cuckoo-lite is that of entries of 16+16.
    pub fn of(layout: Layout, entries: u64) -> Self {
        let entries = Config::new(entries).layout(layout).rounded_entries();
        Self {
            layout: Some(layout),
            buckets: entries as usize / layout.slots(),
            slots: layout.slots(),
        }
    }

    /// A table in which any key may be in any slot.
    pub fn anywhere(entries: u64) -> Self {
        Self {
            layout: None,
            buckets: 1,
            slots: entries as usize,
        }
    }

    /// Slots, without those of spare buckets.
    pub fn entries(&self) -> u64 {
        (self.buckets * self.slots) as u64
    }

    /// Slots of a bucket.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Buckets, the spare ones included.
    pub fn buckets(&self) -> usize {
        self.buckets + self.layout.map_or(0, Layout::spare_buckets)
    }

    /// True if any key may be in any slot.
    pub fn is_anywhere(&self) -> bool {
        self.layout.is_none()
    }

    /// The buckets of the key with this hash: `first`, `first + step`, and so on. Of two that are apart the step may be
    /// negative.
    pub fn of_key(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let Some(layout) = self.layout else {
            return Steps::new(0, 0, 1);
        };
        let mask = self.buckets as u64 - 1;
        let first = split::bucket(hash, mask);
        let second = match layout.is_consecutive() {
            true => first + 1,
            false => first ^ (split::partner_offset(split::tag16(hash)) & mask),
        };
        Steps::new(
            first as usize,
            (second as isize).wrapping_sub(first as isize),
            layout.buckets(),
        )
    }
}

/// Numbers that are as far apart from each other.
struct Steps {
    next: usize,
    step: isize,
    left: usize,
}

impl Steps {
    fn new(next: usize, step: isize, left: usize) -> Self {
        Self { next, step, left }
    }
}

impl Iterator for Steps {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let now = self.next;
        self.next = now.wrapping_add_signed(self.step);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_layouts() {
        let hash = 0x1234_0000_0000_0007;
        let of = |layout| Places::of(layout, 64).of_key(hash).collect::<Vec<_>>();
        assert_eq!(of(Layout::FourWay), [7]);
        assert_eq!(of(Layout::Blp2x4), [7, 8]);
        assert_eq!(of(Layout::Window), [7, 8, 9, 10, 11, 12, 13, 14]);
        let cuckoo = of(Layout::CuckooLite);
        assert!(cuckoo[0] == 7 && cuckoo[1] != 7 && cuckoo[1] < 16);
        assert_eq!(Places::of(Layout::Blp2x4, 64).buckets(), 17);
        let anywhere = Places::anywhere(100);
        assert_eq!(anywhere.of_key(hash).collect::<Vec<_>>(), [0]);
        assert_eq!((anywhere.entries(), anywhere.slots()), (100, 100));
    }

    /// A table of the library finds a key in every place that is said to be its own, and nowhere else: as many keys of
    /// one hash's buckets fit as there are slots in them.
    #[test]
    fn a_key_that_fills_its_buckets_evicts() {
        for layout in Layout::ALL {
            let mut cache = Config::new(64).layout(layout).seed(1).build().unwrap();
            let slots = layout.candidates() as u64;
            // Same buckets, other tags: cuckoo-lite's partner depends on the tag, so it is left out.
            if !layout.is_consecutive() {
                continue;
            }
            for tag in 1..=slots + 1 {
                let inserted = cache.insert(tag << 48 | 3, tag).unwrap();
                let evicts = matches!(inserted, nuthatch_flow::Inserted::Evicted { .. });
                assert_eq!(evicts, tag > slots);
            }
        }
    }
}
