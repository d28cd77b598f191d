//! Recomputes the invariants of a server's part of the store. No client may access it meanwhile, but its last words may be
//! under way.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use nuthatch_engine::AuditError;
use nuthatch_fabric::Fabric;

use super::pages::State;
use super::shard::Shard;
use crate::block::{self, Found, HEAD};
use crate::bucket::{ENTRIES, Entry, OVERFLOW, Pointer};
use crate::stats::ServerStats;

/// Entries of an overflow that go into a message.
const OVERFLOW_TOLD: usize = 256;

/// Attempts after which a block is taken for one that stays locked.
const ATTEMPTS: u32 = 10_000;

impl<F: Fabric> Shard<F> {
    /// Copies a block, once all words have come that a session has left under way there.
    fn copy_settled(&mut self, pointer: Pointer) {
        for attempt in 0..ATTEMPTS {
            self.copy(pointer);
            if self.tail(pointer).version() == self.scratch[HEAD] {
                return;
            }
            self.fabric.pause(attempt);
        }
    }

    /// Every invariant of blocks, buckets and pages; an error names the one that does not hold.
    pub fn audit(&mut self) -> Result<(), AuditError> {
        self.pages.audit()?;
        let (mut seen, mut items, mut bytes) = (HashSet::new(), 0, 0);
        for bucket in 0..self.layout.buckets {
            let outside = self.overflow.get(&bucket).map_or(0, Vec::len);
            let at = self.layout.bucket(bucket).plus(OVERFLOW);
            let told = self.fabric.local(at, 1)[0].load(Ordering::Relaxed);
            if told != outside as u64 {
                return Err(format!("bucket {bucket} tells {told} of {outside} overflowed").into());
            }
            for entry in self.entries(bucket) {
                let pointer = entry.pointer();
                let key = self.key_of(pointer);
                let hash = self.hasher.hash(&key);
                if self.layout.bucket_of(hash) != bucket || !entry.matches(hash) {
                    return Err(format!("bucket {bucket} has an entry of another's").into());
                }
                if !seen.insert(key.clone()) {
                    return Err("block 3: a key has two pairs".into());
                }
                self.copy_settled(pointer);
                let words = &self.scratch;
                let found = block::judge(words, &key, Some(&self.checksum));
                if !matches!(found, Found::Pair(_)) {
                    let (head, tail) = (words[HEAD], self.tail(pointer));
                    return Err(format!("block 3: a pair is not readable: {head} {tail:?}").into());
                }
                let state = self.pages.state(self.pages.block(pointer));
                if !matches!(state, State::Listed(epoch) if epoch <= self.epoch) {
                    return Err(format!("pages 1: a pair's block is {state:?}").into());
                }
                items += 1;
                bytes += words.len() as u64 * 8;
            }
        }
        let ServerStats {
            items: counted,
            item_bytes,
            ..
        } = self.counts;
        if (items, bytes) != (counted, item_bytes) {
            return Err(format!(
                "{items} pairs of {bytes} bytes, counted {counted} of {item_bytes}"
            )
            .into());
        }
        self.audit_dead()
    }

    /// A block without a pair in the table is not readable, whatever a dead writer's late words did to it.
    fn audit_dead(&self) -> Result<(), AuditError> {
        for page in 0..self.pages.started() {
            if self.pages.class_of(page).is_none() {
                continue;
            }
            for block in self.pages.blocks_of(page) {
                let pointer = self.pages.pointer(block);
                let tail = self.tail(pointer);
                let head = self.word(pointer, HEAD).load(Ordering::Relaxed);
                let readable = tail.version() == head && self.header(pointer).key_len != 0;
                let listed = matches!(self.pages.state(block), State::Listed(_));
                if readable != listed {
                    let state = self.pages.state(block);
                    return Err(format!("block 3: {state:?} block with {tail:?}").into());
                }
            }
        }
        Ok(())
    }

    /// Entries of a bucket's overflow whose tags are not below one, in the order of their tags; as many as go into a
    /// message. A pair keeps its tag, so a pair that exists all the time is sent once, whatever is added or removed
    /// between two messages. (One tag cannot have more entries than a message holds, unless the hash is defective.)
    pub fn overflow_of(&self, bucket: usize, from: u64) -> Vec<u64> {
        let entries = self.overflow.get(&bucket).into_iter().flatten();
        let mut words: Vec<u64> = entries
            .filter(|entry| entry.tag() >= from)
            .map(|entry| entry.0)
            .collect();
        words.sort_unstable();
        if words.len() > OVERFLOW_TOLD {
            // A tag's entries go together.
            let cut = Entry(words[OVERFLOW_TOLD]).tag();
            let whole = words.partition_point(|&word| Entry(word).tag() < cut);
            words.truncate(if whole > 0 { whole } else { OVERFLOW_TOLD });
        }
        words
    }

    /// Of each class: pages, blocks, free blocks.
    pub fn classes(&self) -> Vec<u64> {
        let classes = 0..self.layout.classes.len();
        let counts = classes.map(|class| self.pages.count(class));
        counts
            .flat_map(|(pages, blocks, free)| [pages as u64, blocks as u64, free as u64])
            .collect()
    }

    /// Resets the counters that only rise.
    pub fn reset_counts(&mut self) {
        self.counts = ServerStats {
            items: self.counts.items,
            item_bytes: self.counts.item_bytes,
            overflowed: self.counts.overflowed,
            blocks_lost: self.counts.blocks_lost,
            ..ServerStats::default()
        };
    }
}

const _: () = assert!(OVERFLOW == ENTRIES);
