//! The policy of the log, once more and as plainly as it can be said: which page is cleaned, what stays, what leaves.
//!
//! For one thread, and for items that lie in one piece. Words, pages and bytes are the engine's, since what leaves depends
//! on them; the index, locks and readers are not here. Its constants are said again, so that the engine's do not change
//! unnoticed.
//!
//! Not here: values in several pieces, values that arrive in pieces, touches and numbers, flushes, a limit that changes, and
//! what the background does.

use std::collections::{HashMap, VecDeque};

pub const PAGE: usize = 16 << 10;
const WORDS: usize = PAGE / 8;
/// A page with three recency bits for each 32 bytes and seven words.
const PAGE_COST: usize = PAGE + 3 * (PAGE / 32 / 8) + 7 * 8;
/// The longest record.
const LONGEST: usize = 1 << 10;
const NEVER: u64 = u64::MAX;
const PROBATION: usize = 0;
const MAIN: usize = 1;

/// What a page is cleaned for.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Order,
    Dead,
    Room,
}

enum Step {
    Freed,
    Looked,
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Item {
    pub key: usize,
    hash: u64,
    bytes: usize,
    uses: u8,
    pub fetched: bool,
    expiry: u64,
}

/// A record: an item, or a gap.
#[derive(Clone, Copy)]
struct Record {
    at: usize,
    words: usize,
    item: Option<Item>,
}

#[derive(Default)]
struct Page {
    /// When it was opened; 0: it is free.
    sequence: u64,
    records: Vec<Record>,
    end: usize,
    held: usize,
    queue: usize,
    closed: bool,
    counts: bool,
    due: u64,
    ghosts: u64,
}

#[derive(Clone, Copy)]
struct Cleaning {
    page: usize,
    queue: usize,
    compacts: bool,
    at: usize,
}

/// A page that is swept for what is dead; how long the others live yet, in words.
struct Sweep {
    page: usize,
    sequence: u64,
    at: usize,
    from: u64,
    living: Vec<(u64, usize, u64)>,
}

/// What the model and the engine are compared by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub expired: u64,
    pub evicted: [u64; 2],
    pub ghost_hits: u64,
    pub moved_to_main: u64,
    pub moved_within_main: u64,
    pub pages_cleaned: u64,
    pub bytes_moved: u64,
}

pub struct Model {
    pub now: u64,
    pub told: Told,
    /// Victims, in order.
    pub left: Vec<Item>,
    limit: usize,
    charged: usize,
    earmarked: usize,
    /// Free pages, as they were when somebody looked last.
    free: usize,
    returned: Vec<usize>,
    taken: usize,
    pages: Vec<Page>,
    places: HashMap<usize, (usize, usize)>,
    queues: [VecDeque<usize>; 2],
    opened: u64,
    divided: bool,
    gappy: bool,
    /// The pages that new items and kept ones go to: the newer and the older; and the words since somebody cleaned.
    open: [[Option<usize>; 2]; 2],
    appended: [usize; 2],
    /// The page of a new item that is in no index yet: it is not cleaned.
    private: Option<usize>,
    cleaning: Option<Cleaning>,
    first_due: u64,
    sweep: Option<Sweep>,
    /// Sixteen times the mean bytes of an item.
    lately: usize,
    refused: usize,
    soon: u64,
    /// Buckets of eight ghosts, the newest first: fingerprint and epoch.
    ghosts: Vec<[Option<(u64, u64)>; 8]>,
    buckets: usize,
    ghosts_inserted: u64,
}

/// The words of a record.
fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8).max(4)
}

impl Model {
    /// Of so many bytes, of which so many are taken by others.
    pub fn new(limit: usize, charged: usize) -> Self {
        Self {
            now: 0,
            told: Told::default(),
            left: Vec::new(),
            limit,
            charged,
            earmarked: 0,
            free: usize::MAX,
            returned: Vec::new(),
            taken: 0,
            pages: (0..limit / PAGE).map(|_| Page::default()).collect(),
            places: HashMap::new(),
            queues: Default::default(),
            opened: 0,
            divided: false,
            gappy: false,
            open: Default::default(),
            appended: [0; 2],
            private: None,
            cleaning: None,
            first_due: NEVER,
            sweep: None,
            lately: 0,
            refused: 0,
            soon: NEVER,
            ghosts: vec![[None; 8]; limit / 64 / 16],
            buckets: 0,
            ghosts_inserted: 0,
        }
    }

