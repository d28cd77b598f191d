//! The walk over all elements of a partition, a few buckets at a time: for visits and for the sweep.
//!
//! A walk goes through the hashes in an order in which each bucket is a contiguous stretch, however many buckets there
//! are at that moment ([`split::walk_position`]). So it passes each hash exactly once, although buckets are divided
//! between its steps and elements move to other lines.

use nuthatch_base::hash::split;
use nuthatch_base::sync::clock::Time;

use super::descriptor::Descriptor;
use super::element::Element;
use super::memory::BlockMemory;
use super::table::Partition;
use nuthatch_engine::index_stats::IndexHistogram;
use nuthatch_engine::reply::Item;
use nuthatch_engine::request::Expiry;

impl Partition {
    /// Visits live elements from position `from` on (0 is the start), about `budget` places in all, and
    /// returns where to go on, or `None` at the end. An element that stays from the first call to the
    /// last is met exactly once.
    pub fn visit(
        &mut self,
        now: Time,
        from: u32,
        budget: usize,
        visit: &mut dyn FnMut(&BlockMemory, Element, Item),
    ) -> Option<u32> {
        self.enter(now);
        let mut position = from;
        let mut seen = 0;
        while seen < budget.max(1) {
            if self.index.buckets() == 0 {
                return None;
            }
            let (bucket, end) = self.stretch_of(position);
            let mut next = self.bucket(bucket);
            while let Some(element) = next {
                let memory = self.memory();
                let ahead = split::walk_position(memory.hash(element)) >= position;
                if ahead && self.is_live(element, now) {
                    visit(memory, element, memory.item(element, now));
                }
                next = self.memory().next_in_bucket(element);
                seen += 1;
            }
            seen += 1;
            position = end.checked_add(1)?;
        }
        Some(position)
    }

    /// Elements in each bucket, or in about `sample` of them if there are more. The choice of buckets depends on the
    /// partition.
    pub fn histogram(&self, sample: u64) -> IndexHistogram {
        let memory = self.memory();
        let (buckets, phase) = (u64::from(self.index.buckets()), self.config.seed >> 32);
        IndexHistogram::take(buckets, sample, phase, |bucket| {
            let first = self.bucket(bucket as u32);
            std::iter::successors(first, |&element| memory.next_in_bucket(element)).count()
        })
    }

    /// The bucket at a position of the walk, and its last position.
    fn stretch_of(&self, position: u32) -> (u32, u32) {
        let bucket = self.index.bucket_of(u64::from(position.reverse_bits()));
        (bucket, split::walk_end(bucket, self.index.buckets()))
    }

    /// Takes expired and flushed elements out, looking at about `budget` places. True if the sweep has not reached the
    /// end of the partition yet.
    pub fn sweep(&mut self, now: Time, budget: usize) -> bool {
        self.enter(now);
        if self.descriptor().is_some_and(Descriptor::take_touched) {
            self.note_expiring();
        }
        if !self.sweeping || self.index.buckets() == 0 {
            return false;
        }
        let mut looked_at = 0;
        while looked_at < budget.max(1) {
            let (bucket, end) = self.stretch_of(self.swept_to);
            let met = self.holding(split::hash_of_bucket(bucket), |partition| {
                partition.sweep_bucket(now, bucket)
            });
            self.counts.swept += met as u64;
            looked_at += met + 1;
            match end.checked_add(1) {
                Some(position) => self.swept_to = position,
                None => {
                    self.swept_to = 0;
                    self.sweeping = std::mem::take(&mut self.expiring);
                    return false;
                }
            }
        }
        true
    }

    /// Takes dead elements out of a bucket that is held. Returns how many elements were in it.
    fn sweep_bucket(&mut self, now: Time, bucket: u32) -> usize {
        let mut met = 0;
        let mut next = self.bucket(bucket);
        while let Some(element) = next {
            next = self.memory().next_in_bucket(element);
            met += 1;
            if !self.is_live(element, now) {
                self.count_removal(now, element);
                self.unlink(element);
            } else {
                self.expiring |= self.memory().expiry(element) != Expiry::Never;
            }
        }
        met
    }
}
