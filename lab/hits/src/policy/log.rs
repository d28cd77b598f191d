//! A log of segments, S3-FIFO by the page.
//!
//! The second family of docs/hits.md, like the engine's log (`crates/core/store/src/log`), but with the rules of plain
//! S3-FIFO and a page cleaned at once, so that it can be compared with size classes under the same rules. Items lie one
//! behind the other; a longer one is cut into records. A page of the probation queue is emptied into the main queue
//! (used items) and the ghosts, the main queue's oldest page into its newest. Pages with many gaps are emptied first,
//! and no item leaves for that. Gaps are records of items that left by a record in another page.

use std::collections::VecDeque;

use super::costs::Costs;
use super::queue::{Nodes, Queue as Ghosts};
use super::s3fifo::{HITS_MAX, S3FifoShape};
use super::{Movement, Policy, Room, share_of};
use crate::trace::NO_KEY;

/// The longest record is one part in `LONGEST` of a page.
const LONGEST: u64 = 16;

/// The rest of an almost full page takes records of at least one part in `LONG` of the longest.
const LONG: u64 = 8;

/// Pages that only a cleaning may take.
const RESERVE: usize = 1;

/// A page is emptied for its gaps if no more than this part of it is in use.
const COMPACT_AT: f64 = 0.75;

/// Pages that may be cleaned in vain for one store: after that many, no item stays.
const IN_VAIN: usize = 68;

/// The parameters of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogShape {
    /// About how many pages the limit has.
    pub pages: u64,
    /// The two queues.
    pub queues: S3FifoShape,
}

impl Default for LogShape {
    fn default() -> Self {
        Self {
            pages: 128,
            queues: S3FifoShape::default(),
        }
    }
}

/// The two queues: a page is in one of them, and appends go to one of them.
const PROBATION: usize = 0;
const MAIN: usize = 1;

/// A record of an item, or a gap.
#[derive(Clone, Copy)]
struct Record {
    /// None: a gap.
    key: u32,
    bytes: u32,
    /// True for the record at which a cleaning judges the item.
    is_head: bool,
}

#[derive(Default)]
struct Page {
    queue: usize,
    records: Vec<Record>,
    end: u64,
    held: u64,
    closed: bool,
}

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    page: u32,
    at: u32,
}

/// The state of a key.
#[derive(Clone, Default)]
struct Entry {
    /// Its records, the head first. Empty: the store does not hold its item.
    places: Vec<Place>,
    charge: u32,
    uses: u8,
    /// The total that had entered the probation queue before it.
    entered: u64,
}

/// The store.
pub struct Log {
    limit: u64,
    costs: Costs,
    shape: S3FifoShape,
    longest: u64,
    entries: Vec<Entry>,
    pages: Vec<Page>,
    free: Vec<u32>,
    queues: [VecDeque<u32>; 2],
    open: [[Option<u32>; 2]; 2],
    nodes: Nodes,
    ghosts: Ghosts,
    entered: u64,
    used: u64,
    movement: Movement,
}

impl Log {
    /// An empty store, its capacity being the memory limit.
    pub fn new(room: &Room<'_>, shape: LogShape) -> Self {
        let costs = Costs::log(room.capacity, shape.pages, shape.queues.ghosts);
        Self::with_costs(room, &shape, costs)
    }

    pub(super) fn with_costs(room: &Room<'_>, shape: &LogShape, costs: Costs) -> Self {
        Self {
            limit: room.capacity,
            costs,
            shape: shape.queues,
            longest: (costs.page / LONGEST).max(costs.unit),
            entries: vec![Entry::default(); room.keys],
            pages: Vec::new(),
            free: Vec::new(),
            queues: Default::default(),
            open: Default::default(),
            nodes: Nodes::new(room.keys),
            ghosts: Ghosts::new(1),
            entered: 0,
            used: 0,
            movement: Movement::default(),
        }
    }

    /// Free pages, including those that were never used.
    fn pages_free(&self) -> usize {
        let used = self.pages.len() - self.free.len();
        let most = self.costs.pages(self.limit, self.movement.items + 1);
        most.saturating_sub(used)
    }

