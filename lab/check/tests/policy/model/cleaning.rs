//! Cleaning: which page is cleaned, and what happens to its items.

use super::pages::{Holds, Record};
use super::{Item, LONGEST, MAIN, Model, PAGE, PROBATION, Stream, WORDS};

/// The reason to clean a page.
#[derive(Clone, Copy, PartialEq)]
pub enum Need {
    Order,
    Dead,
    Room,
    AnyRoom,
}

/// How a step ended, and after how many words.
enum Step {
    Freed(usize),
    Looked(usize),
    Nothing,
}

#[derive(Clone, Copy)]
pub struct Cleaning {
    page: usize,
    queue: usize,
    compacts: bool,
    at: usize,
    /// Words that were too few for a run so far.
    owed: usize,
    /// Words that were kept.
    kept: usize,
    /// Items met since sizes were noted, and their bytes.
    met: (usize, usize),
}

impl Cleaning {
    fn of(page: usize, queue: usize, compacts: bool, at: usize) -> Self {
        Self {
            page,
            queue,
            compacts,
            at,
            owed: 0,
            kept: 0,
            met: (0, 0),
        }
    }
}

/// How many words are cleaned in a step.
enum Budget {
    Words(usize),
    /// In proportion to words that were appended, before as many as there is room for are appended.
    Paced {
        appended: usize,
        room: usize,
    },
}

/// Words of a page that are checked for each item of the background's budget.
const WORDS_A_LOOK: usize = 39;

impl Model {
    /// Cleans some words for each word that was appended.
    pub fn keep_pace(&mut self, appended: usize, room: usize) {
        if self.free < 2 {
            let more = self.sweep_words(8 * appended);
            let need = if more { Need::Dead } else { Need::Room };
            self.clean(need, false, Budget::Paced { appended, room });
        } else if self.gappy {
            self.clean(Need::Order, false, Budget::Words(3 * appended));
        }
    }

    /// What a cleaning still moves needs the rest of the page that it has taken as the last one.
    pub fn leaves_room_to_move(&self, words: usize) -> bool {
        let fits = |cleaning: &Cleaning| {
            self.room_in(Stream::Kept) >= words + self.pages[cleaning.page].held
        };
        self.free > 0 || self.cleaning.as_ref().is_none_or(fits)
    }

    /// Where no page is free: cleans until there is room.
    pub fn append_hard(&mut self, stream: Stream, words: usize) -> Option<((usize, usize), usize)> {
        let (mut cleaned, mut swept, mut in_vain) = (0, 0, 0);
        // While it cleans the first four pages, or as many as two of the largest items have, used items stay.
        let patience = (4 * WORDS).max(2 * (self.item_max / 8));
        while cleaned < patience + 64 * WORDS {
            if let Some(appended) = self.append(stream, words, false) {
                return Some(appended);
            }
            let due = swept < 8 && self.sweep_words(WORDS);
            swept += usize::from(due);
            // If open pages were closed in vain, nothing is moved any more.
            let desperate = in_vain == 2;
            let need = match (due, desperate) {
                (true, _) => Need::Dead,
                (false, true) => Need::AnyRoom,
                (false, false) => Need::Room,
            };
            match self.clean(need, desperate || cleaned >= patience, Budget::Words(WORDS)) {
                Step::Nothing if due => {}
                Step::Looked(_) => {}
                // The freed page is kept for the index or the ghosts.
                Step::Freed(_) if self.used() <= self.limit && self.is_over() => {}
                Step::Freed(_) => cleaned += WORDS,
                Step::Nothing => {
                    in_vain += 1;
                    if in_vain > 2 {
                        return None;
                    }
                    self.close_open();
                }
            }
        }
        None
    }

    /// What the background does, in proportion to its budget.
    pub fn maintain(&mut self, budget: usize) {
        self.shrink(budget * WORDS_A_LOOK);
        self.sweep_words(budget * WORDS_A_LOOK);
    }

    /// Gives pages back while the limit is exceeded.
    fn shrink(&mut self, mut left: usize) {
        let mut steps = 0;
        while left > 0 && self.is_over() {
            let due = self.sweep_words(left);
            let need = if due { Need::Dead } else { Need::Room };
            match self.clean(need, steps >= 4, Budget::Words(left)) {
                Step::Nothing if due => return,
                Step::Looked(looked) => left = left.saturating_sub(looked.max(1)),
                // Giving a page back costs something, whatever was in it.
                Step::Freed(looked) => left = left.saturating_sub(looked.max(WORDS / 16)),
                Step::Nothing => {
                    self.close_open();
                    left = left.saturating_sub(WORDS);
                }
            }
            steps += 1;
        }
    }

