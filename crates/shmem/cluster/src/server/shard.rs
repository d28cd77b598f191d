//! A server's part of the store, and how it changes blocks that clients read and write beside it.
//!
//! The server locks a block as clients do, by a compare-swap of its tail. It never waits for one: an operation that
//! meets a block which a session is writing has changed nothing yet, and is tried again later ([`Wait`]).
//!
//! A new pair is written into a block whose tail is locked, its entry is stored, and only then the block becomes
//! readable; the block that the key had before is locked all the while. So a key has one readable block, and
//! the operation takes effect when the head is stored.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuthatch_base::sync::shim::fence;
use nuthatch_engine::{Clock, Item, Key, KeyHasher, Time};
use nuthatch_fabric::{Fabric, Word};

use super::copies::Copies;
use super::notices::Notices;
use super::pages::{Block, Pages};
use super::retire::Retirement;
use super::watch::Watch;
use crate::block::{
    self, CHECK, Found, HEAD, Header, META, RECENCY, Recency, SESSIONS_MAX, Tail, VERSION_MAX,
};
use crate::bucket::{Entry, Pointer};
use crate::checksum::Checksum;
use crate::config::{Clocks, Config};
use crate::control::{self, Control, Flushes};
use crate::layout::Layout;
use crate::message::BlockState;
use crate::stats::ServerStats;

/// Why an operation is to be tried again. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A session writes to the key's block.
    Block,
    /// Memory is on its way from another class.
    Memory,
}

/// The session number of servers, in tails.
const SERVER: usize = SESSIONS_MAX;

/// How often a block with the same tail cannot be locked before the server checks whether its writer is gone.
const PATIENCE: u32 = if cfg!(loom) { 1 } else { 64 };

/// The part of the memory's size that copies may take beside it before sessions wait for each other.
const COPIES_PART: usize = 64;

/// How often a read copies a block without its lock before it takes the lock.
const READS: u32 = 4;

/// The most blocks, beside those that sessions wait for, of which the server counts failed attempts.
const STUCK_MAX: usize = 1024;

/// The least number of new bytes after which an epoch ends, however small the store.
const EPOCH_BYTES: u64 = 64 * 64;

/// And the least part of the memory that they are. In a store that is nearly empty, pairs can come and go without
/// evictions, and without this limit the numbers of epochs would run out.
const EPOCH_PART: u64 = 64;

/// The most beginnings of epochs that are remembered. Above that, the server forgets those that make an age more exact
/// by less than a part of it. Of four years half as many are left.
const EPOCHS_KEPT: usize = 1 << 14;
const AGE_PART: u32 = 512;

/// A locked block.
#[derive(Clone, Copy)]
pub struct LockedBlock {
    pub pointer: Pointer,
    /// The version of its next content.
    pub version: u64,
    before: Tail,
}

impl LockedBlock {
    /// A block that is locked already, with its tail.
    pub fn of_locked(pointer: Pointer, tail: Tail) -> Self {
        Self {
            pointer,
            version: tail.version(),
            before: tail,
        }
    }
}

/// A block that a session writes to: a reservation.
#[derive(Clone, Copy)]
pub struct Pin {
    pub session: usize,
    /// Since this epoch.
    pub since: u32,
}

/// A server's part of the store.
pub struct Shard<F> {
    pub fabric: Arc<F>,
    pub layout: Layout,
    pub config: Config,
    pub server: usize,
    pub hasher: KeyHasher,
    pub checksum: Checksum,
    pub pages: Pages,
    /// Entries for which their bucket has no room.
    pub overflow: HashMap<usize, Vec<Entry>>,
    /// The counters. [`Shard::stats`] adds what is measured.
    pub counts: ServerStats,
    pub flushes: Flushes,
    /// When a generation is to begin of which not all PEs have heard, and the number of the notices that announce it.
    coming: Option<(Time, u64)>,
    /// Flushes since the sweep last began at the first bucket.
    pub flushes_unswept: u32,
    pub epoch: u32,
    /// When epochs began, with the first one of each moment: the present one's is the last.
    epochs: VecDeque<(u32, Time)>,
    /// Bytes of the blocks of pairs made in this epoch.
    made: u64,
    pub notices: Notices,
    /// Sessions that may be at a page that retires.
    pub page_watch: Watch,
    /// The clock, on the server whose clock decides.
    clock: Option<Clock>,
    pub retirement: Option<Retirement>,
    /// The last page that came to the class that waited for it, and the epoch in which it did.
    pub promised: Option<(usize, u32)>,
    /// Blocks that sessions hold.
    pub pins: HashMap<Block, Pin>,
    /// Values that sessions are taking.
    pub copies: Copies,
    pub sweep_at: usize,
    /// The highest version that any block had.
    version: u64,
    /// Blocks that could not be locked or read, with the tail that was met, and how often.
    stuck: HashMap<Pointer, (Tail, u32)>,
    /// Words of a block that is read or made.
    pub scratch: Vec<u64>,
    /// Writers are so fast that no copy without the lock is whole.
    #[cfg(test)]
    pub tears: bool,
}

