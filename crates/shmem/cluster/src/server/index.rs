//! The table as its server sees it: buckets that clients read, and the overflow of full buckets.
//!
//! Only the server writes here. Each change is one store of a word (an overflow's count is raised before an entry is
//! added and lowered after it is removed), and a pair's entry stays in its place until the pair is removed.

use std::sync::atomic::Ordering;

use nuthatch_engine::Key;
use nuthatch_fabric::{Fabric, Word};

use super::shard::Shard;
use crate::bucket::{ENTRIES, Entry, OVERFLOW, Pointer, WORDS};

impl<F: Fabric> Shard<F> {
    fn bucket(&self, number: usize) -> &[Word] {
        self.fabric.local(self.layout.bucket(number), WORDS)
    }

    /// Entries of a bucket, those of its overflow included.
    pub fn entries(&self, number: usize) -> Vec<Entry> {
        // Relaxed, here and below: nobody else writes to buckets.
        let words = self.bucket(number)[..ENTRIES].iter();
        let inside = words.map(|word| Entry(word.load(Ordering::Relaxed)));
        let outside = self.overflow.get(&number).into_iter().flatten();
        inside
            .chain(outside.copied())
            .filter(|&entry| entry != Entry::FREE)
            .collect()
    }

    /// The block of a key's pair, dead or alive.
    pub fn find(&mut self, key: &Key<'_>, key_words: &[u64]) -> Option<Pointer> {
        let number = self.layout.bucket_of(key.hash());
        self.counts.lookups += 1;
        let mut false_tags = 0;
        let mut is_keys = |entry: Entry| {
            let is = entry.matches(key.hash()) && {
                let holds = self.holds(entry.pointer(), key.bytes(), key_words);
                false_tags += u64::from(!holds);
                holds
            };
            is.then(|| entry.pointer())
        };
        let words = self.bucket(number);
        let inside =
            (words[..ENTRIES].iter()).find_map(|word| is_keys(Entry(word.load(Ordering::Relaxed))));
        let found = inside.or_else(|| match words[OVERFLOW].load(Ordering::Relaxed) {
            0 => None,
            _ => {
                (self.overflow.get(&number).into_iter().flatten()).find_map(|&entry| is_keys(entry))
            }
        });
        self.counts.false_tags += false_tags;
        self.counts.lookup_hits += u64::from(found.is_some());
        found
    }

    /// Stores an entry for a new pair.
    pub fn put_entry(&mut self, hash: u64, pointer: Pointer) {
        let number = self.layout.bucket_of(hash);
        let entry = Entry::new(hash, pointer);
        let words = self.bucket(number);
        let free = (words[..ENTRIES].iter()).find(|word| word.load(Ordering::Relaxed) == 0);
        match free {
            // Release: a reader that sees the entry sees the block locked.
            Some(word) => word.store(entry.0, Ordering::Release),
            None => {
                words[OVERFLOW].fetch_add(1, Ordering::Release);
                self.overflow.entry(number).or_default().push(entry);
                self.counts.overflowed += 1;
            }
        }
    }

    /// Points the entry of a pair to its new block.
    pub fn move_entry(&mut self, hash: u64, from: Pointer, to: Pointer) {
        let (old, new) = (Entry::new(hash, from), Entry::new(hash, to));
        self.change_entry(hash, old, Some(new));
    }

    /// Takes the entry of a pair out.
    pub fn take_entry(&mut self, hash: u64, pointer: Pointer) {
        self.change_entry(hash, Entry::new(hash, pointer), None);
    }

    fn change_entry(&mut self, hash: u64, old: Entry, new: Option<Entry>) {
        let number = self.layout.bucket_of(hash);
        let words = self.bucket(number);
        let inside = (words[..ENTRIES].iter()).find(|word| word.load(Ordering::Relaxed) == old.0);
        if let Some(word) = inside {
            // Release: as in `put_entry`.
            word.store(new.map_or(0, |new| new.0), Ordering::Release);
            return;
        }
        let outside = self.overflow.get_mut(&number);
        let outside = outside.expect("a pair's entry is in its bucket or its overflow");
        let at = outside.iter().position(|&entry| entry == old);
        let at = at.expect("a pair's entry is in its bucket or its overflow");
        match new {
            Some(new) => outside[at] = new,
            None => {
                outside.swap_remove(at);
                let rest = outside.len();
                if rest == 0 {
                    self.overflow.remove(&number);
                }
                self.counts.overflowed -= 1;
                self.bucket(number)[OVERFLOW].store(rest as u64, Ordering::Release);
            }
        }
    }
}
