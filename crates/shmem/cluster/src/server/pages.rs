//! Pages and their blocks: free lists, and lists by epoch, in whose order pairs are evicted.
//!
//! A page belongs to one class, or to none. Blocks with pairs are listed by the epoch in which they were last known to
//! be used; those of the oldest epoch are evicted first. Links lie beside the blocks, in the server's own memory,
//! because clients write to blocks.
//!
//! Invariants:
//! 1. A block is free, listed, held (reserved, a snapshot, or being filled), or lost.
//! 2. No epoch's list of a class is empty.
//! 3. A page that retires has no free block in its class's list.
//! 4. A page is in the list of idle ones if it has a class, does not retire, and all its blocks are free.
//! 5. A lost block stays where it is, and so does its page: words of a PE that is gone may arrive there at any time.

use std::collections::{BTreeMap, BTreeSet};

use nuthatch_engine::AuditError;

use crate::bucket::Pointer;
use crate::layout::Layout;

const NONE: u32 = u32::MAX;

/// A block of a server: its page and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    page: u32,
    number: u32,
}

impl Block {
    fn new(page: usize, number: usize) -> Self {
        Self {
            page: page as u32,
            number: number as u32,
        }
    }

    /// Its page.
    pub fn page(self) -> usize {
        self.page as usize
    }

    fn number(self) -> usize {
        self.number as usize
    }
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    /// It has a pair, last known to be used in this epoch.
    Listed(u32),
    /// A session or the server holds it.
    Held,
    /// Never used again: a PE that is gone was writing to it.
    Lost,
}

/// Neighbours are numbers of blocks in 32 bits: the page's number, and in the [`Pages::shift`] low bits the block's
/// number in it.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    state: State,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

struct Page {
    /// `None`: it belongs to no class.
    class: Option<usize>,
    links: Vec<Link>,
    held: usize,
    free: usize,
    lost: usize,
    retiring: bool,
    /// How often it left a class.
    changes: u64,
}

struct Class {
    free: List,
    free_blocks: usize,
    blocks: usize,
    listed: BTreeMap<u32, List>,
}

/// A server's pages.
pub struct Pages {
    layout: Layout,
    /// Bits of a block's number in its page.
    shift: u32,
    pages: Vec<Page>,
    /// Pages of no class.
    spare: Vec<usize>,
    /// Pages of a class whose blocks are all free, those that retire not included.
    idle: BTreeSet<usize>,
    classes: Vec<Class>,
    /// Pages that may be in classes.
    pub limit: usize,
    /// Pages that are in classes, those that retire included.
    pub used: usize,
}

impl Pages {
    pub fn new(layout: &Layout, limit: usize) -> Self {
        let class = || Class {
            free: List::EMPTY,
            free_blocks: 0,
            blocks: 0,
            listed: BTreeMap::new(),
        };
        Self {
            classes: (0..layout.classes.len()).map(|_| class()).collect(),
            shift: (layout.page_words / layout.classes.words(0)).ilog2() + 1,
            layout: layout.clone(),
            pages: Vec::new(),
            spare: Vec::new(),
            idle: BTreeSet::new(),
            limit,
            used: 0,
        }
    }

    /// The block of a pointer.
    pub fn block(&self, pointer: Pointer) -> Block {
        let page = self.layout.page_of(pointer);
        let units = pointer.place() as usize * crate::classes::UNIT - page * self.layout.page_words;
        Block::new(page, units / self.layout.classes.words(pointer.class()))
    }

    /// The pointer of a block.
    pub fn pointer(&self, block: Block) -> Pointer {
        let class = self.pages[block.page()].class;
        let class = class.expect("a block's page has a class");
        self.layout.pointer(class, block.page(), block.number())
    }

    /// True if a pointer leads to a block that exists.
    pub fn is_block(&self, pointer: Pointer) -> bool {
        let Some(page) = self.pages.get(self.layout.page_of(pointer)) else {
            return false;
        };
        if page.class != Some(pointer.class()) {
            return false;
        }
        let block = self.block(pointer);
        block.number() < page.links.len() && self.pointer(block) == pointer
    }