impl<F: Fabric> Shard<F> {
    pub fn new(fabric: Arc<F>, layout: Layout, config: &Config) -> Self {
        let mut shard = Self {
            server: fabric.pe(),
            clock: (config.clocks == Clocks::FirstServers && fabric.pe() == 0).then(Clock::start),
            hasher: KeyHasher::seeded(config.seed),
            checksum: Checksum::seeded(!config.seed),
            pages: Pages::new(&layout, 0),
            overflow: HashMap::new(),
            counts: ServerStats::default(),
            flushes: Flushes::default(),
            coming: None,
            flushes_unswept: 0,
            epoch: 1,
            epochs: VecDeque::from([(1, Time(0))]),
            made: 0,
            notices: Notices::new(fabric.pes()),
            page_watch: Watch::new(0),
            retirement: None,
            promised: None,
            pins: HashMap::new(),
            copies: Copies::new(config.memory / COPIES_PART),
            sweep_at: 0,
            version: 0,
            stuck: HashMap::new(),
            scratch: Vec::new(),
            #[cfg(test)]
            tears: false,
            config: config.clone(),
            fabric,
            layout,
        };
        shard.set_limit(config.memory);
        shard
    }

    /// Bytes that do not depend on what is stored.
    fn fixed_bytes(&self) -> usize {
        self.layout.buckets * crate::bucket::WORDS * 8
    }

    /// Bytes taken of the limit.
    pub fn memory_used(&self) -> usize {
        let overflow = self.overflow.len() * 64 + self.counts.overflowed as usize * 8;
        let pages = self.pages.used * self.layout.page_words * 8;
        self.fixed_bytes() + pages + self.pages.link_bytes() + overflow
    }

    /// The statistics that clients are told.
    pub fn stats(&self) -> ServerStats {
        ServerStats {
            memory_limit: self.config.memory as u64,
            memory_used: self.memory_used() as u64,
            index_bytes: self.fixed_bytes() as u64,
            epoch: self.epoch.into(),
            ..self.counts
        }
    }

    /// Sets the limit in bytes, and the number of pages that it allows. The memory that pages need beside their words
    /// is part of it.
    pub fn set_limit(&mut self, bytes: usize) {
        let page = self.layout.page_words * 8;
        // The links of a page of the smallest blocks are the most that a page needs.
        let with_links = page + page / 64 * 16 / 4;
        let pages = bytes.saturating_sub(self.fixed_bytes()) / with_links;
        self.pages.limit = pages.clamp(1, self.layout.pages);
        self.config.memory = bytes;
    }

    /// The words of a block.
    #[inline(always)]
    pub fn words(&self, pointer: Pointer) -> &[Word] {
        let len = self.layout.block_words(pointer);
        self.fabric.local(self.layout.block(pointer), len)
    }

    /// A word of a block.
    #[inline(always)]
    pub fn word(&self, pointer: Pointer, word: usize) -> &Word {
        &self.words(pointer)[word]
    }

    fn load(&self, pointer: Pointer, word: usize) -> u64 {
        self.word(pointer, word).load(Ordering::Acquire)
    }

    fn tail_at(&self, pointer: Pointer) -> nuthatch_fabric::Address {
        let last = self.layout.block_words(pointer) - 1;
        self.layout.block(pointer).plus(last)
    }

    /// The block's tail.
    pub fn tail(&self, pointer: Pointer) -> Tail {
        let tail = self.fabric.fetch(self.server, self.tail_at(pointer));
        Tail(tail.expect("a server does not lose itself"))
    }

    fn swap_tail(&self, pointer: Pointer, tail: Tail) {
        let swapped = self.fabric.swap(self.server, self.tail_at(pointer), tail.0);
        swapped.expect("a server does not lose itself");
    }

