//! A second, plain implementation of the log's policy: which page is cleaned, which items stay, which leave.
//!
//! It has one thread. Words, pages and bytes are those of the engine, since evictions depend on them; there is no
//! index, no locks and no readers. The constants are repeated, so that the engine's do not change unnoticed.
//!
//! * this file: the operations of clients
//! * [`pages`]: records and pages, and the account of memory
//! * [`cleaning`]: which page is cleaned, and what happens to its items
//! * [`ghosts`]: ghosts of items that have left
//! * [`dead`]: items that have expired or were flushed
//!
//! Not in the model: numbers, and values that are made from others; an index that grows; values that are read in place.

mod cleaning;
mod dead;
mod ghosts;
mod pages;

use std::collections::{HashMap, VecDeque};

use cleaning::Cleaning;
use dead::Sweep;
use ghosts::Ghosts;
use pages::{Page, Records};

pub const PAGE: usize = 16 << 10;
const WORDS: usize = PAGE / 8;
/// A page with three recency bits for each 32 bytes and seven words.
const PAGE_COST: usize = PAGE + 3 * (PAGE / 32 / 8) + 7 * 8;
/// The longest record.
const LONGEST: usize = 1 << 10;
/// Bytes of each piece of a value in several pieces.
const PIECE: usize = LONGEST - 16;
const NEVER: u64 = u64::MAX;
const PROBATION: usize = 0;
const MAIN: usize = 1;

/// Which stream an item is appended to.
#[derive(Clone, Copy, PartialEq)]
pub enum Stream {
    New,
    Arriving,
    Kept,
}

impl Stream {
    fn queue(self) -> usize {
        match self {
            Stream::New | Stream::Arriving => PROBATION,
            Stream::Kept => MAIN,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Item {
    pub key: usize,
    hash: u64,
    shape: Shape,
    uses: u8,
    pub fetched: bool,
    expiry: u64,
    /// Its number among all stores.
    stored: u64,
}

/// How an item lies in records.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Shape {
    /// With the header that has room for any flags.
    wide: bool,
    key_len: usize,
    value_len: usize,
}

impl Shape {
    fn new(key_len: usize, value_len: usize, wide: bool) -> Self {
        let wide = wide || 16 + key_len + value_len > LONGEST;
        Self {
            wide,
            key_len,
            value_len,
        }
    }

    /// All bytes of the item.
    fn bytes(&self) -> usize {
        let header = if self.wide { 32 } else { 16 };
        header + self.key_len + self.value_len
    }

    fn pieces(&self) -> usize {
        match self.bytes() > LONGEST {
            true => self.value_len.div_ceil(self.piece()),
            false => 0,
        }
    }

    /// Bytes of the value in each piece but the last. That is not short beside the others: less than a quarter of their
    /// length, or else all have one length, in whole words.
    fn piece(&self) -> usize {
        let whole = self.value_len / PIECE;
        let last = self.value_len - whole * PIECE;
        match last > 0 && 4 * last < PIECE {
            true => self.value_len.div_ceil(whole + 1).next_multiple_of(8),
            false => PIECE,
        }
    }

    /// Words of the record with the header: with the value, or with a word for each piece of it.
    fn head_words(&self) -> usize {
        match self.pieces() {
            0 => words_of(self.bytes()),
            pieces => words_of(32 + self.key_len) + pieces,
        }
    }

    fn piece_words(&self, index: usize) -> usize {
        words_of(16 + (self.value_len - index * self.piece()).min(self.piece()))
    }
}

/// The words of a record.
fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8).max(4)
}

/// Where an item lies.
struct Place {
    head: (usize, usize),
    pieces: Vec<(usize, usize)>,
}

/// The counters by which the model and the engine are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub expired: u64,
    pub flushed: u64,
    pub evicted: [u64; 2],
    pub ghost_hits: u64,
    pub moved_to_main: u64,
    pub moved_within_main: u64,
    pub pages_cleaned: u64,
    pub bytes_moved: u64,
}

/// Memory for an item that is in no index yet.
pub struct Arriving {
    key: usize,
    hash: u64,
    shape: Shape,
    uses: u8,
    records: Vec<(usize, usize)>,
}