    // What clients do.

    pub fn get(&mut self, key: usize) -> bool {
        let now = self.now;
        let Some(item) = self.item(key).filter(|item| item.expiry > now) else {
            return false;
        };
        item.uses = 3.min(item.uses + 1);
        item.fetched = true;
        true
    }

    pub fn delete(&mut self, key: usize) {
        if self.places.contains_key(&key) {
            self.take_out(key);
        }
    }

    /// False: there is no room.
    pub fn set(&mut self, key: usize, hash: u64, bytes: usize, expiry: u64) -> bool {
        let (now, words) = (self.now, words_of(bytes));
        if let Some(&(page, _)) = self.places.get(&key) {
            let kept = u8::from(self.pages[page].queue == MAIN);
            let item = self.item(key).expect("it has a place");
            // What takes the same room is written over, which is a use.
            if item.expiry > now && words_of(item.bytes) == words {
                item.uses = (item.uses + 1).max(kept).min(2);
                (item.fetched, item.bytes, item.expiry) = (false, bytes, expiry);
                self.note_due(page, expiry);
                return true;
            }
        }
        // A ghost that comes back soon was missed.
        let missed = self.take_ghost(hash).is_some_and(|age| age <= self.soon);
        self.told.ghost_hits += u64::from(missed);
        let queue = usize::from(missed);
        let Some((page, due)) = self
            .append(queue, words, false)
            .or_else(|| self.append_hard(queue, words))
        else {
            return false;
        };
        let number = self.pages[page].records.len() - 1;
        if due > 0 {
            self.private = Some(page);
            if self.free < 2 {
                let more = self.sweep_words(8 * due);
                self.clean(if more { Need::Dead } else { Need::Room }, false, 8 * due);
            } else if self.gappy {
                self.clean(Need::Order, false, 3 * due);
            }
            self.private = None;
        }
        let mut uses = 0;
        if let Some(&(page, _)) = self.places.get(&key) {
            let kept = u8::from(self.pages[page].queue == MAIN);
            let old = self.take_out(key);
            if old.expiry > now {
                uses = old.uses.max(kept).min(2);
            }
        }
        let item = Item {
            key,
            hash,
            bytes,
            uses,
            fetched: false,
            expiry,
        };
        self.put(page, number, item);
        true
    }

    /// The keys that are there, dead or alive.
    pub fn keys(&self) -> impl Iterator<Item = (usize, bool)> {
        self.places.iter().map(|(&key, &(page, at))| {
            let number = self.pages[page]
                .records
                .partition_point(|record| record.at < at);
            let item = self.pages[page].records[number].item.expect("it is there");
            (key, item.expiry > self.now)
        })
    }

    // Records.

    fn record(&mut self, key: usize) -> Option<&mut Record> {
        let &(page, at) = self.places.get(&key)?;
        let records = &mut self.pages[page].records;
        let number = records.partition_point(|record| record.at < at);
        Some(&mut records[number])
    }

    fn item(&mut self, key: usize) -> Option<&mut Item> {
        self.record(key)?.item.as_mut()
    }

    fn put(&mut self, page: usize, number: usize, item: Item) {
        let record = &mut self.pages[page].records[number];
        record.item = Some(item);
        self.places.insert(item.key, (page, record.at));
        self.note_due(page, item.expiry);
    }

    fn take_out(&mut self, key: usize) -> Item {
        let record = self.record(key).expect("it is there");
        let (item, words) = (record.item.take().expect("it is an item"), record.words);
        let (page, _) = self.places.remove(&key).expect("it has a place");
        self.pages[page].held -= words;
        item
    }