    /// A version that no block had.
    pub fn next_version(&mut self, above: u64) -> u64 {
        self.version = self.version.max(above) + 1;
        assert!(self.version < VERSION_MAX, "the store has no version left");
        self.version
    }

    /// What the block says of its pair. Certain only while it is locked.
    pub fn header(&self, pointer: Pointer) -> Header {
        let mut words = [0; block::KEY];
        let block = self.words(pointer);
        for (into, word) in words.iter_mut().zip(block).skip(META) {
            *into = word.load(Ordering::Acquire);
        }
        Header::read(&words)
    }

    /// True if the block holds this key. Clients' writes do not change a block's key.
    pub fn holds(&self, pointer: Pointer, key: &[u8], key_words: &[u64]) -> bool {
        let header = self.header(pointer);
        let there = &self.words(pointer)[block::KEY..];
        // A header that is torn may tell of a key longer than the block.
        usize::from(header.key_len) == key.len()
            && key_words.len() <= there.len()
            && (key_words.iter().zip(there))
                .all(|(&word, there)| there.load(Ordering::Acquire) == word)
    }

    /// The key in a block that is locked, or whose key is known not to change.
    pub fn key_of(&self, pointer: Pointer) -> Vec<u8> {
        let header = self.header(pointer);
        let key = block::words_of(header.key_len.into());
        let words = self.words(pointer)[block::KEY..][..key].iter();
        let words: Vec<u64> = words.map(|word| word.load(Ordering::Acquire)).collect();
        bytemuck::cast_slice::<u64, u8>(&words)[..header.key_len.into()].to_vec()
    }

    /// Locks a block.
    pub fn lock(&mut self, pointer: Pointer) -> Result<LockedBlock, Wait> {
        let head = self.load(pointer, HEAD);
        let tail = self.tail(pointer);
        if tail.version() != head {
            self.suspect(pointer, tail);
            return Err(Wait::Block);
        }
        let locked = Tail::new(head + 1, SERVER);
        let at = self.tail_at(pointer);
        let found = self
            .fabric
            .compare_swap(self.server, at, tail.0, locked.0)
            .expect("a server does not lose itself");
        if found != tail.0 {
            return Err(Wait::Block);
        }
        // The content lies behind the lock, for readers that read in order.
        self.order();
        Ok(LockedBlock {
            pointer,
            version: head + 1,
            before: tail,
        })
    }

    /// A locked block is as it was before.
    pub fn abort(&mut self, held: LockedBlock) {
        self.swap_tail(held.pointer, held.before);
    }

    /// A locked block is readable, and can be locked again.
    pub fn finish(&mut self, held: LockedBlock) {
        self.order();
        self.word(held.pointer, HEAD)
            .store(held.version, Ordering::Release);
        self.version = self.version.max(held.version);
    }

    /// Orders what was written into blocks before what is stored from now on.
    pub fn order(&self) {
        // Release: pairs with the Acquire of a reader of a later word.
        fence(Ordering::Release);
        self.fabric.fence();
    }

    /// A locked block gets a version above another.
    pub fn raise(&mut self, held: LockedBlock, above: u64) -> LockedBlock {
        let version = self.next_version(above.max(held.version));
        self.swap_tail(held.pointer, Tail::new(version, SERVER));
        LockedBlock { version, ..held }
    }

    /// Copies a block into the scratch words. The copy of a locked block is whole.
    pub fn copy(&mut self, pointer: Pointer) {
        let mut words = std::mem::take(&mut self.scratch);
        words.clear();
        // In this order, the head first and the tail last.
        let block = self.words(pointer).iter();
        words.extend(block.map(|word| word.load(Ordering::Acquire)));
        self.scratch = words;
    }

    /// Where clients find a pair that was finished.
    pub fn known(&self, pointer: Pointer, version: u64) -> BlockState {
        BlockState {
            pointer,
            generation: self.pages.changes(self.layout.page_of(pointer)),
            tail: Tail::new(version, SERVER).0,
        }
    }