    /// True if a pointer leads to a block that is held.
    pub fn is_held(&self, pointer: Pointer) -> bool {
        self.is_block(pointer) && self.link(self.block(pointer)).state == State::Held
    }

    fn link(&self, block: Block) -> &Link {
        &self.pages[block.page()].links[block.number()]
    }

    fn number(&self, block: Block) -> u32 {
        block.page << self.shift | block.number
    }

    fn of_number(&self, number: u32) -> Block {
        Block {
            page: number >> self.shift,
            number: number & ((1 << self.shift) - 1),
        }
    }

    fn link_mut(&mut self, block: Block) -> &mut Link {
        &mut self.pages[block.page()].links[block.number()]
    }

    /// The class that a page belongs to.
    pub fn class_of(&self, page: usize) -> Option<usize> {
        self.pages[page].class
    }

    /// Blocks of a page.
    pub fn blocks_of(&self, page: usize) -> impl Iterator<Item = Block> + use<> {
        (0..self.pages[page].links.len()).map(move |number| Block::new(page, number))
    }

    /// Pages that were ever used.
    pub fn started(&self) -> usize {
        self.pages.len()
    }

    pub fn state(&self, block: Block) -> State {
        self.link(block).state
    }

    /// How often a page left a class. Pointers to it are compared by this count.
    pub fn changes(&self, page: usize) -> u64 {
        self.pages[page].changes
    }

    /// Bytes of the links of pages in use.
    pub fn link_bytes(&self) -> usize {
        let links = self.pages.iter().map(|page| page.links.capacity());
        links.sum::<usize>() * size_of::<Link>()
    }

    /// Blocks of a class.
    pub fn blocks(&self, class: usize) -> usize {
        self.classes[class].blocks
    }

    /// Pages of a class, its blocks, and those that are free.
    pub fn count(&self, class: usize) -> (usize, usize, usize) {
        let pages = self.pages.iter().filter(|page| page.class == Some(class));
        let class = &self.classes[class];
        (pages.count(), class.blocks, class.free_blocks)
    }

    fn unlink(&mut self, list: &mut List, block: Block) {
        let Link { previous, next, .. } = *self.link(block);
        match previous {
            NONE => list.first = next,
            previous => self.link_mut(self.of_number(previous)).next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.link_mut(self.of_number(next)).previous = previous,
        }
    }

    fn append(&mut self, list: &mut List, block: Block, state: State) {
        let number = self.number(block);
        *self.link_mut(block) = Link {
            previous: list.last,
            next: NONE,
            state,
        };
        match list.last {
            NONE => list.first = number,
            last => self.link_mut(self.of_number(last)).next = number,
        }
        list.last = number;
    }

    /// Takes a free block of a class, which the caller then holds.
    pub fn take(&mut self, class: usize) -> Option<Block> {
        let mut free = self.classes[class].free;
        let first = Some(free.first).filter(|&first| first != NONE)?;
        let block = self.of_number(first);
        self.unlink(&mut free, block);
        self.classes[class].free = free;
        self.classes[class].free_blocks -= 1;
        self.link_mut(block).state = State::Held;
        let page = &mut self.pages[block.page()];
        page.free -= 1;
        page.held += 1;
        if page.free + 1 == page.links.len() {
            self.idle.remove(&block.page());
        }
        Some(block)
    }

    /// A block in the caller's hands is free.
    pub fn give(&mut self, block: Block) {
        let page = &mut self.pages[block.page()];
        page.held -= 1;
        page.free += 1;
        if page.free == page.links.len() && !page.retiring {
            self.idle.insert(block.page());
        }
        let (class, retiring) = (page.class, page.retiring);
        let class = class.expect("a block's page has a class");
        match retiring {
            true => self.link_mut(block).state = State::Free,
            false => self.offer(class, block),
        }
    }