    /// The page that a record is appended to, and the words that are to be cleaned for.
    fn append(&mut self, queue: usize, words: usize, moves: bool) -> Option<(usize, usize)> {
        let [newer, older] = self.open[queue]
            .map(|page| page.is_some_and(|page| self.pages[page].end + words <= WORDS));
        let long = words * 8 >= LONGEST / 8;
        let number = usize::from(older && long);
        if number == 0 && !newer {
            self.open_page(queue, moves)?;
        }
        self.appended[queue] += words;
        let due = if self.appended[queue] >= 16 {
            std::mem::take(&mut self.appended[queue])
        } else {
            0
        };
        let number = self.open[queue][number].expect("it is open");
        let page = &mut self.pages[number];
        page.records.push(Record {
            at: page.end,
            words,
            item: None,
        });
        page.end += words;
        page.held += words;
        Some((number, due))
    }

    /// Where no page is free: cleans until there is room.
    fn append_hard(&mut self, queue: usize, words: usize) -> Option<(usize, usize)> {
        let (mut cleaned, mut swept, mut in_vain) = (0, 0, 0);
        while cleaned < 68 {
            if let Some(appended) = self.append(queue, words, false) {
                return Some(appended);
            }
            let due = swept < 8 && self.sweep_words(WORDS);
            swept += usize::from(due);
            // After four pages in vain nothing stays.
            match self.clean(
                if due { Need::Dead } else { Need::Room },
                cleaned >= 4,
                WORDS,
            ) {
                Step::Nothing if due => {}
                Step::Looked => {}
                Step::Freed => cleaned += 1,
                Step::Nothing => {
                    in_vain += 1;
                    if in_vain > 2 {
                        return None;
                    }
                    for page in self.open.iter_mut().flatten().filter_map(Option::take) {
                        self.pages[page].closed = true;
                    }
                }
            }
        }
        None
    }

    // Pages.

    fn used(&self) -> usize {
        self.charged + (self.taken - self.returned.len()) * PAGE_COST
    }

    fn note_free(&mut self) {
        let room = self.limit.saturating_sub(self.used() + self.earmarked) / PAGE_COST;
        self.free = room.min(self.returned.len() + self.pages.len() - self.taken);
    }

    /// One page is kept for what is moved.
    fn take_page(&mut self, moves: bool) -> Option<usize> {
        let wanted = if moves {
            PAGE_COST
        } else {
            self.earmarked + 2 * PAGE_COST
        };
        if self.used() + wanted > self.limit {
            return None;
        }
        self.returned.pop().or_else(|| {
            (self.taken < self.pages.len()).then(|| {
                self.taken += 1;
                self.taken - 1
            })
        })
    }

    fn open_page(&mut self, queue: usize, moves: bool) -> Option<()> {
        let page = self.take_page(moves);
        self.note_free();
        let page = page?;
        self.opened += 1;
        self.pages[page] = Page {
            sequence: self.opened,
            queue,
            due: NEVER,
            ghosts: self.ghosts_inserted,
            ..Page::default()
        };
        self.queues[queue].push_back(page);
        if queue == PROBATION && self.divided {
            self.count_uses();
        }
        let pages = self.queues.iter().flatten();
        let held: usize = pages.clone().map(|&page| self.pages[page].held).sum();
        let pages = pages.count();
        self.gappy = pages >= 16 && 2 * held < pages * WORDS;
        self.note_lap();
        // Of the two that were open, the one with more room stays.
        let [newer, older] = self.open[queue];
        let (kept, full) = match (newer, older) {
            (Some(one), Some(other)) if self.pages[one].end > self.pages[other].end => {
                (older, newer)
            }
            _ => (newer, older),
        };
        self.open[queue] = [Some(page), kept];
        if let Some(full) = full {
            self.pages[full].closed = true;
        }
        Some(())
    }

    /// Uses in the newer half of the probation queue do not count.
    fn count_uses(&mut self) {
        let probation = &self.queues[PROBATION];
        let older = probation.len() - probation.len() * 32 / 64;
        for &page in probation.iter().take(older) {
            let page = &mut self.pages[page];
            if !std::mem::replace(&mut page.counts, true) {
                let items = page
                    .records
                    .iter_mut()
                    .filter_map(|record| record.item.as_mut());
                items
                    .filter(|item| item.fetched)
                    .for_each(|item| item.uses = 0);
            }
        }
    }