    /// Writes the content of a locked block.
    pub fn write(
        &mut self,
        held: LockedBlock,
        header: &Header,
        key: &[u8],
        value: &[&[u8]],
        was_read: bool,
    ) {
        let mut words = std::mem::take(&mut self.scratch);
        block::lay(&mut words, &self.checksum, held.version, header, key, value);
        let block = &self.words(held.pointer)[CHECK..];
        for (into, &word) in block.iter().zip(&words) {
            // Relaxed: readers of words of two versions find a wrong checksum; `finish` orders them.
            into.store(word, Ordering::Relaxed);
        }
        self.scratch = words;
        self.mark_used(held.pointer, held.version, was_read);
    }

    /// Writes the header of a locked block whose key and value are there, and the checksum over all of it.
    pub fn write_header(&mut self, held: LockedBlock, header: &Header) {
        for (at, word) in header.words().into_iter().enumerate() {
            self.word(held.pointer, META + at)
                .store(word, Ordering::Relaxed);
        }
        let end = header.content_end();
        let mut words = std::mem::take(&mut self.scratch);
        words.clear();
        let content = self.words(held.pointer)[META..end].iter();
        words.extend(content.map(|word| word.load(Ordering::Acquire)));
        let check = self.checksum.of(held.version, &words);
        self.word(held.pointer, CHECK)
            .store(check, Ordering::Relaxed);
        self.scratch = words;
    }

    /// A locked block has no pair any more.
    fn clear(&mut self, held: LockedBlock) {
        for word in [CHECK, META] {
            self.word(held.pointer, word).store(0, Ordering::Relaxed);
        }
        self.finish(held);
    }

    /// A locked block has no pair any more, and is free. It must be in the caller's hands.
    pub fn bury(&mut self, held: LockedBlock) {
        self.clear(held);
        let block = self.pages.block(held.pointer);
        self.pages.give(block);
    }

    /// A locked block stays locked, and is never used again: words of a PE that is gone may still arrive there. It is not
    /// readable again either: the late head is of an older version than the tail (invariant 4 of `block`). Were the block
    /// unlocked, a session that needs no checksum would believe late content whose head never comes.
    pub fn abandon(&mut self, held: LockedBlock) {
        let block = self.pages.block(held.pointer);
        self.pages.lose(block);
        self.counts.blocks_lost += 1;
    }

    /// The block's recency, which clients change, too.
    pub fn recency(&self, pointer: Pointer) -> Recency {
        Recency(self.load(pointer, RECENCY))
    }

    /// A pair of a version was used now.
    pub fn mark_used(&self, pointer: Pointer, version: u64, was_read: bool) {
        self.set_recency(pointer, Recency::new(self.epoch, version, was_read));
    }

    /// Notes for a session that it has used blocks: for each the pointer, its recency then, and its new recency. A
    /// recency that has changed since stays as it is, and so does a place that is no longer a block of this class.
    pub fn note_used(&self, words: &[u64]) {
        for used in words.as_chunks::<3>().0 {
            let [pointer, before, new] = *used;
            let pointer = Pointer::of_word(pointer);
            if self.pages.is_block(pointer) {
                let at = self.layout.block(pointer).plus(RECENCY);
                let swapped = self.fabric.compare_swap(self.server, at, before, new);
                swapped.expect("a server does not lose itself");
            }
        }
    }

    /// Sets when a pair was last used.
    pub fn set_recency(&self, pointer: Pointer, recency: Recency) {
        let at = self.layout.block(pointer).plus(RECENCY);
        let swapped = self.fabric.swap(self.server, at, recency.0);
        swapped.expect("a server does not lose itself");
    }

    /// Locks a block that is free and in the caller's hands, for a new pair.
    pub fn begin(&mut self, block: Block, above: u64) -> LockedBlock {
        let pointer = self.pages.pointer(block);
        let version = self.next_version(above);
        let before = Tail::new(version, SERVER);
        self.swap_tail(pointer, Tail::new(version, SERVER));
        self.order();
        LockedBlock {
            pointer,
            version,
            before,
        }
    }

    /// Makes the words of a page, to which no pointer leads, into the blocks of its class.
    pub fn make_blocks(&mut self, page: usize) {
        let version = self.next_version(0);
        for block in self.pages.blocks_of(page) {
            let pointer = self.pages.pointer(block);
            for word in [CHECK, META, RECENCY] {
                self.word(pointer, word).store(0, Ordering::Relaxed);
            }
            self.swap_tail(pointer, Tail::new(version, SERVER));
            self.word(pointer, HEAD).store(version, Ordering::Release);
        }
        self.pages.open(page);
    }