    fn choose(&mut self, need: Need) -> Option<Cleaning> {
        if need == Need::Room && !self.divided {
            self.divided = true;
            self.divide();
        }
        // The page with the most gaps, if it has enough.
        let most = match need {
            Need::Order => WORDS / 2,
            Need::Dead | Need::Room => WORDS * 3 / 4,
            Need::AnyRoom => 0,
        };
        let pages = self.queues.iter().enumerate();
        let pages = pages.flat_map(|(queue, pages)| {
            pages
                .iter()
                .enumerate()
                .map(move |(at, &page)| (queue, at, page))
        });
        let gappy = pages.filter(|&(.., page)| {
            let (held, end) = (self.pages[page].held, self.pages[page].end);
            held <= most && held < end && self.is_ready(page)
        });
        if let Some((queue, at, page)) = gappy.min_by_key(|&(.., page)| self.pages[page].held) {
            self.queues[queue].remove(at);
            let at = if self.pages[page].held == 0 {
                self.pages[page].end
            } else {
                0
            };
            return Some(Cleaning::of(page, queue, true, at));
        }
        if matches!(need, Need::Order | Need::Dead) {
            return None;
        }
        // The oldest page of the queue that has more than its share. If items that were used too early were evicted,
        // the main queue pays, too: with a page, or with a use of each item of a page, if many of them were used.
        let [probation, main] = self.lengths();
        let is_long = probation * 64 > (probation + main) * self.probation();
        if is_long && self.is_due() && need == Need::Room && self.main_pays() {
            // It is in use: it need not pay again soon.
            (self.refused, self.due_at) = (0, 4);
        }
        let order = match is_long && !self.is_due() {
            true => [PROBATION, MAIN],
            false => [MAIN, PROBATION],
        };
        let oldest = |queue: usize| Some((queue, self.oldest_ready(queue)?));
        let (queue, at) = order.into_iter().find_map(oldest)?;
        let page = self.queues[queue].remove(at)?;
        match queue {
            MAIN => {
                // At most a page's worth is carried on.
                self.refused = self.refused.saturating_sub(PAGE).min(PAGE);
                self.due_at = 1;
            }
            _ if self.is_due() => self.refused = 0,
            _ => {}
        }
        Some(Cleaning::of(page, queue, false, 0))
    }

    fn is_ready(&self, page: usize) -> bool {
        self.pages[page].closed && !self.private.contains(&page)
    }

    fn oldest_ready(&self, queue: usize) -> Option<usize> {
        let mut pages = self.queues[queue].iter();
        pages.position(|&page| self.is_ready(page))
    }

    /// True if so much was used too early and left that the main queue is to pay.
    fn is_due(&self) -> bool {
        self.refused > self.due_at * PAGE
    }

    /// If a fourth of the items that a page has on average have uses in the oldest page of the main queue, each of them
    /// loses one, and the page is the newest of its queue. False if they are fewer.
    fn main_pays(&mut self) -> bool {
        let Some(at) = self.oldest_ready(MAIN) else {
            return false;
        };
        let enough = (PAGE / self.mean().max(1) / 4).max(1);
        let number = self.queues[MAIN][at];
        let page = &mut self.pages[number];
        let items = page.records.iter_mut().filter_map(Record::item_mut);
        let mut used: Vec<&mut Item> = items.filter(|item| item.uses > 0).collect();
        if used.len() < enough {
            return false;
        }
        for item in &mut used {
            item.uses -= 1;
        }
        page.ghosts = self.ghosts.inserted;
        self.queues[MAIN].remove(at);
        self.queues[MAIN].push_back(number);
        true
    }

    /// When memory is short for the first time, all pages but the newest become the main queue.
    fn divide(&mut self) {
        let all = std::mem::take(&mut self.queues[PROBATION]);
        let mut old = all.len() - all.len() * self.probation() / 64;
        for page in all {
            let queue = if old > 0 && self.pages[page].closed {
                MAIN
            } else {
                PROBATION
            };
            old -= usize::from(queue == MAIN);
            self.pages[page].queue = queue;
            self.pages[page].counts = queue == MAIN;
            self.queues[queue].push_back(page);
        }
    }

