//! Allocation and eviction: when memory is short, the server evicts pairs of the oldest epoch, many at a time (the
//! slides' batch eviction).
//!
//! A pair is listed by the epoch in which it was last known to be used. Clients raise the epoch in the block itself,
//! by one compare-swap; the server reads it when the pair's turn comes, and lists it again if it was used since.

use std::sync::atomic::Ordering;

use nuthatch_engine::Time;
use nuthatch_fabric::Fabric;

use super::pages::{Block, State};
use super::shard::{Shard, Wait};
use crate::block::{KEY, Recency};
use crate::bucket::Pointer;

/// The most pairs that are evicted at once: fewer of a class that has few blocks.
const BATCH: usize = 16;

/// The part of a class's blocks that is evicted at once.
const BATCH_PART: usize = 64;

/// Batches that may be evicted for one block.
const BATCHES: usize = 4;

/// Pairs that are examined for a batch: so a batch is bounded, even if all of them were used since.
const EXAMINED_MAX: usize = 4 * BATCH;

/// A class takes a page from another whose oldest pairs are older by more epochs than this.
const EPOCHS_APART: u32 = 2;

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBlock {
    /// There may be one soon.
    Wait,
    /// All memory is in use, and nothing may or can be evicted.
    Full,
}

impl<F: Fabric> Shard<F> {
    /// A block of a class, in the caller's hands.
    pub fn allocate(&mut self, class: usize, now: Time) -> Result<Block, NoBlock> {
        if let Some(block) = self.take_or_add(class) {
            return Ok(block);
        }
        if let Some(page) = self.pages.idle_page(class)
            && !self.is_promised(page)
            && self.retire(page, Some(class))
        {
            return Err(NoBlock::Wait);
        }
        if !self.config.evicts {
            return Err(NoBlock::Full);
        }
        self.balance(class);
        for _ in 0..BATCHES {
            if self.pages.oldest(class).is_none() {
                break;
            }
            let evicted = self.evict_batch(class, now);
            if let Some(block) = self.pages.take(class) {
                return Ok(block);
            }
            // Free blocks of a page that retires are available to no class.
            if evicted.is_err() {
                return Err(NoBlock::Wait);
            }
        }
        match self.retirement {
            Some(_) => Err(NoBlock::Wait),
            None => Err(NoBlock::Full),
        }
    }

    fn take_or_add(&mut self, class: usize) -> Option<Block> {
        if let Some(block) = self.pages.take(class) {
            return Some(block);
        }
        let page = self.pages.add(class)?;
        self.make_blocks(page);
        self.pages.take(class)
    }

    /// Has a page of the class with the oldest pairs retire, if they are much older than this one's.
    fn balance(&mut self, class: usize) {
        if self.retirement.is_some() {
            return;
        }
        let own = self.pages.oldest(class).map(|(epoch, _)| epoch);
        let mut left = EXAMINED_MAX;
        for victim in self.pages.others_by_age(class) {
            // A class that stores no new pairs evicts none, so its pairs were not listed again.
            while let Some((epoch, block)) = self.pages.oldest(victim)
                && left > 0
                && self.list_again(block, epoch)
            {
                left -= 1;
            }
            let Some((epoch, block)) = self.pages.oldest(victim) else {
                continue;
            };
            let older = own.is_none_or(|own| epoch.saturating_add(EPOCHS_APART) < own);
            if older && self.retire(block.page(), Some(class)) {
                return;
            }
        }
    }

    /// Evicts a batch of a class. An error: every pair that could be evicted is being written.
    fn evict_batch(&mut self, class: usize, now: Time) -> Result<usize, Wait> {
        let batch = self.pages.blocks(class).div_ceil(BATCH_PART).min(BATCH);
        let mut evicted = 0;
        for examined in 0..EXAMINED_MAX {
            let Some((epoch, block)) = self.pages.oldest(class) else {
                break;
            };
            // When too many were used since, the oldest are evicted all the same.
            let spared = examined < EXAMINED_MAX - BATCH && self.list_again(block, epoch);
            if spared {
                continue;
            }
            match self.evict(block, now) {
                Ok(()) => evicted += 1,
                // A session writes to it now, so it is in use.
                Err(_) => {
                    self.pages.unlist(block);
                    self.pages.list(block, self.epoch);
                }
            }
            if evicted >= batch {
                break;
            }
        }
        match evicted {
            0 => Err(Wait::Block),
            evicted => Ok(evicted),
        }
    }

    /// Lists a pair by the epoch in its block, if that is later. True if it is.
    fn list_again(&mut self, block: Block, listed: u32) -> bool {
        let used = self.recency(self.pages.pointer(block)).epoch();
        let used = used.min(self.epoch);
        if used <= listed {
            return false;
        }
        self.pages.unlist(block);
        self.pages.list(block, used);
        true
    }