pub struct Model {
    pub now: u64,
    pub told: Told,
    /// Victims, in order.
    pub left: Vec<Item>,
    item_max: usize,
    limit: usize,
    /// Bytes up to which a lower limit may be exceeded until it is reached.
    ceiling: Option<usize>,
    charged: usize,
    earmarked: usize,
    /// Free pages, as of the last check.
    free: usize,
    returned: Vec<usize>,
    taken: usize,
    pages: Vec<Page>,
    places: HashMap<usize, Place>,
    queues: [VecDeque<usize>; 2],
    opened: u64,
    divided: bool,
    gappy: bool,
    /// The pages that each stream appends to, the newer and the older; and the words since the last cleaning.
    open: [[Option<usize>; 2]; 3],
    appended: [usize; 3],
    /// Of records that may go to the older page, the shortest since the newer was opened; 0: there was none.
    shortest: [usize; 3],
    /// Pages of records that are in no index yet, one for each of these: they are not cleaned.
    private: Vec<usize>,
    cleaning: Option<Cleaning>,
    first_due: u64,
    sweep: Option<Sweep>,
    /// Stores so far, those that a flush has removed, and those removed by a flush that sweeps have noted.
    stores: u64,
    flushed: u64,
    flush_noted: u64,
    /// Sixteen times the mean bytes of an item.
    lately: usize,
    /// Eight times the mean words that are kept of a page.
    kept_lately: usize,
    /// Bytes of items that were used too early and left, and pages' worth of them at which the main queue pays.
    refused: usize,
    due_at: usize,
    soon: u64,
    /// Bytes that the probation queue may have beyond three 64ths. At first it has ten of them.
    extra: Option<usize>,
    ghosts: Ghosts,
}

/// The fingerprints of ghosts of the main queue differ in these bits.
const OF_MAIN: u64 = 0x2a5;

impl Model {
    /// A model of `limit` bytes, of which other uses take `charged`, and which may be raised to `limit_max`.
    pub fn new(limit: usize, charged: usize, limit_max: usize, item_max: usize) -> Self {
        Self {
            now: 0,
            told: Told::default(),
            left: Vec::new(),
            item_max,
            limit,
            ceiling: None,
            charged,
            earmarked: 0,
            free: usize::MAX,
            returned: Vec::new(),
            taken: 0,
            pages: (0..limit_max / PAGE).map(|_| Page::default()).collect(),
            places: HashMap::new(),
            queues: Default::default(),
            opened: 0,
            divided: false,
            gappy: false,
            open: Default::default(),
            appended: [0; 3],
            shortest: [0; 3],
            private: Vec::new(),
            cleaning: None,
            first_due: NEVER,
            sweep: None,
            stores: 0,
            flushed: 0,
            flush_noted: 0,
            lately: 0,
            kept_lately: 0,
            refused: 0,
            due_at: 1,
            soon: NEVER,
            extra: None,
            ghosts: Ghosts::new(limit_max / 64 / 16),
        }
    }

    pub fn get(&mut self, key: usize) -> bool {
        let is_live = self.is_live(key);
        if is_live {
            let item = self.item(key);
            item.uses = 3.min(item.uses + 1);
            item.fetched = true;
        }
        is_live
    }

    /// A read that gives the item a new life.
    pub fn touch(&mut self, key: usize, expiry: u64) -> bool {
        let is_live = self.get(key);
        if is_live {
            self.item(key).expiry = expiry;
            self.note_due(self.places[&key].head.0, expiry);
        }
        is_live
    }

    pub fn delete(&mut self, key: usize) {
        if self.places.contains_key(&key) {
            self.take_out(key);
        }
    }

    /// Removes all items stored before.
    pub fn flush(&mut self) {
        self.flushed = self.stores;
    }

    /// False: there is no room.
    pub fn set(
        &mut self,
        key: usize,
        hash: u64,
        key_len: usize,
        value_len: usize,
        expiry: u64,
    ) -> bool {
        if value_len <= 4096 && self.overwrite(key, value_len, expiry) {
            return true;
        }
        let shape = Shape::new(key_len, value_len, false);
        // A ghost that comes back soon was missed.
        let stream = match self.is_missed(hash) {
            true => Stream::Kept,
            false => Stream::New,
        };
        let Some(records) = self.obtain(stream, &shape) else {
            return false;
        };
        let fresh = Arriving {
            key,
            hash,
            shape,
            uses: 0,
            records,
        };
        self.link(fresh, expiry);
        true
    }

    /// Overwrites the item in place if the new one takes the same room, which is a use. False if it does not.
    fn overwrite(&mut self, key: usize, value_len: usize, expiry: u64) -> bool {
        if !self.is_live(key) {
            return false;
        }
        let (page, _) = self.places[&key].head;
        let (counts, kept) = (self.pages[page].counts, self.kept(key));
        let stored = self.stores + 1;
        let item = self.item(key);
        let shape = Shape {
            value_len,
            ..item.shape
        };
        if item.shape.pieces() > 0 || words_of(shape.bytes()) != item.shape.head_words() {
            return false;
        }
        *item = Item {
            shape,
            uses: if counts { item.uses + 1 } else { kept }.min(2),
            fetched: false,
            expiry,
            stored,
            ..*item
        };
        self.stores = stored;
        self.note_due(page, expiry);
        true
    }

