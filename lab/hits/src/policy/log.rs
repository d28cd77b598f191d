//! A log: items one behind the other in pages, and a policy of the engine's log, or plain S3-FIFO by the page.
//!
//! The second family of docs/hits.md. The policies are those of the store ([`nuthatch_store::eviction::log`]), or plain
//! S3-FIFO, so that the log can be compared with size classes under the same rules; a page is emptied at once. Items
//! lie one behind the other; a longer one is cut into records. What stays of a page goes to the main queue. Pages with
//! many gaps are emptied first, and no item leaves for that. Gaps are records of items that left by a record in another
//! page.

use std::collections::VecDeque;

use nuthatch_store::eviction::log::mean::MeanSize;
use nuthatch_store::eviction::log::{
    Candidate, Evicted, Ghost, LogPolicy, LogPolicyKind, Memory, Next, Queue, Queues, UNIT,
};

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

/// Records that the engine looks at together, and takes the mean size of.
const RUN: usize = 16;

/// Pages of the engine's log, and ghosts for each item that it holds.
pub const PAGES: u64 = 256;
const GHOSTS: f64 = 3.0;

/// The parameters of a log with plain S3-FIFO.
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

const QUEUES: [Queue; 2] = [Queue::Probation, Queue::Main];

/// Plain S3-FIFO.
struct Plain(S3FifoShape);

impl LogPolicy for Plain {
    fn admit(&self, _: &Ghost, _: &Memory) -> Queue {
        Queue::Main
    }

    fn note_queues(&self, _: &Queues, _: &Memory) {}

    fn uncounted(&self, probation: usize) -> usize {
        (probation as f64 * self.0.uncounted) as usize
    }

    fn probation(&self, _: &Memory) -> usize {
        UNIT
    }

    fn next(&self, [probation, main]: [usize; 2], _: &Memory) -> Next {
        let has_more = probation as u64 > share_of((probation + main) as u64, self.0.small);
        Next::of(match has_more {
            true => Queue::Probation,
            false => Queue::Main,
        })
    }

    fn note_emptying(&self, _: Queue, _: [usize; 2], _: &Memory) {}

    fn note_stay(&self, _: Queue) {}

    fn judge(&self, queue: Queue, item: &Candidate, _: &Memory) -> Option<u8> {
        match queue {
            Queue::Probation => (item.uses >= self.0.promotion).then_some(0),
            Queue::Main => item.uses.checked_sub(1),
        }
    }

    fn note_eviction(&self, _: Queue, _: &Evicted) {}
}

/// A record of an item, or a gap.
#[derive(Clone, Copy)]
struct Record {
    /// None: a gap.
    key: u32,
    bytes: u32,
    /// True for the record at which a cleaning judges the item.
    is_head: bool,
}

struct Page {
    queue: Queue,
    /// Items that had left when it was opened.
    left: u64,
    /// True if uses of its items count.
    counts: bool,
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
    fetched: bool,
    /// As a ghost: the queue that it left, and how many items had left before.
    ghost: Option<(Queue, u64)>,
}

/// The store.
pub struct Log {
    limit: u64,
    costs: Costs,
    policy: Box<dyn LogPolicy>,
    /// Capacities that the ghosts may take, and the queues whose items become ghosts.
    ghosts_share: f64,
    ghosts_of: &'static [Queue],
    mean: MeanSize,
    /// Items that have left.
    left: u64,
    /// False until memory was short for the first time.
    divided: bool,
    longest: u64,
    entries: Vec<Entry>,
    pages: Vec<Page>,
    free: Vec<u32>,
    queues: [VecDeque<u32>; 2],
    open: [[Option<u32>; 2]; 2],
    nodes: Nodes,
    ghosts: Ghosts,
    used: u64,
    movement: Movement,
}

impl Log {
    /// An empty store with plain S3-FIFO, its capacity being the memory limit.
    pub fn new(room: &Room<'_>, shape: LogShape) -> Self {
        let costs = Costs::log(room.capacity, shape.pages, shape.queues.ghosts);
        Self::with_costs(room, &shape, costs)
    }

    /// An empty store with a policy of the engine's log.
    pub fn of(room: &Room<'_>, pages: u64, kind: &LogPolicyKind) -> Self {
        let ghosts = if kind.ghosts { GHOSTS } else { 0.0 };
        let costs = Costs::log(room.capacity, pages, ghosts);
        let policy = (kind.build)();
        Self::deciding(room, costs, policy, ghosts, &QUEUES)
    }