    /// Evicts a listed pair. An error: a session writes to it, or it is live and nothing may be evicted.
    pub fn evict(&mut self, block: Block, now: Time) -> Result<(), Wait> {
        let pointer = self.pages.pointer(block);
        let held = self.lock(pointer)?;
        let header = self.header(pointer);
        let unread = !self.recency(pointer).was_read(held.version - 1);
        match self.is_live(&header, now) {
            true if !self.config.evicts => {
                self.abort(held);
                return Err(Wait::Block);
            }
            true => {
                self.counts.evictions += 1;
                self.counts.evicted_unfetched += u64::from(unread);
            }
            false => {
                self.counts.expired += 1;
                self.counts.expired_unfetched += u64::from(unread);
            }
        }
        self.remove(held);
        Ok(())
    }

    /// Searches some buckets for pairs that have expired or were flushed. True if the sweep has come round.
    pub fn sweep(&mut self, now: Time, buckets: usize) -> bool {
        for _ in 0..buckets {
            for entry in self.entries(self.sweep_at) {
                self.counts.swept += 1;
                self.sweep_one(entry.pointer(), now);
            }
            self.sweep_at += 1;
            if self.sweep_at == self.layout.buckets {
                self.sweep_at = 0;
                self.flushes_unswept = 0;
                return true;
            }
        }
        false
    }

    fn sweep_one(&mut self, pointer: Pointer, now: Time) {
        // What is read without the lock may be torn; what is read under it decides.
        if self.is_live(&self.header(pointer), now) {
            return;
        }
        let Ok(held) = self.lock(pointer) else {
            return;
        };
        if self.is_live(&self.header(pointer), now) {
            return self.abort(held);
        }
        let unread = !self.recency(pointer).was_read(held.version - 1);
        self.counts.expired += 1;
        self.counts.expired_unfetched += u64::from(unread);
        self.remove(held);
    }

    /// Empties a page a little further: pairs move to free blocks of their class, or are evicted.
    pub fn empty_page(&mut self, page: usize, now: Time) {
        for block in self.pages.blocks_of(page) {
            let State::Listed(_) = self.pages.state(block) else {
                continue;
            };
            self.list_again_if_used(block);
            let listed = |shard: &Self| matches!(shard.pages.state(block), State::Listed(_));
            match self.room_for(page, block, now) {
                Some(free) if self.move_pair(block, free).is_err() => self.pages.give(free),
                Some(_) => {}
                None if listed(self) => {
                    // If a session writes to it, it is evicted next time.
                    let _ = self.evict(block, now);
                }
                None => {}
            }
        }
    }

    fn list_again_if_used(&mut self, block: Block) {
        if let State::Listed(epoch) = self.pages.state(block) {
            self.list_again(block, epoch);
        }
    }

    /// A free block elsewhere for a pair of a page that is emptied. If none is free, older pairs of its class are
    /// evicted for it, if there are any.
    fn room_for(&mut self, page: usize, block: Block, now: Time) -> Option<Block> {
        let class = self.pages.class_of(page)?;
        if let Some(free) = self.pages.take(class) {
            return Some(free);
        }
        let (oldest, _) = self.pages.oldest(class)?;
        let is_older = matches!(self.pages.state(block), State::Listed(epoch) if epoch > oldest);
        if !is_older || !self.config.evicts || self.evict_batch(class, now).is_err() {
            return None;
        }
        // The batch may have evicted pairs of this page, or the pair itself.
        let listed = matches!(self.pages.state(block), State::Listed(_));
        listed.then(|| self.pages.take(class)).flatten()
    }

    /// Moves a pair to a free block in the caller's hands.
    fn move_pair(&mut self, from: Block, to: Block) -> Result<(), Wait> {
        let pointer = self.pages.pointer(from);
        let State::Listed(epoch) = self.pages.state(from) else {
            return Err(Wait::Block);
        };
        let old = self.lock(pointer)?;
        let header = self.header(pointer);
        let recency = self.recency(pointer);
        let hash = self.hasher.hash(&self.key_of(pointer));
        let new = self.begin(to, old.version);
        let content = KEY..header.content_end();
        let (from, to_words) = (self.words(pointer), self.words(new.pointer));
        for (word, into) in from[content.clone()].iter().zip(&to_words[content]) {
            // Relaxed: both blocks are locked.
            into.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.write_header(new, &header);
        // The pair moves, but no session has used it.
        let was_read = recency.was_read(old.version - 1);
        let recency = Recency::new(recency.epoch(), new.version, was_read);
        self.set_recency(new.pointer, recency);
        self.move_entry(hash, pointer, new.pointer);
        self.finish(new);
        self.drop_block(old);
        self.counts.items += 1;
        self.counts.item_bytes += self.layout.block_words(new.pointer) as u64 * 8;
        self.pages.list(to, epoch);
        Ok(())
    }
}