    /// A ghost comes back soon that was away for less than seven eighths of a lap of the main queue.
    fn note_lap(&mut self) {
        let [probation, main] = [0, 1].map(|queue| self.queues[queue].len());
        if main == 0 {
            self.soon = NEVER;
            return;
        }
        let oldest = self.queues[MAIN]
            .iter()
            .find(|&&page| self.pages[page].closed);
        let since = oldest.map_or(self.ghosts_inserted, |&page| self.pages[page].ghosts);
        let pages = main + probation;
        let wanted = (pages - pages * 10 / 64) as u64;
        let lap = (self.ghosts_inserted - since) * wanted / main as u64;
        let on_probation = (probation * PAGE / self.mean().max(1)) as u64;
        self.soon = (lap * 56 / 64).saturating_sub(on_probation / 2);
    }

    // Cleaning.

    fn choose(&mut self, need: Need) -> Option<Cleaning> {
        if need == Need::Room && !self.divided {
            self.divided = true;
            self.divide();
        }
        let ready = |page: usize| self.pages[page].closed && self.private != Some(page);
        // The page with the most gaps, if it has enough.
        let most = WORDS * if need == Need::Order { 32 } else { 48 } / 64;
        let pages = self.queues.iter().enumerate();
        let pages = pages.flat_map(|(queue, pages)| {
            pages
                .iter()
                .enumerate()
                .map(move |(at, &page)| (queue, at, page))
        });
        let gappy = pages.filter(|&(.., page)| {
            let Page { held, end, .. } = self.pages[page];
            held <= most && held < end && ready(page)
        });
        if let Some((queue, at, page)) = gappy.min_by_key(|&(.., page)| self.pages[page].held) {
            self.queues[queue].remove(at);
            let at = if self.pages[page].held == 0 {
                self.pages[page].end
            } else {
                0
            };
            return Some(Cleaning {
                page,
                queue,
                compacts: true,
                at,
            });
        }
        if need != Need::Room {
            return None;
        }
        // The oldest of the queue that has more than its part. What was used too early has the main queue pay, too.
        let [probation, main] = [0, 1].map(|queue| self.queues[queue].len());
        let order = match probation * 64 > (probation + main) * 10 && self.refused <= PAGE {
            true => [PROBATION, MAIN],
            false => [MAIN, PROBATION],
        };
        let oldest = |queue: usize| {
            Some((
                queue,
                self.queues[queue].iter().position(|&page| ready(page))?,
            ))
        };
        let (queue, at) = order.into_iter().find_map(oldest)?;
        let page = self.queues[queue].remove(at)?;
        self.refused = match queue {
            MAIN => self.refused.saturating_sub(PAGE).min(PAGE),
            _ if self.refused > PAGE => 0,
            _ => self.refused,
        };
        Some(Cleaning {
            page,
            queue,
            compacts: false,
            at: 0,
        })
    }

    /// Memory is short for the first time: all but the newest become the main queue.
    fn divide(&mut self) {
        let all = std::mem::take(&mut self.queues[PROBATION]);
        let mut old = all.len() - all.len() * 10 / 64;
        for page in all {
            let queue = if old > 0 && self.pages[page].closed {
                MAIN
            } else {
                PROBATION
            };
            old -= usize::from(queue == MAIN);
            self.pages[page].queue = queue;
            self.queues[queue].push_back(page);
        }
    }

    fn clean(&mut self, need: Need, all_leave: bool, budget: usize) -> Step {
        let Some(mut cleaning) = self.cleaning.take().or_else(|| self.choose(need)) else {
            return Step::Nothing;
        };
        let end = cleaning.at + budget;
        while cleaning.at < end {
            // As many records as the budget has room for are looked at together.
            let record = (self.mean() / 8).max(1);
            let count = ((end - cleaning.at) / record + 1).clamp(4, 16);
            let (run, over) = self.run(cleaning.page, cleaning.at, count);
            let items: Vec<Item> = run.iter().filter_map(|record| record.item).collect();
            self.note_sizes(&items);
            for record in run {
                if let Some(item) = record.item {
                    self.clean_item(&cleaning, item, record, all_leave);
                }
            }
            if over {
                let page = cleaning.page;
                assert_eq!(self.pages[page].held, 0, "something is left in a page");
                self.pages[page].sequence = 0;
                self.returned.push(page);
                self.note_free();
                self.told.pages_cleaned += 1;
                return Step::Freed;
            }
            cleaning.at = run_end(&self.pages[cleaning.page], cleaning.at, count);
        }
        self.cleaning = Some(cleaning);
        Step::Looked
    }