    /// Copies a whole, readable pair into the scratch words. If writers are so fast that no copy is whole, it copies
    /// under the block's lock.
    pub fn read(&mut self, pointer: Pointer, key: &[u8]) -> Result<Header, Wait> {
        for _ in 0..READS {
            self.copy(pointer);
            #[cfg(test)]
            if self.tears {
                self.scratch[CHECK] ^= 1;
            }
            if let Found::Pair(header) = block::judge(&self.scratch, key, Some(&self.checksum)) {
                return Ok(header);
            }
            if Tail(self.scratch[self.scratch.len() - 1]).version() != self.scratch[HEAD] {
                break;
            }
        }
        let held = self.lock(pointer)?;
        self.copy(pointer);
        self.abort(held);
        if let Some(tail) = self.scratch.last_mut() {
            *tail = held.before.0;
        }
        match block::judge(&self.scratch, key, Some(&self.checksum)) {
            Found::Pair(header) => Ok(header),
            Found::Torn | Found::Other => Err(Wait::Block),
        }
    }

    /// A block cannot be locked, or read. If that stays so, and its writer is gone, the pair is lost.
    #[cold]
    fn suspect(&mut self, pointer: Pointer, tail: Tail) {
        let session = tail.session();
        if session >= self.layout.all_sessions {
            return;
        }
        // Each session waits for one block at most. Other entries were met in passing, and may be forgotten.
        if self.stuck.len() > STUCK_MAX + self.layout.all_sessions {
            self.stuck.clear();
        }
        let (last, count) = self.stuck.entry(pointer).or_insert((tail, 0));
        if *last != tail {
            (*last, *count) = (tail, 0);
        }
        *count += 1;
        if !count.is_multiple_of(PATIENCE) {
            return;
        }
        self.stuck.remove(&pointer);
        if self.fabric.is_gone(self.layout.pe(session)) {
            self.recover(pointer, tail);
        }
    }

    /// Takes over the lock of a writer that is gone, and removes the pair: it is unknown how much of it was written.
    fn recover(&mut self, pointer: Pointer, tail: Tail) {
        let version = tail.version() + 1;
        let locked = Tail::new(version, SERVER);
        let at = self.tail_at(pointer);
        let found = self.fabric.compare_swap(self.server, at, tail.0, locked.0);
        if found != Ok(tail.0) {
            return;
        }
        let held = LockedBlock {
            pointer,
            version,
            before: tail,
        };
        self.counts.recovered += 1;
        self.take_out(pointer);
        self.unlist(pointer);
        self.abandon(held);
    }

    /// Takes a locked pair out of the table; its block is free.
    pub fn remove(&mut self, held: LockedBlock) {
        self.take_out(held.pointer);
        self.drop_block(held);
    }

    /// Takes the entry of a locked pair out of the table.
    fn take_out(&mut self, pointer: Pointer) {
        let key = self.key_of(pointer);
        let hash = self.hasher.hash(&key);
        self.take_entry(hash, pointer);
    }

    /// The block of a pair that is out of the table is free.
    pub fn drop_block(&mut self, held: LockedBlock) {
        self.unlist(held.pointer);
        self.bury(held);
    }

    /// The block of a pair that is out of the table is in the caller's hands.
    fn unlist(&mut self, pointer: Pointer) {
        self.counts.items -= 1;
        self.counts.item_bytes -= self.layout.block_words(pointer) as u64 * 8;
        let block = self.pages.block(pointer);
        self.pages.unlist(block);
    }

    /// A new pair's block is in the table.
    pub fn note_made(&mut self, pointer: Pointer) {
        self.counts.items += 1;
        let bytes = self.layout.block_words(pointer) as u64 * 8;
        self.counts.item_bytes += bytes;
        self.made += bytes;
        let block = self.pages.block(pointer);
        self.pages.list(block, self.epoch);
    }

    /// Begins another epoch if it is time to.
    pub fn advance_epoch(&mut self, now: Time) {
        let since = self.epoch_began();
        let old = now.0
            >= since
                .0
                .saturating_add(nuthatch_base::sync::clock::TICKS_PER_SECOND);
        // In bytes: of large pairs few make all of the memory new.
        let least = EPOCH_BYTES.max(self.config.memory as u64 / EPOCH_PART);
        let turned_over = self.made >= (self.counts.item_bytes / 16).max(least);
        if (turned_over || old) && self.epoch < u32::MAX {
            self.epoch += 1;
            self.made = 0;
            if now != since {
                self.epochs.push_back((self.epoch, now));
            }
            if self.epochs.len() > EPOCHS_KEPT {
                self.thin_epochs(now);
            }
        }
    }

