//! Dead items, which have expired or were flushed: they leave before any live item.

use super::{Item, Model, NEVER, WORDS};

/// A page that is swept for dead items, and how long its other items still live, counted in words.
pub struct Sweep {
    page: usize,
    sequence: u64,
    at: usize,
    from: u64,
    living: Vec<(u64, usize, u64)>,
}

impl Model {
    pub fn lives(&self, item: &Item) -> bool {
        item.expiry > self.now && item.stored > self.flushed
    }

    pub fn is_live(&self, key: usize) -> bool {
        self.item_of(key).is_some_and(|item| self.lives(&item))
    }

    /// Removes a dead item, if it is still in its place.
    pub fn bury(&mut self, key: usize, head: (usize, usize)) {
        if self
            .places
            .get(&key)
            .is_some_and(|place| place.head == head)
        {
            let item = self.take_out(key);
            self.told.expired += 1;
            self.told.flushed += u64::from(item.expiry > self.now);
        }
    }

    pub fn note_due(&mut self, page: usize, tick: u64) {
        if tick != NEVER {
            self.pages[page].due = self.pages[page].due.min(tick);
            self.first_due = self.first_due.min(tick);
        }
    }

    /// Sweeps pages that are due; true if there are more.
    pub fn sweep_words(&mut self, words: usize) -> bool {
        let mut looked = 0;
        while self.first_due <= self.now || self.flush_noted != self.flushed {
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
        if self.flush_noted != self.flushed {
            self.flush_noted = self.flushed;
            for page in 0..self.taken {
                if self.pages[page].sequence != 0 {
                    self.note_due(page, 0);
                }
            }
        }
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
        let (run, more) = match self.pages[page].sequence == sweep.sequence {
            true => self.pages[page].run(at, 16),
            false => (Vec::new(), None),
        };
        let mut dead = Vec::new();
        for record in &run {
            let Some(item) = record.holds.as_ref().and_then(|holds| holds.item()) else {
                continue;
            };
            if !self.lives(item) {
                dead.push((item.key, (page, record.at)));
            } else if item.expiry != NEVER {
                let lives = last_of(item.expiry.saturating_sub(sweep.from));
                let words = item.shape.bytes().div_ceil(8);
                sweep.living.push((lives, words, item.expiry));
            }
        }
        let looked = match more {
            None => {
                self.note_next_due(page, sweep);
                self.pages[page].end.saturating_sub(at).max(1)
            }
            Some(end) => {
                sweep.at = end;
                self.sweep = Some(sweep);
                end - at
            }
        };
        for (key, head) in dead {
            self.bury(key, head);
        }
        Some(looked)
    }

    /// A page that was swept is due again when an eighth of its words has died.
    fn note_next_due(&mut self, page: usize, mut sweep: Sweep) {
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
    }
}

/// The longest life that counts as the same as this one: lives are known to an eighth.
fn last_of(ticks: u64) -> u64 {
    let shift = ticks.max(8).ilog2() - 3;
    (((ticks >> shift) + 1) << shift) - 1
}