    fn pages_of(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    /// Appends a record for an item. None if there is no page.
    fn append(&mut self, queue: usize, record: Record) -> Option<Place> {
        let bytes = u64::from(record.bytes);
        let fits = |pages: &[Page], open: Option<u32>| {
            open.is_some_and(|page| pages[page as usize].end + bytes <= self.costs.page)
        };
        let [newer, older] = self.open[queue];
        let long = bytes * LONG >= self.longest;
        let page = if long && fits(&self.pages, older) {
            older?
        } else if fits(&self.pages, newer) {
            newer?
        } else {
            self.open_page(queue)?
        };
        let to = &mut self.pages[page as usize];
        let at = to.records.len() as u32;
        to.records.push(record);
        to.end += bytes;
        to.held += bytes;
        Some(Place { page, at })
    }

    /// Opens a new page for a queue, which keeps the one of its open pages that has more room beside it.
    fn open_page(&mut self, queue: usize) -> Option<u32> {
        if self.pages_free() == 0 {
            return None;
        }
        let page = self.free.pop().unwrap_or_else(|| {
            self.pages.push(Page::default());
            self.pages.len() as u32 - 1
        });
        self.pages[page as usize] = Page {
            queue,
            ..Page::default()
        };
        self.queues[queue].push_back(page);
        let [newer, older] = self.open[queue];
        let end = |page: Option<u32>| page.map_or(u64::MAX, |page| self.pages[page as usize].end);
        let (kept, closed) = if end(newer) > end(older) {
            (older, newer)
        } else {
            (newer, older)
        };
        self.open[queue] = [Some(page), kept];
        if let Some(closed) = closed {
            self.pages[closed as usize].closed = true;
        }
        Some(page)
    }

    /// Cleans until `wanted` pages are free. False if that is impossible.
    fn clean(&mut self, wanted: usize) -> bool {
        let mut cleaned = 0;
        while self.pages_free() < wanted {
            let Some(page) = self.choose() else {
                return false;
            };
            self.empty(page, cleaned > IN_VAIN);
            cleaned += 1;
            if cleaned > IN_VAIN + 2 * self.pages.len() {
                return false;
            }
        }
        true
    }

    /// The page to empty next. It is in no queue from then on.
    fn choose(&mut self) -> Option<u32> {
        let most = (self.costs.page as f64 * COMPACT_AT) as u64;
        let gappy = |&page: &u32| {
            let page = &self.pages[page as usize];
            page.closed && page.held <= most && page.held < page.end
        };
        let closed = self.queues.iter().flatten().copied();
        let emptiest = closed
            .filter(gappy)
            .min_by_key(|&page| self.pages[page as usize].held);
        let page = emptiest.or_else(|| self.oldest())?;
        let queue = &mut self.queues[self.pages[page as usize].queue];
        queue.retain(|&other| other != page);
        Some(page)
    }

    /// The oldest page of the queue that has more than its share, or else of the other queue.
    fn oldest(&self) -> Option<u32> {
        let total = self.pages_of(PROBATION) + self.pages_of(MAIN);
        let has_more = self.pages_of(PROBATION) as u64 > share_of(total as u64, self.shape.small);
        let first = if has_more {
            [PROBATION, MAIN]
        } else {
            [MAIN, PROBATION]
        };
        let oldest = |queue: usize| {
            let mut pages = self.queues[queue].iter().copied();
            pages.find(|&page| self.pages[page as usize].closed)
        };
        first.into_iter().find_map(oldest)
    }

    /// Moves the items that stay out of a page, and frees it. An item that finds no room leaves.
    fn empty(&mut self, page: u32, nothing_stays: bool) {
        let (queue, held) = {
            let page = &self.pages[page as usize];
            (page.queue, page.held)
        };
        let compacts = held as f64 <= self.costs.page as f64 * COMPACT_AT
            && held < self.pages[page as usize].end;
        for at in 0..self.pages[page as usize].records.len() {
            let record = self.pages[page as usize].records[at];
            if record.key == NO_KEY {
                continue;
            }
            let stays =
                !nothing_stays && (compacts || !record.is_head || self.judge(queue, record.key));
            let from = Place {
                page,
                at: at as u32,
            };
            let to = if compacts { queue } else { MAIN };
            if !stays || !self.transfer(from, record, to) {
                self.remove(record.key);
            }
        }
        self.free.push(page);
    }

    /// Whether an item stays, by S3-FIFO.
    fn judge(&mut self, queue: usize, key: u32) -> bool {
        let entry = &mut self.entries[key as usize];
        if queue == MAIN {
            let stays = entry.uses > 0;
            entry.uses = entry.uses.saturating_sub(1);
            return stays;
        }
        let stays = entry.uses >= self.shape.promotion;
        if stays {
            entry.uses = 0;
        } else {
            let (charge, most) = (entry.charge, share_of(self.limit, self.shape.ghosts));
            self.ghosts.push(&mut self.nodes, key, charge);
            self.ghosts.shrink(&mut self.nodes, most);
        }
        stays
    }

    /// Copies a record to another page. False if there is none.
    fn transfer(&mut self, from: Place, record: Record, queue: usize) -> bool {
        let Some(to) = self.append(queue, record) else {
            return false;
        };
        self.movement.moved += u64::from(record.bytes);
        let page = &mut self.pages[from.page as usize];
        page.records[from.at as usize].key = NO_KEY;
        page.held -= u64::from(record.bytes);
        let places = &mut self.entries[record.key as usize].places;
        let place = places.iter_mut().find(|place| **place == from);
        *place.expect("a record's key has its place") = to;
        true
    }

    /// An item's records become gaps.
    fn remove(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        for place in std::mem::take(&mut entry.places) {
            let page = &mut self.pages[place.page as usize];
            let record = &mut page.records[place.at as usize];
            record.key = NO_KEY;
            page.held -= u64::from(record.bytes);
        }
        self.used -= u64::from(entry.charge);
        self.movement.items -= 1;
    }

    /// Bytes of the records of an item.
    fn records(&self, charge: u32) -> Vec<u64> {
        let mut left = self.costs.record(self.costs.header, u64::from(charge));
        let mut records = Vec::new();
        while left > self.longest {
            records.push(self.longest);
            // Each piece but the head has a header of its own.
            left += self.costs.piece_header;
            left -= self.longest;
        }
        records.push(left);
        records
    }

    /// Pages to be taken for these records, at most.
    fn pages_for(&self, queue: usize, records: &[u64]) -> usize {
        let bytes: u64 = records.iter().sum();
        let newer = self.open[queue][0].map(|page| &self.pages[page as usize]);
        match newer {
            Some(page) if page.end + bytes <= self.costs.page => 0,
            // At the end of each page up to the length of the longest record stays empty.
            _ => bytes.div_ceil(self.costs.page + 1 - self.longest) as usize,
        }
    }

    fn store(&mut self, key: u32, charge: u32) {
        let returns = self.ghosts.has(&self.nodes, key);
        if returns {
            self.ghosts.remove(&mut self.nodes, key);
        }
        let queue = if returns { MAIN } else { PROBATION };
        let records = self.records(charge);
        // A cleaning may fill the open page of the main queue, so check again.
        loop {
            let needed = self.pages_for(queue, &records);
            if needed == 0 || self.pages_free() >= RESERVE + needed {
                break;
            }
            if !self.clean(RESERVE + needed) {
                return;
            }
        }
        let mut places = Vec::with_capacity(records.len());
        for (number, bytes) in records.into_iter().enumerate() {
            let record = Record {
                key,
                bytes: bytes as u32,
                is_head: number == 0,
            };
            places.extend(self.append(queue, record));
        }
        if queue == PROBATION {
            self.entered += u64::from(charge);
        }
        self.entries[key as usize] = Entry {
            places,
            charge,
            uses: 0,
            entered: self.entered,
        };
        self.used += u64::from(charge);
        self.movement.items += 1;
        self.movement.stored += u64::from(charge);
    }

    fn hit(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        let head = entry.places[0];
        if self.pages[head.page as usize].queue == PROBATION {
            let newest = self.shape.uncounted
                * (self.queues[PROBATION].len() as u64 * self.costs.page) as f64;
            if ((self.entered - entry.entered) as f64) < newest {
                return;
            }
        }
        entry.uses = (entry.uses + 1).min(HITS_MAX);
    }
}

impl Policy for Log {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if self.holds(key) {
            self.hit(key);
            return true;
        }
        if u64::from(charge) <= self.limit / 2 {
            self.store(key, charge);
        }
        false
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn holds(&self, key: u32) -> bool {
        !self.entries[key as usize].places.is_empty()
    }