    /// When the present epoch began.
    fn epoch_began(&self) -> Time {
        self.epochs.back().map_or(Time(0), |&(_, began)| began)
    }

    /// When an epoch began, or a little before.
    fn began(&self, epoch: u32) -> Time {
        let behind = self.epochs.partition_point(|&(first, _)| first <= epoch);
        let at = self.epochs.get(behind.saturating_sub(1));
        at.map_or(Time(0), |&(_, began)| began)
    }

    /// Forgets beginnings whose neighbours tell an age well enough. The first stays: all that came before the second
    /// began with it, or later.
    fn thin_epochs(&mut self, now: Time) {
        let (first, mut later) = (self.epochs.pop_front(), now);
        let mut kept = VecDeque::new();
        for &(epoch, began) in self.epochs.iter().rev() {
            let age = now.0.saturating_sub(began.0);
            if kept.is_empty() || later.0.saturating_sub(began.0) > age / AGE_PART {
                kept.push_front((epoch, began));
                later = began;
            }
        }
        first.into_iter().for_each(|first| kept.push_front(first));
        self.epochs = kept;
    }

    /// Another generation is to begin at a later moment. It takes effect at once if sessions leave everything to the
    /// server from that moment on, which they do from a moment on that they have heard of. Otherwise it takes effect
    /// once all have heard of it.
    pub fn flush_later(&mut self, at: Time) {
        match self.flushes.next {
            Some(heard) if heard <= at => self.flushes.next = Some(at),
            // Nobody has heard of it yet.
            _ => self.coming = Some((at, u64::MAX)),
        }
    }

    /// The pending flush is among the notices now: notes their number.
    pub fn flush_was_told(&mut self) {
        if let Some((_, number)) = &mut self.coming {
            *number = self.notices.latest();
        }
    }

    /// True if a flush's moment has come, but not all PEs have heard of it.
    pub fn is_a_flush_late(&self, now: Time) -> bool {
        self.coming.is_some_and(|(at, _)| at <= now)
    }

    /// True if all PEs have heard of every flush at a later moment.
    pub fn all_flushes_are_delivered(&self) -> bool {
        self.coming.is_none()
    }

    /// Begins the generation that is due.
    pub fn begin_generation_if_due(&mut self, now: Time) {
        self.begin_due(now);
        let coming = self
            .coming
            .filter(|&(_, number)| self.notices.is_delivered(number));
        if let Some((at, _)) = coming {
            (self.flushes.next, self.coming) = (Some(at), None);
            self.begin_due(now);
        }
    }

    fn begin_due(&mut self, now: Time) {
        self.flushes_unswept += u32::from(self.flushes.begin_due(now));
    }

    /// The control words that clients are to know.
    pub fn control(&self) -> Control {
        let coming = self.coming.map(|(at, _)| at);
        Control {
            epoch: self.epoch,
            flushes: Flushes {
                next: self.flushes.next.into_iter().chain(coming).min(),
                ..self.flushes
            },
            since: self.epoch_began(),
            clock: self.clock.map_or(Time(0), |clock| clock.now()),
        }
    }

    /// The present moment as the first server tells it, if its clock decides.
    pub fn told_time(&self) -> Option<Time> {
        if self.config.clocks == Clocks::Callers {
            return None;
        }
        let at = self.layout.control(0);
        Some(match self.clock {
            Some(clock) => clock.now(),
            None => Control::read_clock(self.fabric.local(at, control::WORDS)),
        })
    }

    /// A pair as a reply tells it.
    pub fn describe(&self, pointer: Pointer, header: &Header, version: u64, now: Time) -> Item {
        let recency = self.recency(pointer);
        Item {
            idle: now.since(self.began(recency.epoch())),
            ..header.item(recency.was_read(version))
        }
    }

    /// True if there is a pair of the present generation that has not expired.
    pub fn is_live(&self, header: &Header, now: Time) -> bool {
        header.is_live(now, self.flushes.generation)
    }

    /// The words of a key, as a block holds them.
    pub fn key_words(key: &Key<'_>) -> Vec<u64> {
        let mut words = Vec::with_capacity(32);
        block::push_bytes(&mut words, &[key.bytes()]);
        words
    }
}