    pub(super) fn with_costs(room: &Room<'_>, shape: &LogShape, costs: Costs) -> Self {
        let policy = Box::new(Plain(shape.queues));
        Self::deciding(room, costs, policy, shape.queues.ghosts, &QUEUES[..1])
    }

    fn deciding(
        room: &Room<'_>,
        costs: Costs,
        policy: Box<dyn LogPolicy>,
        ghosts_share: f64,
        ghosts_of: &'static [Queue],
    ) -> Self {
        Self {
            limit: room.capacity,
            costs,
            policy,
            ghosts_share,
            ghosts_of,
            mean: MeanSize::default(),
            left: 0,
            divided: false,
            longest: (costs.page / LONGEST).max(costs.unit),
            entries: vec![Entry::default(); room.keys],
            pages: Vec::new(),
            free: Vec::new(),
            queues: Default::default(),
            open: Default::default(),
            nodes: Nodes::new(room.keys),
            ghosts: Ghosts::new(1),
            used: 0,
            movement: Movement::default(),
        }
    }

    /// What the policy is told of the memory.
    fn memory(&self) -> Memory {
        Memory {
            limit: self.limit as usize,
            page: self.costs.page as usize,
            mean: self.mean.bytes(),
        }
    }

    /// How many pages each queue has.
    fn lengths(&self) -> [usize; 2] {
        self.queues.each_ref().map(VecDeque::len)
    }

    /// Free pages, including those that were never used.
    fn pages_free(&self) -> usize {
        let used = self.pages.len() - self.free.len();
        let most = self.costs.pages(self.limit, self.movement.items + 1);
        most.saturating_sub(used)
    }