    /// Some records of a page, and whether its end is reached.
    fn run(&self, page: usize, at: usize, count: usize) -> (Vec<Record>, bool) {
        let records = &self.pages[page].records;
        let from = records.partition_point(|record| record.at < at);
        let run: Vec<Record> = records[from..].iter().take(count).copied().collect();
        let over = run.len() < count;
        (run, over)
    }

    fn clean_item(&mut self, cleaning: &Cleaning, item: Item, record: Record, all_leave: bool) {
        if item.expiry <= self.now {
            self.take_out(item.key);
            self.told.expired += 1;
            return;
        }
        let place = (cleaning.page * WORDS + record.at) as u64;
        let left = match cleaning.compacts {
            true => Some(item.uses),
            false if all_leave => None,
            false => self.judge(cleaning.queue, &item, place),
        };
        let to = if cleaning.compacts {
            cleaning.queue
        } else {
            MAIN
        };
        if let Some(left) = left
            && let Some((page, _)) = self.append(to, record.words, true)
        {
            let number = self.pages[page].records.len() - 1;
            self.take_out(item.key);
            let uses = if item.fetched { left } else { left.min(2) };
            self.put(page, number, Item { uses, ..item });
            self.told.bytes_moved += 8 * record.words as u64;
            match cleaning.queue {
                _ if cleaning.compacts => {}
                PROBATION => self.told.moved_to_main += 1,
                _ => self.told.moved_within_main += 1,
            }
            return;
        }
        self.take_out(item.key);
        self.left.push(item);
        self.told.evicted[cleaning.queue] += 1;
        if cleaning.queue == PROBATION {
            self.insert_ghost(item.hash);
            self.refused += if item.fetched { item.bytes } else { 0 };
        }
    }