    /// The words of the next step, if a page is to be free when a sixteenth of the open page is left: two pages, if even the
    /// last one was taken, and those that are taken by what is kept. No more than eight for each word that was appended, and
    /// no less than two records.
    fn paced(&self, cleaning: &mut Cleaning, appended: usize, room: usize) -> usize {
        let pages = if self.free == 0 { 2 } else { 1 };
        let mut left = pages * WORDS - cleaning.at;
        let mut kept = self.kept_lately / 8 * 3 / 2;
        if cleaning.at >= WORDS / 8 {
            kept = kept.max(cleaning.kept * WORDS / cleaning.at);
        }
        let moved = left * kept / WORDS;
        left += moved
            .saturating_sub(self.room_in(Stream::Kept))
            .div_ceil(WORDS)
            * WORDS;
        let words = match room.saturating_sub(WORDS / 16) {
            0 => 8 * appended,
            room => (appended * left).div_ceil(room).min(8 * appended),
        };
        let due = cleaning.owed + words;
        let run = 2 * self.mean_words();
        cleaning.owed = 0;
        if cleaning.at + run >= self.pages[cleaning.page].end {
            return run;
        }
        if words < 8 * appended && due < run {
            cleaning.owed = due;
            return 0;
        }
        due
    }

    fn clean(&mut self, need: Need, all_leave: bool, budget: Budget) -> Step {
        let Some(mut cleaning) = self.cleaning.take().or_else(|| self.choose(need)) else {
            return Step::Nothing;
        };
        let from = cleaning.at;
        let budget = match budget {
            Budget::Words(words) => words,
            Budget::Paced { appended, room } => self.paced(&mut cleaning, appended, room),
        };
        let end = from + budget;
        while cleaning.at < end {
            // As many records as the budget has room for are checked together.
            let record = self.mean_words();
            let count = (end - cleaning.at).div_ceil(record).clamp(2, 16);
            let page = cleaning.page;
            let (run, more) = self.pages[page].run(cleaning.at, count);
            for item in run
                .iter()
                .filter_map(|record| record.holds?.item().copied())
            {
                cleaning.met.0 += 1;
                cleaning.met.1 += item.shape.bytes();
            }
            // Sizes are noted of eight items or more, or at the end of a page, and of the very first.
            if self.mean() == 0 || cleaning.met.0 >= 8 || more.is_none() {
                self.note_sizes(std::mem::take(&mut cleaning.met));
            }
            let moved = self.told.bytes_moved;
            for record in run {
                match record.holds {
                    Some(Holds::Item(item)) => {
                        self.clean_item(&cleaning, &item, &record, all_leave)
                    }
                    Some(Holds::Piece(..)) => self.clean_piece(&cleaning, &record, all_leave),
                    None => {}
                }
            }
            cleaning.kept += (self.told.bytes_moved - moved) as usize / 8;
            let Some(at) = more else {
                self.kept_lately = self.kept_lately - self.kept_lately / 8 + cleaning.kept;
                assert_eq!(self.pages[page].held, 0, "something is left in a page");
                let looked = self.pages[page].end - from;
                self.give_back(page);
                self.told.pages_cleaned += 1;
                return Step::Freed(looked);
            };
            cleaning.at = at;
        }
        let looked = cleaning.at - from;
        self.cleaning = Some(cleaning);
        Step::Looked(looked)
    }

    /// Appends a record that is kept: to its own queue in a compaction, and otherwise to the main queue.
    fn append_kept(&mut self, cleaning: &Cleaning, words: usize) -> Option<(usize, usize)> {
        let stream = match cleaning.compacts && cleaning.queue == PROBATION {
            true => Stream::New,
            false => Stream::Kept,
        };
        // If there is no room in that stream, to the other.
        let other = match stream {
            Stream::Kept => Stream::New,
            _ => Stream::Kept,
        };
        let appended = self.append(stream, words, true);
        let (record, _) = appended.or_else(|| self.append(other, words, true))?;
        Some(record)
    }

