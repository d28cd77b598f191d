//! Records, pages, and the account of memory.

use super::{Item, MAIN, Model, NEVER, PAGE, PAGE_COST, PROBATION, Place, Stream, WORDS};

/// A page and a word in it, for each piece of an item.
pub type Records = Vec<(usize, usize)>;

/// A stretch of a page.
#[derive(Clone, Copy)]
pub struct Record {
    pub at: usize,
    pub words: usize,
    pub holds: Option<Holds>,
    /// The item that it had. Its uses are still counted.
    pub had: Option<Item>,
}

/// The contents of a record, if it is no gap.
#[derive(Clone, Copy, PartialEq)]
pub enum Holds {
    Item(Item),
    /// A piece of the value of this key.
    Piece(usize, usize),
}

impl Record {
    /// The item that it has, or had.
    pub fn item_mut(&mut self) -> Option<&mut Item> {
        match &mut self.holds {
            Some(Holds::Item(item)) => Some(item),
            _ => self.had.as_mut(),
        }
    }
}

impl Holds {
    pub fn item(&self) -> Option<&Item> {
        match self {
            Holds::Item(item) => Some(item),
            Holds::Piece(..) => None,
        }
    }
}

#[derive(Default)]
pub struct Page {
    /// When it was opened; 0: it is free.
    pub sequence: u64,
    pub records: Vec<Record>,
    pub end: usize,
    pub held: usize,
    pub queue: usize,
    pub closed: bool,
    /// Uses of its items count.
    pub counts: bool,
    pub due: u64,
    /// Ghosts that had been inserted when it came to its place in its queue.
    pub ghosts: u64,
}

impl Page {
    /// The number of the record that begins at this word, or behind it.
    fn number(&self, at: usize) -> usize {
        self.records.partition_point(|record| record.at < at)
    }

    /// Up to `count` records from this word on, and the word behind them; `None` if there are no more.
    pub fn run(&self, at: usize, count: usize) -> (Vec<Record>, Option<usize>) {
        let from = self.number(at);
        let run: Vec<Record> = self.records[from..].iter().take(count).copied().collect();
        let end = run.last().map_or(at, |record| record.at + record.words);
        let more = run.len() == count;
        (run, more.then_some(end))
    }
}

impl Model {
    pub fn record(&mut self, (page, at): (usize, usize)) -> &mut Record {
        let page = &mut self.pages[page];
        let number = page.number(at);
        &mut page.records[number]
    }

    pub fn item(&mut self, key: usize) -> &mut Item {
        let head = self.places[&key].head;
        match &mut self.record(head).holds {
            Some(Holds::Item(item)) => item,
            _ => panic!("key {key} is not in its place"),
        }
    }

    pub fn item_of(&self, key: usize) -> Option<Item> {
        let (page, at) = self.places.get(&key)?.head;
        let page = &self.pages[page];
        page.records[page.number(at)].holds?.item().copied()
    }

    pub fn put(&mut self, item: Item, records: &Records) {
        self.record(records[0]).holds = Some(Holds::Item(item));
        for (index, &piece) in records[1..].iter().enumerate() {
            self.record(piece).holds = Some(Holds::Piece(item.key, index));
        }
        let place = Place {
            head: records[0],
            pieces: records[1..].to_vec(),
        };
        self.places.insert(item.key, place);
        self.note_due(records[0].0, item.expiry);
    }

    pub fn take_out(&mut self, key: usize) -> Item {
        let item = *self.item(key);
        let place = self.places.remove(&key).expect("it has a place");
        for record in place.pieces.into_iter().chain([place.head]) {
            self.free_record(record);
        }
        item
    }

    pub fn free_record(&mut self, at: (usize, usize)) {
        let record = self.record(at);
        record.had = record.holds.take().and_then(|holds| holds.item().copied());
        let words = record.words;
        self.pages[at.0].held -= words;
    }

    /// Appends a record; returns it, and the words that cleaning must keep pace with.
    pub fn append(
        &mut self,
        stream: Stream,
        words: usize,
        moves: bool,
    ) -> Option<((usize, usize), usize)> {
        let of = stream as usize;
        let [newer, older] = self.open[of]
            .map(|page| page.is_some_and(|page| self.pages[page].end + words <= WORDS));
        let long = words * 8 >= super::LONGEST / 8;
        if long && (self.shortest[of] == 0 || words < self.shortest[of]) {
            self.shortest[of] = words;
        }
        let number = usize::from(older && long);
        if number == 0 && !newer {
            self.open_page(stream, moves)?;
        }
        self.appended[of] += words;
        let due = if self.appended[of] >= 16 {
            std::mem::take(&mut self.appended[of])
        } else {
            0
        };
        let number = self.open[of][number].expect("it is open");
        let page = &mut self.pages[number];
        let at = page.end;
        page.records.push(Record {
            at,
            words,
            holds: None,
            had: None,
        });
        page.end += words;
        page.held += words;
        Some(((number, at), due))
    }

    /// The words that can be appended to the newer page of a stream.
    pub fn room_in(&self, stream: Stream) -> usize {
        self.open[stream as usize][0].map_or(0, |page| WORDS - self.pages[page].end)
    }

