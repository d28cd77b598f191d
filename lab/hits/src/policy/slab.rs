//! A slab store with fine size classes, S3-FIFO in each, and pages that move between classes.
//!
//! One of the two families of docs/hits.md, with the costs of a real one: each item takes a chunk of its class, and
//! beside the pages there are index, queues and ghosts in the same limit. An item longer than the largest chunk takes
//! several of them, and one of another class for the rest.
//!
//! When a class has no free chunk, a page is taken as long as the limit has one. Then the class evicts, unless its
//! pages are worth much more than those of the class whose pages are worth least: that one gives a page. It evicts as
//! many items as a page has, by its own queues, and those that are left in the emptiest page move to free chunks.
//! *Worth* is hits / pages, over a time in which as many stores happen as there are items.

use super::costs::Costs;
use super::s3fifo::{S3FifoShape, S3Keys, S3Queues};
use super::{Movement, Policy, Room};
use crate::trace::NO_KEY;

/// The smallest chunk.
const CHUNK_MIN: u64 = 32;

/// The largest chunk is one part in `LARGEST` of a page.
const LARGEST: u64 = 2;

/// A class gives a page to another if that one's pages are worth more than this many times as much.
const MUCH: f64 = 1.5;

/// Steps to make room for one item, at most: an item without room by then is not stored.
const STEPS_MAX: usize = 10_000;

/// The parameters of the slab store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabShape {
    /// How many times as large as the one before each class is.
    pub growth: f64,
    /// About how many pages the limit has.
    pub pages: u64,
    /// The queues of each class.
    pub queues: S3FifoShape,
}

impl Default for SlabShape {
    fn default() -> Self {
        Self {
            growth: 1.1,
            pages: 64,
            queues: S3FifoShape::default(),
        }
    }
}

/// A chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    page: u32,
    slot: u32,
}

struct Page {
    class: u16,
    /// The key of each chunk, or none.
    keys: Vec<u32>,
    used: u32,
}

struct Class {
    chunk: u64,
    per_page: usize,
    queues: S3Queues,
    pages: Vec<u32>,
    free: Vec<Chunk>,
    /// Chunks with the rest of an item of the largest class.
    rests: u64,
    /// Hits, which count less the older they are.
    hits: f64,
    /// Stores since it took a page from another class.
    stores: usize,
}

/// The store.
pub struct Slab {
    limit: u64,
    costs: Costs,
    classes: Vec<Class>,
    pages: Vec<Page>,
    keys: S3Keys,
    /// Chunks of each key held: those of its class first, then those of the rest.
    chunks: Vec<Vec<Chunk>>,
    /// The charge of each of these keys.
    charges: Vec<u32>,
    pages_used: usize,
    free_pages: Vec<u32>,
    used: u64,
    /// Stores until hits count half.
    halving: u64,
    gone: Vec<u32>,
    movement: Movement,
}

impl Slab {
    /// An empty store, its capacity being the memory limit.
    pub fn new(room: &Room<'_>, shape: SlabShape) -> Self {
        let costs = Costs::slab(room.capacity, shape.pages, shape.queues.ghosts);
        Self::with_costs(room, &shape, costs, CHUNK_MIN)
    }

    pub(super) fn with_costs(room: &Room<'_>, shape: &SlabShape, costs: Costs, least: u64) -> Self {
        let class = |(number, chunk): (usize, u64)| Class {
            chunk,
            per_page: (costs.page / chunk) as usize,
            queues: S3Queues::new(0, shape.queues, number as u16),
            pages: Vec::new(),
            free: Vec::new(),
            rests: 0,
            hits: 0.0,
            stores: 0,
        };
        let sizes = chunk_sizes(&costs, least, shape.growth);
        Self {
            limit: room.capacity,
            costs,
            classes: sizes.into_iter().enumerate().map(class).collect(),
            pages: Vec::new(),
            keys: S3Keys::new(room.keys),
            chunks: vec![Vec::new(); room.keys],
            charges: vec![0; room.keys],
            pages_used: 0,
            free_pages: Vec::new(),
            used: 0,
            halving: 0,
            gone: Vec::new(),
            movement: Movement::default(),
        }
    }

    fn class_of(&self, bytes: u64) -> usize {
        self.classes.partition_point(|class| class.chunk < bytes)
    }

    /// Chunks that an item takes: of its class, and of another for the rest.
    fn needs(&self, charge: u32) -> [(usize, usize); 2] {
        let bytes = self.costs.record(self.costs.header, u64::from(charge));
        let last = self.classes.len() - 1;
        let largest = self.classes[last].chunk;
        if bytes <= largest {
            return [(self.class_of(bytes), 1), (last, 0)];
        }
        let piece = largest - self.costs.piece_header;
        let (pieces, rest) = (bytes / piece, bytes % piece);
        let rest = self.class_of(self.costs.record(self.costs.piece_header, rest));
        if rest == last {
            [(last, pieces as usize + 1), (last, 0)]
        } else {
            [(last, pieces as usize), (rest, 1)]
        }
    }

