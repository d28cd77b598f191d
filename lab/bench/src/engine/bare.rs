//! A bare table: the cuckoo engine's index and items with nothing around them. It has sizes that the compiler knows and
//! one writer, but no versions, no expiry, no recency, no statistics and no removal. It shows how much of an engine's
//! distance from the memory's limit is due to the layout: two buckets, then an item.

use std::sync::{PoisonError, RwLock};

use nuthatch_base::memory::Mapped;
use nuthatch_engine::KeyHasher;

use crate::engine::operations::Operations;
use crate::engine::subject::{Subject, Tally, Worker};

/// Slots of a bucket: 16 bits of tag and 48 of an item's number, which starts at 1, each.
const SLOTS: usize = 8;
/// Bytes of a bucket: a cache line.
const LINE: usize = SLOTS * size_of::<u64>();
const TAG_SHIFT: u32 = 48;
const NUMBER: u64 = (1 << TAG_SHIFT) - 1;
/// Items pushed aside before the table counts as full.
const KICKS: usize = 500;

/// The table, with keys of `K` bytes and values of `V`.
pub struct Bare<const K: usize, const V: usize> {
    table: RwLock<Table<K, V>>,
    hasher: KeyHasher,
}

struct Table<const K: usize, const V: usize> {
    buckets: Mapped<u8>,
    items: Mapped<u8>,
    /// The next item's number.
    next: usize,
    mask: u64,
}

/// Where a key may be.
#[derive(Clone, Copy)]
struct Candidates {
    buckets: [usize; 2],
    tag: u64,
}

impl<const K: usize, const V: usize> Bare<K, V> {
    /// Room for `items`, in an index that they fill to nine tenths at most.
    pub fn new(items: usize) -> Result<Self, String> {
        let buckets = (items * 10 / 9).div_ceil(SLOTS).next_power_of_two();
        Ok(Self {
            table: RwLock::new(Table {
                buckets: map(buckets * LINE)?,
                items: map((items + 1) * LINE)?,
                next: 1,
                mask: buckets as u64 - 1,
            }),
            hasher: KeyHasher::random(),
        })
    }
}

/// Memory mapped as for the engines.
fn map(bytes: usize) -> Result<Mapped<u8>, String> {
    Mapped::reserve(bytes).map_err(|error| format!("cannot map memory: {error}"))
}

impl<const K: usize, const V: usize> Table<K, V> {
    /// A key and its value share a line; they start in its middle, where other tables have a header.
    const START: usize = LINE - K - V;

    #[inline(always)]
    fn place(&self, hash: u64) -> Candidates {
        let tag = (hash >> TAG_SHIFT).max(1);
        let first = hash & self.mask;
        Candidates {
            buckets: [first as usize, self.partner(first, tag) as usize],
            tag,
        }
    }

    /// The other bucket of an item with this tag.
    #[inline(always)]
    fn partner(&self, bucket: u64, tag: u64) -> u64 {
        let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bucket ^ (mixed ^ mixed >> 29 | 1)) & self.mask
    }

    #[inline(always)]
    fn bucket(&self, bucket: usize) -> &[u8; LINE] {
        &self.buckets.as_chunks().0[bucket]
    }

    #[inline(always)]
    fn slot(&self, bucket: usize, slot: usize) -> u64 {
        u64::from_le_bytes(self.bucket(bucket).as_chunks().0[slot])
    }

    fn set_slot(&mut self, bucket: usize, slot: usize, word: u64) {
        let at = bucket * LINE + slot * size_of::<u64>();
        self.buckets[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
    }

    /// The number of a key's item.
    #[inline(always)]
    fn find(&self, key: &[u8; K], hash: u64) -> Option<usize> {
        let place = self.place(hash);
        let buckets = place.buckets.map(|bucket| self.bucket(bucket));
        let mut mask = matches(buckets, place.tag);
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            let bucket = place.buckets[at / SLOTS];
            let item = (self.slot(bucket, at % SLOTS) & NUMBER) as usize;
            if self.items.as_chunks::<LINE>().0[item][Self::START..Self::START + K] == *key {
                return Some(item);
            }
            mask &= mask - 1;
        }
        None
    }

    #[inline(always)]
    fn value(&self, item: usize) -> &[u8] {
        &self.items.as_chunks::<LINE>().0[item][Self::START + K..]
    }

    /// False if there is no room.
    fn set(&mut self, key: &[u8; K], value: &[u8], hash: u64) -> bool {
        if let Some(item) = self.find(key, hash) {
            self.items[item * LINE + Self::START + K..][..V].copy_from_slice(value);
            return true;
        }
        let Some(line) = self.items.as_chunks_mut::<LINE>().0.get_mut(self.next) else {
            return false;
        };
        line[Self::START..Self::START + K].copy_from_slice(key);
        line[Self::START + K..].copy_from_slice(value);
        let place = self.place(hash);
        let mut displaced = place.tag << TAG_SHIFT | self.next as u64;
        self.next += 1;
        let mut buckets = place.buckets;
        for kick in 0..KICKS {
            for bucket in buckets {
                if let Some(free) = (0..SLOTS).find(|&slot| self.slot(bucket, slot) == 0) {
                    self.set_slot(bucket, free, displaced);
                    return true;
                }
            }
            // The displaced item goes to its other bucket; a different slot each time.
            let (from, slot) = (buckets[1], (displaced as usize + kick) % SLOTS);
            let pushed = self.slot(from, slot);
            self.set_slot(from, slot, displaced);
            displaced = pushed;
            buckets = [self.partner(from as u64, pushed >> TAG_SHIFT) as usize; 2];
        }
        false
    }
}