    fn open_page(&mut self, stream: Stream, moves: bool) -> Option<()> {
        let page = self.take_page(moves);
        self.note_free();
        let page = page?;
        let queue = stream.queue();
        self.opened += 1;
        self.pages[page] = Page {
            sequence: self.opened,
            queue,
            counts: queue == MAIN,
            due: NEVER,
            ghosts: self.ghosts.inserted,
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
        let [newer, older] = self.open[stream as usize];
        let (kept, full) = match (newer, older) {
            (Some(one), Some(other)) if self.pages[one].end > self.pages[other].end => {
                (older, newer)
            }
            _ => (newer, older),
        };
        // But only if it has room for a record like those of lately.
        let shortest = std::mem::take(&mut self.shortest[stream as usize]);
        let (kept, useless) = match kept {
            Some(page) if shortest > 0 && self.pages[page].end + shortest <= WORDS => (kept, None),
            _ => (None, kept),
        };
        self.open[stream as usize] = [Some(page), kept];
        for full in [full, useless].into_iter().flatten() {
            self.pages[full].closed = true;
        }
        Some(())
    }

    pub fn close_open(&mut self) {
        for page in self.open.iter_mut().flatten().filter_map(Option::take) {
            self.pages[page].closed = true;
        }
    }

    /// Uses in the newer half of the probation queue do not count.
    fn count_uses(&mut self) {
        let probation = &self.queues[PROBATION];
        let older = probation.len() - probation.len() * 32 / 64;
        for &page in probation.iter().take(older) {
            let page = &mut self.pages[page];
            if !std::mem::replace(&mut page.counts, true) {
                let items = page.records.iter_mut().filter_map(Record::item_mut);
                for item in items.filter(|item| item.fetched) {
                    item.uses = 0;
                }
            }
        }
    }

    /// Notes the age below which a ghost comes back soon: seven eighths of a lap of the main queue.
    fn note_lap(&mut self) {
        let [probation, main] = [0, 1].map(|queue| self.queues[queue].len());
        if main == 0 {
            self.soon = NEVER;
            return;
        }
        let oldest = self.queues[MAIN]
            .iter()
            .find(|&&page| self.pages[page].closed);
        let since = oldest.map_or(self.ghosts.inserted, |&page| self.pages[page].ghosts);
        let pages = main + probation;
        let wanted = (pages - pages * self.probation() / 64) as u64;
        let lap = (self.ghosts.inserted - since) * wanted / main as u64;
        let on_probation = (probation * PAGE / self.mean().max(1)) as u64;
        let soon = (lap * 56 / 64).saturating_sub(on_probation / 2);
        // Ages are known to half an epoch.
        self.soon = soon.max(self.ghosts.epoch_len() / 2);
    }

    // The account.

    pub fn used(&self) -> usize {
        self.charged + (self.taken - self.returned.len()) * PAGE_COST
    }

    pub fn is_over(&self) -> bool {
        self.used() + self.earmarked > self.limit
    }

    pub fn lengths(&self) -> [usize; 2] {
        [0, 1].map(|queue| self.queues[queue].len())
    }

    /// False: it is too low or too high.
    pub fn set_limit(&mut self, limit: usize) -> bool {
        let least = (2 * self.item_max).max(self.charged + 2 * PAGE_COST);
        let most = (self.charged + self.pages.len() * PAGE_COST).min(self.pages.len() * PAGE);
        if !(least..=most).contains(&limit) {
            return false;
        }
        self.limit = limit;
        let used = self.used();
        self.ceiling = (used > limit).then_some(used + PAGE_COST);
        // A 64th is for ghosts.
        self.charged -= 16 * self.ghosts.shrink(limit / 64 / 16);
        if self.used() <= limit {
            self.ceiling = None;
        }
        self.note_free();
        true
    }

    pub fn note_free(&mut self) {
        let room = self.limit.saturating_sub(self.used() + self.earmarked) / PAGE_COST;
        self.free = room.min(self.returned.len() + self.pages.len() - self.taken);
    }

    /// One page is kept for moved records. While a lowered limit is not reached yet, moved records may take more, and new
    /// ones up to four of the pages that came back, if one more comes back for each.
    fn take_page(&mut self, moves: bool) -> Option<usize> {
        let used = self.used();
        let (most, limit) = match (moves, self.ceiling) {
            (true, ceiling) => (used + PAGE_COST, self.limit.max(ceiling.unwrap_or(0))),
            (false, None) => (used + self.earmarked + 2 * PAGE_COST, self.limit),
            (false, Some(ceiling)) => {
                let ceiling = ceiling.min(used + 5 * PAGE_COST) - PAGE_COST;
                if used + 2 * PAGE_COST <= ceiling {
                    self.ceiling = Some(ceiling);
                }
                (used + 2 * PAGE_COST, ceiling)
            }
        };
        if most > limit {
            return None;
        }
        self.returned.pop().or_else(|| {
            (self.taken < self.pages.len()).then(|| {
                self.taken += 1;
                self.taken - 1
            })
        })
    }

    pub fn give_back(&mut self, page: usize) {
        self.pages[page].sequence = 0;
        self.returned.push(page);
        if self.used() <= self.limit {
            self.ceiling = None;
        }
        self.note_free();
    }

    /// Memory for other uses. If there is none, pages that come back are kept for it.
    pub fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.used() + bytes + PAGE_COST <= self.limit;
        if fits {
            (self.charged, self.earmarked) = (self.charged + bytes, 0);
        } else {
            self.earmarked = bytes + PAGE_COST;
        }
        fits
    }
}