    /// Appends a record for an item. None if there is no page.
    fn append(&mut self, queue: Queue, record: Record) -> Option<Place> {
        let bytes = u64::from(record.bytes);
        let fits = |pages: &[Page], open: Option<u32>| {
            open.is_some_and(|page| pages[page as usize].end + bytes <= self.costs.page)
        };
        let [newer, older] = self.open[queue as usize];
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
    fn open_page(&mut self, queue: Queue) -> Option<u32> {
        if self.pages_free() == 0 {
            return None;
        }
        let fresh = Page {
            queue,
            left: self.left,
            counts: false,
            records: Vec::new(),
            end: 0,
            held: 0,
            closed: false,
        };
        let page = match self.free.pop() {
            Some(page) => {
                self.pages[page as usize] = fresh;
                page
            }
            None => {
                self.pages.push(fresh);
                self.pages.len() as u32 - 1
            }
        };
        self.queues[queue as usize].push_back(page);
        self.note_opened();
        let [newer, older] = self.open[queue as usize];
        let end = |page: Option<u32>| page.map_or(u64::MAX, |page| self.pages[page as usize].end);
        let (kept, closed) = if end(newer) > end(older) {
            (older, newer)
        } else {
            (newer, older)
        };
        self.open[queue as usize] = [Some(page), kept];
        if let Some(closed) = closed {
            self.pages[closed as usize].closed = true;
        }
        Some(page)
    }

    /// Uses count from now on in the pages of the probation queue that are no longer among its newest. Tells the policy
    /// how long the queues are.
    fn note_opened(&mut self) {
        let [probation, main] = self.lengths();
        let uncounted = self.policy.uncounted(probation);
        let older = self.queues[0].iter().rev().skip(uncounted);
        for &page in older.take_while(|_| self.divided) {
            let page = &mut self.pages[page as usize];
            if std::mem::replace(&mut page.counts, true) {
                break;
            }
            for record in page.records.iter().filter(|record| record.is_head) {
                // Granted uses are not forgotten.
                if record.key != NO_KEY && self.entries[record.key as usize].fetched {
                    self.entries[record.key as usize].uses = 0;
                }
            }
        }
        let oldest = self.queues[1]
            .iter()
            .map(|&page| &self.pages[page as usize]);
        let since = oldest.into_iter().find(|page| page.closed);
        let queues = Queues {
            pages: [probation, main],
            turnover: self.left - since.map_or(self.left, |page| page.left),
            grain: 0,
        };
        self.policy.note_queues(&queues, &self.memory());
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
        if !std::mem::replace(&mut self.divided, true) {
            self.divide();
        }
        let most = (self.costs.page as f64 * COMPACT_AT) as u64;
        let gappy = |&page: &u32| {
            let page = &self.pages[page as usize];
            page.closed && page.held <= most && page.held < page.end
        };
        let closed = self.queues.iter().flatten().copied();
        let emptiest = closed
            .filter(gappy)
            .min_by_key(|&page| self.pages[page as usize].held);
        if let Some(page) = emptiest {
            let queue = &mut self.queues[self.pages[page as usize].queue as usize];
            queue.retain(|&other| other != page);
            return Some(page);
        }
        self.oldest()
    }

    /// The oldest page of the queue that the policy names, or else of the other queue. It is out of its queue.
    fn oldest(&mut self) -> Option<u32> {
        let memory = self.memory();
        let first = loop {
            let next = self.policy.next(self.lengths(), &memory);
            if !self.stays(&next) {
                break next.queue;
            }
            self.policy.note_stay(next.queue);
        };
        let other = QUEUES[1 - first as usize];
        for queue in [first, other] {
            let pages = &mut self.queues[queue as usize];
            let closed = |&page: &u32| self.pages[page as usize].closed;
            if let Some(at) = pages.iter().position(closed) {
                let page = pages.remove(at);
                let left = self.lengths();
                self.policy.note_emptying(queue, left, &memory);
                return page;
            }
        }
        None
    }

    /// If enough items of the page that comes next were used, each pays a use, and the page goes to the back of its
    /// queue.
    fn stays(&mut self, next: &Next) -> bool {
        let Some(stays_at) = next.stays_at else {
            return false;
        };
        let queue = &self.queues[next.queue as usize];
        let closed = |&page: &u32| self.pages[page as usize].closed;
        let Some(at) = queue.iter().position(closed) else {
            return false;
        };
        let page = queue[at];
        let used = |record: &&Record| {
            record.is_head && record.key != NO_KEY && self.entries[record.key as usize].uses > 0
        };
        let records = &self.pages[page as usize].records;
        let used: Vec<u32> = records
            .iter()
            .filter(used)
            .map(|record| record.key)
            .collect();
        if used.len() < stays_at {
            return false;
        }
        for key in used {
            self.entries[key as usize].uses -= 1;
        }
        let queue = &mut self.queues[next.queue as usize];
        queue.remove(at);
        queue.push_back(page);
        self.pages[page as usize].left = self.left;
        true
    }

    /// Memory is short for the first time: all pages but the policy's share become the main queue.
    fn divide(&mut self) {
        let total = self.queues[0].len();
        let old = total - total * self.policy.probation(&self.memory()) / UNIT;
        for _ in 0..old {
            let page = self.queues[0].pop_front();
            let page = page.expect("there are as many");
            if self.pages[page as usize].closed {
                self.pages[page as usize].queue = Queue::Main;
                self.queues[1].push_back(page);
            } else {
                self.queues[0].push_back(page);
            }
        }
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
            if at % RUN == 0 {
                self.note_sizes(page, at);
            }
            let record = self.pages[page as usize].records[at];
            if record.key == NO_KEY {
                continue;
            }
            let from = Place {
                page,
                at: at as u32,
            };
            let stays = !nothing_stays
                && (compacts || !record.is_head || self.judge(queue, record.key, from));
            let to = if compacts { queue } else { Queue::Main };
            if !stays || !self.transfer(from, record, to) {
                self.evict(queue, record.key);
            }
        }
        self.free.push(page);
    }

    /// Bytes of an item with its header.
    fn bytes(&self, key: u32) -> usize {
        let charge = u64::from(self.entries[key as usize].charge);
        self.costs.record(self.costs.header, charge) as usize
    }

    /// Notes the sizes of the items that begin in a run of records.
    fn note_sizes(&mut self, page: u32, at: usize) {
        let records = &self.pages[page as usize].records;
        let run = &records[at..records.len().min(at + RUN)];
        let heads = run
            .iter()
            .filter(|record| record.is_head && record.key != NO_KEY);
        let sizes: Vec<usize> = heads.map(|record| self.bytes(record.key)).collect();
        self.mean.note(sizes.len(), sizes.iter().sum());
    }