    /// A block of a class is free for all.
    fn offer(&mut self, class: usize, block: Block) {
        let mut free = self.classes[class].free;
        self.append(&mut free, block, State::Free);
        self.classes[class].free = free;
        self.classes[class].free_blocks += 1;
    }

    /// A block in the caller's hands is lost (invariant 5).
    pub fn lose(&mut self, block: Block) {
        let page = &mut self.pages[block.page()];
        page.held -= 1;
        page.lost += 1;
        self.link_mut(block).state = State::Lost;
    }

    /// True if a page has lost blocks.
    pub fn has_lost(&self, page: usize) -> bool {
        self.pages[page].lost > 0
    }

    /// A block in the caller's hands is listed as used in an epoch.
    pub fn list(&mut self, block: Block, epoch: u32) {
        let page = &mut self.pages[block.page()];
        page.held -= 1;
        let class = page.class.expect("a block's page has a class");
        let listed = &mut self.classes[class].listed;
        let mut list = *listed.entry(epoch).or_insert(List::EMPTY);
        self.append(&mut list, block, State::Listed(epoch));
        self.classes[class].listed.insert(epoch, list);
    }

    /// Takes a listed block out of its list. The caller then holds it.
    pub fn unlist(&mut self, block: Block) {
        let State::Listed(epoch) = self.state(block) else {
            unreachable!("only listed blocks are taken out of their list");
        };
        let class = self.pages[block.page()].class;
        let class = class.expect("a block's page has a class");
        let listed = &self.classes[class].listed;
        let mut list = *(listed.get(&epoch)).expect("a listed block is in its epoch's list");
        self.unlink(&mut list, block);
        match list.first {
            NONE => self.classes[class].listed.remove(&epoch),
            _ => self.classes[class].listed.insert(epoch, list),
        };
        self.link_mut(block).state = State::Held;
        self.pages[block.page()].held += 1;
    }

    /// The block of a class that is evicted first, and its epoch.
    pub fn oldest(&self, class: usize) -> Option<(u32, Block)> {
        let (&epoch, list) = self.classes[class].listed.first_key_value()?;
        Some((epoch, self.of_number(list.first)))
    }

    /// The expiration bar of each class: no pair of it is listed in an older epoch.
    pub fn bars(&self, present: u32) -> impl Iterator<Item = u32> {
        let oldest = |class: &Class| Some(*class.listed.first_key_value()?.0);
        let classes = self.classes.iter();
        classes.map(move |class| oldest(class).unwrap_or(present))
    }

    /// The other classes that have pairs, by their oldest epochs.
    pub fn others_by_age(&self, than: usize) -> Vec<usize> {
        let oldest = |class: usize| {
            let (&epoch, _) = self.classes[class].listed.first_key_value()?;
            Some((epoch, class))
        };
        let others = (0..self.classes.len()).filter(|&class| class != than);
        let mut others: Vec<_> = others.filter_map(oldest).collect();
        others.sort_unstable();
        others.into_iter().map(|(_, class)| class).collect()
    }

    /// The first page of another class than this whose blocks are all free.
    pub fn idle_page(&self, not_of: usize) -> Option<usize> {
        let mut idle = self.idle.iter().copied();
        idle.find(|&page| self.pages[page].class != Some(not_of))
    }

    /// Gives a class another page, if the limit allows. The caller makes its blocks: they become free by
    /// [`Pages::open`].
    pub fn add(&mut self, class: usize) -> Option<usize> {
        if self.used >= self.limit {
            return None;
        }
        let page = match self.spare.pop() {
            Some(page) => page,
            None if self.pages.len() < self.layout.pages => {
                self.pages.push(Page {
                    class: None,
                    links: Vec::new(),
                    held: 0,
                    free: 0,
                    lost: 0,
                    retiring: false,
                    changes: 0,
                });
                self.pages.len() - 1
            }
            None => return None,
        };
        self.used += 1;
        let blocks = self.layout.page_words / self.layout.classes.words(class);
        let link = Link {
            previous: NONE,
            next: NONE,
            state: State::Held,
        };
        self.pages[page] = Page {
            class: Some(class),
            links: vec![link; blocks],
            held: blocks,
            free: 0,
            lost: 0,
            retiring: false,
            changes: self.pages[page].changes,
        };
        self.classes[class].blocks += blocks;
        Some(page)
    }