    /// The class in whose queues a key is: that of its first chunk.
    fn home(&self, key: u32) -> Option<usize> {
        let first = self.chunks[key as usize].first()?;
        Some(self.pages[first.page as usize].class.into())
    }

    /// The chunks that a class has for items of its own.
    fn resize(&mut self, number: usize) {
        let class = &mut self.classes[number];
        let chunks = (class.pages.len() * class.per_page) as u64;
        class.queues.resize(chunks.saturating_sub(class.rests));
    }

    /// Frees the chunks of keys that have left their queues.
    fn free_gone(&mut self) {
        for key in std::mem::take(&mut self.gone) {
            let home = self.home(key);
            for chunk in std::mem::take(&mut self.chunks[key as usize]) {
                let page = &mut self.pages[chunk.page as usize];
                let number = usize::from(page.class);
                page.keys[chunk.slot as usize] = NO_KEY;
                page.used -= 1;
                self.classes[number].free.push(chunk);
                if home != Some(number) {
                    self.classes[number].rests -= 1;
                    self.resize(number);
                }
            }
            self.used -= u64::from(self.charges[key as usize]);
            self.movement.items -= 1;
        }
    }

    fn evict(&mut self, number: usize) {
        self.classes[number]
            .queues
            .evict(&mut self.keys, &mut self.gone);
        self.free_gone();
    }

    /// Hits / pages.
    fn worth(&self, number: usize) -> f64 {
        let class = &self.classes[number];
        class.hits / class.pages.len().max(1) as f64
    }

    /// The class whose pages are worth least, except `without`.
    fn poorest(&self, without: &[usize]) -> Option<usize> {
        let others = (0..self.classes.len())
            .filter(|number| !without.contains(number) && !self.classes[*number].pages.is_empty());
        others.min_by(|&one, &other| self.worth(one).total_cmp(&self.worth(other)))
    }

    /// Takes a page from a class. Items on it that stay move to other pages.
    fn take_from(&mut self, number: usize) {
        let class = &self.classes[number];
        let per_page = class.per_page;
        while self.classes[number].free.len() < per_page {
            if self.classes[number].queues.used() > 0 {
                self.evict(number);
            } else {
                // All its chunks have rests of items of the largest class.
                self.evict(self.classes.len() - 1);
            }
        }
        let class = &mut self.classes[number];
        let used = |&at: &usize| self.pages[class.pages[at] as usize].used;
        let at = (0..class.pages.len()).min_by_key(used);
        let emptiest = class.pages.swap_remove(at.expect("it has a page"));
        class.free.retain(|chunk| chunk.page != emptiest);
        let keys = std::mem::take(&mut self.pages[emptiest as usize].keys);
        for (slot, key) in keys
            .into_iter()
            .enumerate()
            .filter(|&(_, key)| key != NO_KEY)
        {
            let class = &mut self.classes[number];
            let to = class.free.pop().expect("as many are free as a page has");
            self.movement.moved += class.chunk;
            let from = Chunk {
                page: emptiest,
                slot: slot as u32,
            };
            let chunks = &mut self.chunks[key as usize];
            let place = chunks.iter_mut().find(|chunk| **chunk == from);
            *place.expect("a chunk's key has the chunk") = to;
            let page = &mut self.pages[to.page as usize];
            page.keys[to.slot as usize] = key;
            page.used += 1;
        }
        self.free_pages.push(emptiest);
        self.pages_used -= 1;
        self.resize(number);
    }

    /// Gives a class a page that is not in use.
    fn give_to(&mut self, number: usize) {
        let class = &mut self.classes[number];
        let fresh = Page {
            class: number as u16,
            keys: vec![NO_KEY; class.per_page],
            used: 0,
        };
        let page = match self.free_pages.pop() {
            Some(page) => {
                self.pages[page as usize] = fresh;
                page
            }
            None => {
                self.pages.push(fresh);
                self.pages.len() as u32 - 1
            }
        };
        class.pages.push(page);
        let slots = (0..class.per_page as u32).rev();
        class.free.extend(slots.map(|slot| Chunk { page, slot }));
        self.pages_used += 1;
        self.resize(number);
    }

    fn pages_max(&self) -> usize {
        self.costs.pages(self.limit, self.movement.items + 1)
    }

    /// One step towards a free chunk of a class, for an item that takes chunks of the classes `needs`. False if that is
    /// impossible.
    fn step(&mut self, number: usize, needs: [usize; 2]) -> bool {
        if self.pages_used < self.pages_max() {
            self.give_to(number);
            return true;
        }
        // Not a class whose chunks the item needs too, if there is another: the two would take pages from each other.
        let poorest = self.poorest(&needs).or_else(|| self.poorest(&[number]));
        let class = &self.classes[number];
        let is_due = class.stores >= class.per_page;
        let takes = |&poor: &usize| {
            class.queues.used() == 0 || is_due && self.worth(number) > MUCH * self.worth(poor)
        };
        if let Some(poorest) = poorest.filter(takes) {
            self.classes[number].stores = 0;
            self.take_from(poorest);
            self.give_to(number);
            return true;
        }
        let evicts = self.classes[number].queues.used() > 0;
        if evicts {
            self.evict(number);
        }
        evicts
    }