    /// Memory for a value that arrives later. `None`: there is no room.
    pub fn reserve(
        &mut self,
        key: usize,
        hash: u64,
        key_len: usize,
        value_len: usize,
    ) -> Option<Arriving> {
        let shape = Shape::new(key_len, value_len, true);
        let uses = u8::from(self.is_missed(hash));
        let records = self.obtain(Stream::Arriving, &shape)?;
        Some(Arriving {
            key,
            hash,
            shape,
            uses,
            records,
        })
    }

    /// The value has arrived.
    pub fn commit(&mut self, arriving: Arriving, expiry: u64) {
        self.link(arriving, expiry);
    }

    /// The value will not arrive.
    pub fn forget(&mut self, arriving: Arriving) {
        self.discard(&arriving.records);
    }

    fn is_missed(&mut self, hash: u64) -> bool {
        let held = (self.limit / self.mean().max(1)) as u64;
        let missed = if let Some(age) = self.ghosts.take(hash) {
            // A longer probation queue would have kept it, or only the main queue.
            if age <= held / 4 {
                self.extra = Some((self.extra() + 4 * self.mean()).min(self.limit / 64 * 45));
            } else if age > held && self.extra() > 0 {
                self.extra = Some(self.extra().saturating_sub(self.mean() * 3 / 4));
            }
            age <= self.soon
        } else {
            let age = self.ghosts.take(hash ^ OF_MAIN);
            let first = self.limit / 64 * 7;
            if age.is_some_and(|age| age <= held) && self.extra() > first {
                self.extra = Some(self.extra().saturating_sub(8 * self.mean()).max(first));
            }
            false
        };
        self.told.ghost_hits += u64::from(missed);
        missed
    }

    fn extra(&self) -> usize {
        self.extra.unwrap_or(self.limit / 64 * 7)
    }

    /// The probation queue's share, in 64ths.
    fn probation(&self) -> usize {
        (3 + self.extra() / (self.limit / 64)).min(48)
    }

    /// A record for each piece of an item, the head's first.
    fn obtain(&mut self, stream: Stream, shape: &Shape) -> Option<Records> {
        let mut records = Records::new();
        let head = std::iter::once(shape.head_words());
        let pieces = (0..shape.pieces()).map(|index| shape.piece_words(index));
        for words in head.chain(pieces) {
            let stream = match stream {
                Stream::Kept if !self.leaves_room_to_move(words) => Stream::New,
                _ => stream,
            };
            let Some((record, due)) = self
                .append(stream, words, false)
                .or_else(|| self.append_hard(stream, words))
            else {
                self.discard(&records);
                return None;
            };
            records.push(record);
            self.private.push(record.0);
            if due > 0 {
                let of = match stream {
                    Stream::Kept => Stream::New,
                    Stream::New | Stream::Arriving => stream,
                };
                self.keep_pace(due, self.room_in(of));
            }
        }
        Some(records)
    }

    fn discard(&mut self, records: &Records) {
        for &record in records {
            self.no_longer_private(record.0);
            self.free_record(record);
        }
    }

    fn no_longer_private(&mut self, page: usize) {
        let at = self.private.iter().position(|&other| other == page);
        self.private.swap_remove(at.expect("it was private"));
    }

    /// The item replaces the present one.
    fn link(&mut self, fresh: Arriving, expiry: u64) {
        let mut uses = fresh.uses;
        let is_live = self.is_live(fresh.key);
        if self.places.contains_key(&fresh.key) {
            let kept = self.kept(fresh.key);
            self.take_out(fresh.key);
            if is_live {
                uses = uses.max(kept).min(2);
            }
        }
        self.stores += 1;
        let item = Item {
            key: fresh.key,
            hash: fresh.hash,
            shape: fresh.shape,
            uses,
            fetched: false,
            expiry,
            stored: self.stores,
        };
        for &(page, _) in &fresh.records {
            self.no_longer_private(page);
        }
        self.put(item, &fresh.records);
    }

    /// The uses that an item passes on to the one that takes its place. Those of the time in which they do not count are
    /// lost, unless they were granted.
    fn kept(&self, key: usize) -> u8 {
        let page = &self.pages[self.places[&key].head.0];
        let item = self.item_of(key).expect("it is there");
        match page.queue {
            MAIN => item.uses.max(1),
            _ if !page.counts && item.fetched => 0,
            _ => item.uses,
        }
    }

    /// The keys held, and whether they are alive.
    pub fn keys(&self) -> impl Iterator<Item = (usize, bool)> {
        self.places.keys().map(|&key| (key, self.is_live(key)))
    }
}