    /// All blocks of a new page are free.
    pub fn open(&mut self, page: usize) {
        for block in self.blocks_of(page) {
            self.give(block);
        }
    }

    /// Begins to take a page from its class. False if some of its blocks are held or lost.
    pub fn retire(&mut self, page: usize) -> bool {
        let Page {
            class, held, lost, ..
        } = self.pages[page];
        let Some(class) = class.filter(|_| held + lost == 0) else {
            return false;
        };
        for block in self.blocks_of(page) {
            if self.state(block) == State::Free {
                let mut free = self.classes[class].free;
                self.unlink(&mut free, block);
                self.classes[class].free = free;
                self.classes[class].free_blocks -= 1;
            }
        }
        self.pages[page].retiring = true;
        self.idle.remove(&page);
        true
    }

    /// A retiring page stays in its class after all.
    pub fn keep(&mut self, page: usize) {
        self.pages[page].retiring = false;
        if self.is_empty(page) {
            self.idle.insert(page);
        }
        let class = self.pages[page].class;
        let class = class.expect("a page that retires has a class until it is empty");
        for block in self.blocks_of(page) {
            if self.state(block) == State::Free {
                self.offer(class, block);
            }
        }
    }

    /// Pairs of a page.
    pub fn pairs(&self, page: usize) -> usize {
        let page = &self.pages[page];
        page.links.len() - page.free - page.held - page.lost
    }

    /// Of the pages whose pairs have room elsewhere in their class, the one with the fewest pairs.
    pub fn movable(&self) -> Option<usize> {
        let has_room = |&page: &usize| {
            let Page {
                class,
                retiring,
                held,
                lost,
                free,
                ..
            } = self.pages[page];
            let room = class.map_or(0, |class| self.classes[class].free_blocks);
            !retiring && held + lost == 0 && room >= free + self.pairs(page)
        };
        let pages = (0..self.pages.len()).filter(|&page| self.pages[page].class.is_some());
        pages.filter(has_room).min_by_key(|&page| self.pairs(page))
    }

    /// True if a retiring page has no pair any more.
    pub fn is_empty(&self, page: usize) -> bool {
        self.pages[page].free == self.pages[page].links.len()
    }

    /// A retiring page that is empty leaves its class. Pointers to it are stale from now on. Returns its changes.
    pub fn leave(&mut self, page: usize) -> u64 {
        let page = &mut self.pages[page];
        if let Some(class) = page.class.take() {
            self.classes[class].blocks -= page.links.len();
        }
        page.changes += 1;
        page.changes
    }

    /// No session accesses a page that left its class any more: any class may have it.
    pub fn release(&mut self, page: usize) {
        self.pages[page].retiring = false;
        self.pages[page].links = Vec::new();
        self.pages[page].free = 0;
        self.spare.push(page);
        self.used -= 1;
    }

    /// Recomputes the invariants.
    pub fn audit(&self) -> Result<(), AuditError> {
        let is_idle =
            |page: &Page| page.class.is_some() && !page.retiring && page.free == page.links.len();
        let idle = (0..self.pages.len()).filter(|&page| is_idle(&self.pages[page]));
        if !idle.eq(self.idle.iter().copied()) {
            return Err("pages 4: the list of idle pages".into());
        }
        for (number, class) in self.classes.iter().enumerate() {
            let mut seen = 0;
            for (epoch, list) in &class.listed {
                if list.first == NONE {
                    return Err(format!("pages 2: an empty list of class {number}").into());
                }
                seen += self.walk(list, State::Listed(*epoch))?;
            }
            let free = self.walk(&class.free, State::Free)?;
            let pages = || self.pages.iter().filter(|page| page.class == Some(number));
            let held: usize = pages().map(|page| page.held).sum();
            let retired = pages().filter(|page| page.retiring).map(|page| page.free);
            let lost = retired.sum::<usize>() + pages().map(|page| page.lost).sum::<usize>();
            if free != class.free_blocks || seen + free + held + lost != class.blocks {
                let blocks = class.blocks;
                return Err(format!(
                    "pages 1: class {number} has {seen} + {free} + {held} + {lost} of {blocks} blocks"
                ).into());
            }
        }
        Ok(())
    }