    /// Makes room for an item. False if that is impossible.
    fn make_room(&mut self, needs: &[(usize, usize); 2]) -> bool {
        for _ in 0..STEPS_MAX {
            if self.pages_used > self.pages_max() {
                let Some(poorest) = self.poorest(&[]) else {
                    return false;
                };
                self.take_from(poorest);
                continue;
            }
            let mut short = needs
                .iter()
                .filter(|&&(number, count)| self.classes[number].free.len() < count);
            match short.next() {
                None => return true,
                Some(&(number, _)) if !self.step(number, needs.map(|(class, _)| class)) => {
                    return false;
                }
                Some(_) => {}
            }
        }
        false
    }

    fn store(&mut self, key: u32, charge: u32) {
        let needs = self.needs(charge);
        let (home, count) = needs[0];
        let returns = self.take_ghost(key);
        self.note_store(home);
        if !self.make_room(&needs) {
            return;
        }
        for (number, count) in needs {
            let class = &mut self.classes[number];
            for _ in 0..count {
                let chunk = class.free.pop().expect("there is room");
                let page = &mut self.pages[chunk.page as usize];
                page.keys[chunk.slot as usize] = key;
                page.used += 1;
                self.chunks[key as usize].push(chunk);
            }
            if number != home {
                class.rests += count as u64;
                self.resize(number);
            }
        }
        let queues = &mut self.classes[home].queues;
        queues.push(&mut self.keys, key, count as u32, returns);
        self.charges[key as usize] = charge;
        self.used += u64::from(charge);
        self.movement.items += 1;
        self.movement.stored += u64::from(charge);
    }

    /// True if the key was a ghost, of whichever class: its size may be another now.
    fn take_ghost(&mut self, key: u32) -> bool {
        let Some(number) = S3Queues::number_of(&self.keys, key) else {
            return false;
        };
        let queues = &mut self.classes[usize::from(number)].queues;
        queues.take_ghost(&mut self.keys, key)
    }

    /// Counts a store, and ages the hits: they count less the older they are.
    fn note_store(&mut self, home: usize) {
        self.classes[home].stores += 1;
        match self.halving.checked_sub(1) {
            Some(left) => self.halving = left,
            None => {
                self.halving = self.movement.items;
                self.classes.iter_mut().for_each(|class| class.hits /= 2.0);
            }
        }
    }
}

/// Chunks from the least on, each about `growth` times the one before, as large as a page of them allows.
fn chunk_sizes(costs: &Costs, least: u64, growth: f64) -> Vec<u64> {
    let largest = costs.page / LARGEST;
    let mut sizes = Vec::new();
    let mut wanted = least;
    while wanted < largest {
        let fits = costs.page / (costs.page / wanted) / costs.unit * costs.unit;
        sizes.push(fits);
        let next = (fits as f64 * growth) as u64 / costs.unit * costs.unit;
        wanted = next.max(fits + costs.unit);
    }
    sizes.retain(|&size| size < largest);
    sizes.push(largest);
    sizes
}

impl Policy for Slab {
    fn request(&mut self, key: u32, charge: u32) -> bool {
        if let Some(home) = self.home(key) {
            let class = &mut self.classes[home];
            class.hits += 1.0;
            class.queues.hit(&mut self.keys, key);
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
        !self.chunks[key as usize].is_empty()
    }

    fn movement(&self) -> Option<Movement> {
        Some(self.movement)
    }
}

#[cfg(test)]
impl Slab {
    /// Panics if the structures do not agree with each other.
    pub(super) fn audit(&self) {
        let mut used = 0;
        let mut rests = vec![0; self.classes.len()];
        for (key, chunks) in self.chunks.iter().enumerate() {
            for chunk in chunks {
                let page = &self.pages[chunk.page as usize];
                assert_eq!(page.keys[chunk.slot as usize], key as u32);
                let home = self.home(key as u32).unwrap();
                rests[usize::from(page.class)] += u64::from(home != usize::from(page.class));
                used += 1;
            }
        }
        let mut pages = 0;
        for (class, rests) in self.classes.iter().zip(rests) {
            let all = class.pages.len() * class.per_page;
            let free = class.free.len();
            assert_eq!(class.rests, rests);
            assert_eq!(class.queues.used() + rests, (all - free) as u64);
            pages += class.pages.len();
            used -= all - free;
            assert!(class.pages.iter().all(|&page| {
                let page = &self.pages[page as usize];
                page.used as usize == page.keys.iter().filter(|&&key| key != NO_KEY).count()
            }));
        }
        assert_eq!((used, pages), (0, self.pages_used));
        assert!(self.pages_used <= self.costs.pages(self.limit, self.movement.items));
    }
}