    fn clean_item(&mut self, cleaning: &Cleaning, met: &Item, record: &Record, all_leave: bool) {
        let place = (cleaning.page, record.at);
        if !self.lives(met) {
            return self.bury(met.key, place);
        }
        // The item may have left since the records were read, with a piece of its value.
        let known = self.places.get(&met.key);
        if known.is_none_or(|known| known.head != place) {
            return;
        }
        let item = *self.item(met.key);
        let left = match cleaning.compacts {
            true => Some(item.uses),
            false => self.judge(cleaning.queue, &item, place, all_leave),
        };
        if let Some(left) = left
            && let Some(to) = self.append_kept(cleaning, record.words)
        {
            let uses = if item.fetched { left } else { left.min(2) };
            self.record(to).holds = Some(Holds::Item(Item { uses, ..item }));
            self.free_record(place);
            self.places.get_mut(&item.key).expect("it is there").head = to;
            self.note_due(to.0, item.expiry);
            self.told.bytes_moved += 8 * record.words as u64;
            match cleaning.queue {
                _ if cleaning.compacts || self.pages[to.0].queue == PROBATION => {}
                PROBATION => self.told.moved_to_main += 1,
                _ => self.told.moved_within_main += 1,
            }
        } else {
            self.evict(cleaning.queue, item.key);
        }
    }

    /// A piece follows its item: behind its head, if that was moved before, or as the head is judged.
    fn clean_piece(&mut self, cleaning: &Cleaning, record: &Record, all_leave: bool) {
        let place = (cleaning.page, record.at);
        let Some(Holds::Piece(key, index)) = self.record(place).holds else {
            return;
        };
        let head = self.places[&key].head;
        let item = *self.item(key);
        if !self.lives(&item) {
            return self.bury(key, head);
        }
        let queue = self.pages[head.0].queue;
        let is_newer = self.pages[head.0].sequence > self.pages[cleaning.page].sequence;
        let moved_before = is_newer || queue == MAIN && cleaning.queue == PROBATION;
        let stays = cleaning.compacts
            || (moved_before && !all_leave)
            || self.judge(queue, &item, head, all_leave).is_some();
        if stays && let Some(to) = self.append_kept(cleaning, record.words) {
            self.record(to).holds = Some(Holds::Piece(key, index));
            self.free_record(place);
            self.places.get_mut(&key).expect("it is there").pieces[index] = to;
            self.told.bytes_moved += 8 * record.words as u64;
        } else {
            self.evict(queue, key);
        }
    }

    fn evict(&mut self, queue: usize, key: usize) {
        let item = self.take_out(key);
        self.left.push(item);
        self.told.evicted[queue] += 1;
        if queue == PROBATION {
            self.ghosts.insert(item.hash);
            self.refused += if item.fetched { item.shape.bytes() } else { 0 };
        } else {
            self.ghosts.insert(item.hash ^ super::OF_MAIN);
        }
    }

    /// The uses that an item has left if it stays; `None` if it leaves.
    fn judge(
        &self,
        queue: usize,
        item: &Item,
        (page, at): (usize, usize),
        all_leave: bool,
    ) -> Option<u8> {
        let (mean, bytes) = (self.mean(), item.shape.bytes());
        // An item of less than a quarter of the mean enters the main queue without a use.
        if all_leave || queue == PROBATION && item.uses == 0 && 4 * bytes >= mean.max(1) {
            return None;
        }
        // An item of more than twice the mean pays two uses; one of less than the mean pays one or none, by lot.
        let place = (page * WORDS + at) as u64;
        let lot = (item.hash ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let pays = match bytes > 2 * mean {
            true => 2,
            false => u8::from(bytes as u64 > (lot * mean as u64) >> 32),
        };
        item.uses.checked_sub(pays)
    }

    pub fn mean(&self) -> usize {
        self.lately / 16
    }

    /// Words of a record, about: of an item of the mean size, or of its longest piece.
    fn mean_words(&self) -> usize {
        (self.mean().min(LONGEST) / 8).max(1)
    }

    fn note_sizes(&mut self, (items, bytes): (usize, usize)) {
        if items == 0 {
            return;
        }
        let new = bytes / items;
        self.lately = if self.lately == 0 {
            16 * new
        } else {
            self.lately - self.lately / 16 + new
        };
        // Three ghosts for each item, in a 64th of the memory at most.
        let ghosts = 3 * (self.limit / self.mean().max(1));
        let most = self.ghosts.most().min(self.limit / 64 / 16);
        let buckets = ghosts.div_ceil(8).clamp(1, most);
        let more = (16 * buckets).saturating_sub(16 * self.ghosts.buckets);
        if more >= (16 * self.ghosts.buckets).max(1) && self.charge(more) {
            self.ghosts.buckets = buckets;
        }
    }
}