    fn walk(&self, list: &List, state: State) -> Result<usize, AuditError> {
        let (mut previous, mut at, mut count) = (NONE, list.first, 0);
        while at != NONE {
            let link = self.link(self.of_number(at));
            if link.state != state || link.previous != previous {
                return Err(format!("pages 1: block {at:#x} is in a wrong list").into());
            }
            (previous, at) = (at, link.next);
            count += 1;
        }
        match previous == list.last {
            true => Ok(count),
            false => Err("pages 1: a list ends elsewhere".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn pages() -> Pages {
        let config = Config {
            memory: 1 << 20,
            memory_max: 1 << 20,
            item_size_max: 8 << 10,
            ..Config::default()
        };
        Pages::new(&Layout::new(&config, 1).unwrap(), 4)
    }

    #[test]
    fn blocks_come_by_epochs() {
        let mut pages = pages();
        assert_eq!(pages.take(3), None);
        let page = pages.add(3).unwrap();
        pages.open(page);
        let blocks: Vec<_> = (0..6).map(|_| pages.take(3).unwrap()).collect();
        for (&block, epoch) in blocks.iter().zip([5, 3, 4, 3, 9, 5]) {
            assert_eq!(pages.block(pages.pointer(block)), block);
            pages.list(block, epoch);
        }
        assert_eq!(pages.audit(), Ok(()));
        let mut order = Vec::new();
        while let Some((epoch, block)) = pages.oldest(3) {
            assert_eq!(pages.bars(10).nth(3), Some(epoch));
            pages.unlist(block);
            pages.give(block);
            order.push(epoch);
            assert_eq!(pages.audit(), Ok(()));
        }
        assert_eq!(order, [3, 3, 4, 5, 5, 9]);
        assert!(pages.bars(10).all(|bar| bar == 10));
    }

    #[test]
    fn a_pair_that_nobody_uses_holds_the_bar_of_its_class_alone() {
        let mut pages = pages();
        for (class, epoch) in [(0, 1), (3, 9)] {
            let page = pages.add(class).unwrap();
            pages.open(page);
            let block = pages.take(class).unwrap();
            pages.list(block, epoch);
        }
        let bars: Vec<_> = pages.bars(10).collect();
        assert_eq!(bars[..5], [1, 10, 10, 9, 10]);
    }

    #[test]
    fn a_page_goes_to_another_class_when_it_is_empty() {
        let mut pages = pages();
        for _ in 0..4 {
            let page = pages.add(0).unwrap();
            pages.open(page);
        }
        assert_eq!(pages.add(1), None);
        let held = pages.take(0).unwrap();
        assert!(!pages.retire(held.page()));
        pages.list(held, 1);
        assert!(pages.retire(held.page()));
        assert!(!pages.is_empty(held.page()));
        assert_eq!(pages.audit(), Ok(()));
        pages.unlist(held);
        pages.give(held);
        assert!(pages.is_empty(held.page()));
        assert_eq!(pages.leave(held.page()), 1);
        assert_eq!(pages.add(1), None);
        pages.release(held.page());
        assert_eq!(pages.add(1), Some(held.page()));
        assert_eq!(pages.changes(held.page()), 1);
        pages.open(held.page());
        assert_eq!(pages.audit(), Ok(()));
    }
}