/// One bit for each slot of two buckets whose tag is `tag`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn matches(buckets: [&[u8; LINE]; 2], tag: u64) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi16, _mm_loadu_si128,
        _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi16, _mm_shuffle_ps,
        _mm_srai_epi32,
    };
    // SAFETY: SSE2 is part of x86-64; the loads are of the 64 bytes of each bucket.
    unsafe {
        let upper = |line: &[u8; LINE], at: usize| {
            let words = line.as_ptr().cast::<__m128i>().add(at);
            let low = _mm_castsi128_ps(_mm_loadu_si128(words));
            let high = _mm_castsi128_ps(_mm_loadu_si128(words.add(1)));
            _mm_srai_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)), 16)
        };
        let equal = |line| {
            let tags = _mm_packs_epi32(upper(line, 0), upper(line, 2));
            _mm_cmpeq_epi16(tags, _mm_set1_epi16(tag as i16))
        };
        _mm_movemask_epi8(_mm_packs_epi16(equal(buckets[0]), equal(buckets[1]))) as u32
    }
}

/// One bit for each slot of two buckets whose tag is `tag`.
#[cfg(not(target_arch = "x86_64"))]
fn matches(buckets: [&[u8; LINE]; 2], tag: u64) -> u32 {
    let words = buckets.into_iter().flat_map(|line| line.as_chunks().0);
    let bits = words
        .enumerate()
        .map(|(at, word)| u32::from(u64::from_le_bytes(*word) >> TAG_SHIFT == tag) << at);
    bits.sum()
}

impl<const K: usize, const V: usize> Subject for Bare<K, V> {
    type Worker<'a> = BareWorker<'a, K, V>;

    fn worker(&self) -> BareWorker<'_, K, V> {
        BareWorker(self)
    }
}

/// A thread's access to a [`Bare`] table.
pub struct BareWorker<'a, const K: usize, const V: usize>(&'a Bare<K, V>);

impl<const K: usize, const V: usize> BareWorker<'_, K, V> {
    /// Gets under one reader's lock for all of them.
    fn get(&self, list: &Operations, from: usize, to: usize) -> Tally {
        let Bare { table, hasher } = self.0;
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        let mut tally = Tally::default();
        let mut out = [0; V];
        for one in list.range(from, to) {
            let key = one
                .key
                .first_chunk()
                .expect("the size was looked at before");
            tally.operations += 1;
            tally.gets += 1;
            if let Some(item) = table.find(key, hasher.hash(key)) {
                // Copied, as an engine that may reuse its memory must.
                out.copy_from_slice(table.value(item));
                tally.hit(&out, key, one.value_size);
            }
        }
        tally
    }

    /// Gets and sets, one after the other.
    fn change(&self, list: &Operations, from: usize, to: usize) -> Tally {
        let mut tally = Tally::default();
        for (at, one) in (from..to).zip(list.range(from, to)) {
            let Some(value) = one.set else {
                tally.add(&self.get(list, at, at + 1));
                continue;
            };
            let Bare { table, hasher } = self.0;
            let key = one
                .key
                .first_chunk()
                .expect("the size was looked at before");
            let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
            tally.operations += 1;
            tally.wrong += u64::from(!table.set(key, value, hasher.hash(key)));
        }
        tally
    }
}

impl<const K: usize, const V: usize> Worker for BareWorker<'_, K, V> {
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        if list.range(from, to).any(|one| one.set.is_some()) {
            self.change(list, from, to)
        } else {
            self.get(list, from, to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::operations::{Distribution, Items, Load};
    use crate::engine::subject::preload;

    #[test]
    fn what_was_stored_is_found() {
        let items = Items::alike(60_000, 16, 32);
        let bare = Bare::<16, 32>::new(60_000).unwrap();
        preload(&bare, &items).unwrap();
        let list = Operations::random(&items, 20_000, &Load::new(0.9, Distribution::Uniform), 0);
        let tally = bare.worker().run(&list, 0, list.len());
        assert_eq!((tally.wrong, tally.hits), (0, tally.gets));
        assert!(tally.gets > 17_000);
        // Keys that were never stored are not found.
        let others = Items {
            count: 70_000,
            ..items
        };
        let list = Operations::gets(&others, 60_000, 70_000);
        assert_eq!(bare.worker().run(&list, 0, list.len()).hits, 0);
    }
}