    fn movement(&self) -> Option<Movement> {
        Some(self.movement)
    }
}

#[cfg(test)]
impl Log {
    /// Panics if the structures do not agree with each other.
    pub(super) fn audit(&self) {
        let mut held = 0;
        for (key, entry) in self.entries.iter().enumerate() {
            for (number, place) in entry.places.iter().enumerate() {
                let page = &self.pages[place.page as usize];
                let record = page.records[place.at as usize];
                assert_eq!((record.key, record.is_head), (key as u32, number == 0));
                held += u64::from(record.bytes);
            }
        }
        for &number in self.queues.iter().flatten() {
            let page = &self.pages[number as usize];
            let records = || page.records.iter();
            let bytes = |record: &Record| u64::from(record.bytes);
            assert_eq!(page.end, records().map(bytes).sum::<u64>());
            let alive = records().filter(|record| record.key != NO_KEY);
            assert_eq!(page.held, alive.map(bytes).sum::<u64>());
            assert!(page.end <= self.costs.page);
            held -= page.held;
        }
        assert_eq!(held, 0);
        let pages = self.pages_of(PROBATION) + self.pages_of(MAIN);
        assert_eq!(pages + self.free.len(), self.pages.len());
        assert!(pages <= self.costs.pages(self.limit, self.movement.items));
    }
}