    /// The uses that are left to an item that stays.
    fn judge(&self, queue: usize, item: &Item, place: u64) -> Option<u8> {
        let mean = self.mean();
        // What takes less than a quarter of the mean goes to the main queue without a use.
        if queue == PROBATION && item.uses == 0 && 4 * item.bytes >= mean.max(1) {
            return None;
        }
        // What takes more than twice the mean pays two, what takes less than the mean one or none, by lot.
        let lot = (item.hash ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let pays = match item.bytes > 2 * mean {
            true => 2,
            false => u8::from(item.bytes as u64 > (lot * mean as u64) >> 32),
        };
        item.uses.checked_sub(pays)
    }

    fn mean(&self) -> usize {
        self.lately / 16
    }

    fn note_sizes(&mut self, items: &[Item]) {
        if items.is_empty() {
            return;
        }
        let new = items.iter().map(|item| item.bytes).sum::<usize>() / items.len();
        self.lately = if self.lately == 0 {
            16 * new
        } else {
            self.lately - self.lately / 16 + new
        };
        // Three ghosts for each item, in a 64th of the memory at most.
        let ghosts = 3 * (self.limit / self.mean().max(1));
        let buckets = ghosts.div_ceil(8).clamp(1, self.ghosts.len());
        if 16 * buckets < 2 * (16 * self.buckets).max(1) {
            return;
        }
        let more = 16 * (buckets - self.buckets);
        if self.used() + more + PAGE_COST <= self.limit {
            (self.charged, self.earmarked) = (self.charged + more, 0);
            self.buckets = buckets;
        } else {
            self.earmarked = more + PAGE_COST;
        }
    }

    // Ghosts.

    fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets as u128) >> 64) as usize
    }

    fn insert_ghost(&mut self, hash: u64) {
        if self.buckets == 0 {
            return;
        }
        let (bucket, epoch) = (
            self.bucket(hash),
            self.ghosts_inserted / self.buckets as u64 % 16,
        );
        self.ghosts_inserted += 1;
        let bucket = &mut self.ghosts[bucket];
        bucket.rotate_right(1);
        bucket[0] = Some(((hash % 4096).max(1), epoch));
    }

    /// About how many ghosts came after this one; then it is none any more.
    fn take_ghost(&mut self, hash: u64) -> Option<u64> {
        if self.buckets == 0 {
            return None;
        }
        let (bucket, buckets) = (self.bucket(hash), self.buckets as u64);
        let known = |ghost: &&mut Option<(u64, u64)>| {
            ghost.is_some_and(|(print, _)| print == (hash % 4096).max(1))
        };
        let (_, epoch) = self.ghosts[bucket].iter_mut().find(known)?.take()?;
        let now = self.ghosts_inserted / buckets % 16;
        let epochs = now.wrapping_sub(epoch) % 16;
        Some((epochs * buckets + self.ghosts_inserted % buckets).saturating_sub(buckets / 2))
    }

    // The dead.

    fn note_due(&mut self, page: usize, tick: u64) {
        if tick != NEVER {
            self.pages[page].due = self.pages[page].due.min(tick);
            self.first_due = self.first_due.min(tick);
        }
    }

    /// Sweeps pages that are due; true if there are more.
    fn sweep_words(&mut self, words: usize) -> bool {
        let mut looked = 0;
        while self.first_due <= self.now {
            if looked >= words {
                return true;
            }
            match self.sweep_run() {
                Some(run) => looked += run,
                None => return false,
            }
        }
        false
    }

    /// Sixteen records of the page that has been due for longest.
    fn sweep_run(&mut self) -> Option<usize> {
        if self.sweep.is_none() {
            let listed = (0..self.taken).filter(|&page| self.pages[page].sequence != 0);
            let due = listed.map(|page| (self.pages[page].due, page)).min();
            self.first_due = due.map_or(NEVER, |(tick, _)| tick);
            let (_, page) = due.filter(|&(tick, _)| tick <= self.now)?;
            self.pages[page].due = NEVER;
            let sequence = self.pages[page].sequence;
            self.sweep = Some(Sweep {
                page,
                sequence,
                at: 0,
                from: self.now,
                living: Vec::new(),
            });
        }
        let mut sweep = self.sweep.take()?;
        let (page, at) = (sweep.page, sweep.at);
        let (run, over) = match self.pages[page].sequence == sweep.sequence {
            true => self.run(page, at, 16),
            false => (Vec::new(), true),
        };
        let mut dead = Vec::new();
        for item in run.iter().filter_map(|record| record.item) {
            if item.expiry <= self.now {
                dead.push(item.key);
            } else if item.expiry != NEVER {
                let lives = last_of(item.expiry.saturating_sub(sweep.from));
                sweep
                    .living
                    .push((lives, item.bytes.div_ceil(8), item.expiry));
            }
        }
        let looked = if over {
            // It is due again when an eighth of it has died.
            sweep.living.sort_unstable();
            let all: usize = sweep.living.iter().map(|&(_, words, _)| words).sum();
            let mut left = (WORDS / 8).clamp(1, all.max(1));
            let latest = sweep.living.iter().map(|&(.., expiry)| expiry).max();
            for &(lives, words, _) in &sweep.living {
                left = left.saturating_sub(words);
                if left == 0 {
                    self.note_due(page, (sweep.from + lives).min(latest.unwrap_or(NEVER)));
                    break;
                }
            }
            self.pages[page].end.saturating_sub(at).max(1)
        } else {
            sweep.at = run_end(&self.pages[page], at, 16);
            let looked = sweep.at - at;
            self.sweep = Some(sweep);
            looked
        };
        self.told.expired += dead.len() as u64;
        dead.into_iter().for_each(|key| {
            self.take_out(key);
        });
        Some(looked)
    }
}

/// The word behind so many records.
fn run_end(page: &Page, at: usize, count: usize) -> usize {
    let from = page.records.partition_point(|record| record.at < at);
    let last = page.records[from..].iter().take(count).next_back();
    last.map_or(at, |record| record.at + record.words)
}

/// The longest life that is told apart from this one only to an eighth.
fn last_of(ticks: u64) -> u64 {
    let shift = ticks.max(8).ilog2() - 3;
    (((ticks >> shift) + 1) << shift) - 1
}