    /// Whether an item stays.
    fn judge(&mut self, queue: Queue, key: u32, from: Place) -> bool {
        let place = u64::from(from.page) << 32 | u64::from(from.at);
        let mixed = (u64::from(key) << 20 ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let item = Candidate {
            uses: self.entries[key as usize].uses,
            bytes: self.bytes(key),
            random: (mixed >> u32::BITS) as u32,
        };
        let left = self.policy.judge(queue, &item, &self.memory());
        if let Some(left) = left {
            self.entries[key as usize].uses = left;
        }
        left.is_some()
    }

    /// An item leaves a queue, and becomes a ghost.
    fn evict(&mut self, queue: Queue, key: u32) {
        let bytes = self.bytes(key);
        let entry = &mut self.entries[key as usize];
        let fetched = entry.fetched;
        self.policy
            .note_eviction(queue, &Evicted { bytes, fetched });
        self.left += 1;
        if self.ghosts_share > 0.0 && self.ghosts_of.contains(&queue) {
            entry.ghost = Some((queue, self.left));
            let most = share_of(self.limit, self.ghosts_share);
            self.ghosts.push(&mut self.nodes, key, entry.charge);
            self.ghosts.shrink(&mut self.nodes, most);
        }
        self.remove(key);
    }

    /// The queue of an item that is stored.
    fn admit(&mut self, key: u32) -> Queue {
        let (queue, left) = match self.entries[key as usize].ghost {
            Some(ghost) if self.ghosts.has(&self.nodes, key) => ghost,
            _ => return Queue::Probation,
        };
        self.ghosts.remove(&mut self.nodes, key);
        let age = self.left - left;
        self.policy.admit(&Ghost { queue, age }, &self.memory())
    }

    /// Copies a record to another page. False if there is none.
    fn transfer(&mut self, from: Place, record: Record, queue: Queue) -> bool {
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
    fn pages_for(&self, queue: Queue, records: &[u64]) -> usize {
        let bytes: u64 = records.iter().sum();
        let newer = self.open[queue as usize][0].map(|page| &self.pages[page as usize]);
        match newer {
            Some(page) if page.end + bytes <= self.costs.page => 0,
            // At the end of each page up to the length of the longest record stays empty.
            _ => bytes.div_ceil(self.costs.page + 1 - self.longest) as usize,
        }
    }

    fn store(&mut self, key: u32, charge: u32) {
        let queue = self.admit(key);
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
        self.entries[key as usize] = Entry {
            places,
            charge,
            ..Entry::default()
        };
        self.used += u64::from(charge);
        self.movement.items += 1;
        self.movement.stored += u64::from(charge);
    }

    /// True if uses of an item count where it lies.
    fn counts_uses(&self, entry: &Entry) -> bool {
        let head = entry.places.first();
        head.is_some_and(|head| {
            let page = &self.pages[head.page as usize];
            page.counts || page.queue == Queue::Main
        })
    }

    /// Uses that an item keeps when another value takes the place of its own, as in the engine.
    fn uses_kept(&self, entry: &Entry) -> u8 {
        let head = entry.places.first();
        let of_main = head.map(|head| self.pages[head.page as usize].queue == Queue::Main);
        match (of_main, self.counts_uses(entry)) {
            (Some(true), _) => entry.uses.max(1),
            (Some(false), false) if entry.fetched => 0,
            _ => entry.uses,
        }
    }

    /// A new value takes the place of an old one of the same size.
    fn overwrite(&mut self, key: u32) {
        let entry = &self.entries[key as usize];
        let uses = match self.counts_uses(entry) {
            true => entry.uses + 1,
            false => self.uses_kept(entry),
        };
        let entry = &mut self.entries[key as usize];
        // An item that was not fetched has fewer than the most: its next hit is to mark it.
        entry.uses = uses.min(HITS_MAX - 1);
        entry.fetched = false;
    }

    fn hit(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.uses = (entry.uses + 1).min(HITS_MAX);
        entry.fetched = true;
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

    fn write(&mut self, key: u32, charge: u32) {
        let entry = &self.entries[key as usize];
        if self.holds(key) && entry.charge == charge {
            self.overwrite(key);
        } else {
            let kept = self.uses_kept(entry).min(HITS_MAX - 1);
            if self.holds(key) {
                self.remove(key);
            }
            self.store(key, charge);
            self.entries[key as usize].uses = kept;
        }
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
        let pages = self.lengths().iter().sum::<usize>();
        assert_eq!(pages + self.free.len(), self.pages.len());
        assert!(pages <= self.costs.pages(self.limit, self.movement.items));
    }
}
