//! The space of a partition: its own blocks, and runs of lines in them.
//!
//! ```text
//!  bins   run of 1   run of 2   ...   run of 64
//!            |          |                |
//!         block 9    block 4          block 30         each in the bin of its longest free run
//!            |          |
//!         block 12   block 17
//! ```
//!
//! An allocation of `n` lines takes the first run that fits in a block of the smallest bin that has one. The bins that
//! have blocks are the bits of one word, and the free lines of a block those of another, so both steps are a few
//! instructions, whatever the sizes were before. Freed lines join their neighbours, since they are bits of the same
//! word. If no run fits, an element can be gathered from several: every free line serves. The runs that were freed last
//! are [`Spares`]: they join the others when these do not suffice, or when whole blocks are wanted.
//!
//! Invariants:
//! 1. A block is in exactly one list: that of its longest free run (run 0: none is free).
//! 2. A line is free, spare, or part of exactly one piece or of the index. The bit of a spare one says that it is used.
//! 3. `free_lines` is the sum of the free bits of all blocks, and of the lines of all spares.
//! 4. While a block is closed there are no spares.

use std::sync::Arc;

use super::element::{Element, HEADER, Kind, MORE_HEADER, Piece};
use super::memory::{ALL_FREE, BLOCK_LINES, BlockMemory, LINE};
use super::spares::Spares;
use nuthatch_engine::AuditError;

const BINS: usize = BLOCK_LINES as usize + 1;

/// One partition's blocks. The memory comes first: a lookup reads no other field.
#[repr(C)]
pub(super) struct Space {
    pub memory: Arc<BlockMemory>,
    /// Bit `r - 1` says whether bin `r` has a block.
    filled: u64,
    free_lines: u64,
    blocks: u32,
    /// Blocks in which nothing is used.
    free_blocks: u32,
    /// A block in no list, from which everything is being moved elsewhere; 0 is none.
    closed: u32,
    spares: Spares,
    /// The first block of each bin; 0 is none.
    bins: [u32; BINS],
}

impl Space {
    pub fn new(memory: Arc<BlockMemory>) -> Self {
        Self {
            memory,
            bins: [0; BINS],
            filled: 0,
            blocks: 0,
            free_blocks: 0,
            free_lines: 0,
            closed: 0,
            spares: Spares::default(),
        }
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Lines that are free.
    pub fn free_lines(&self) -> u64 {
        self.free_lines
    }

    /// Adds a block of the pool; false if it has none.
    pub fn grow(&mut self) -> bool {
        let Some(block) = self.memory.take() else {
            return false;
        };
        self.memory.set_free_bits(block, ALL_FREE);
        self.link(block, BLOCK_LINES);
        self.blocks += 1;
        self.free_lines += u64::from(BLOCK_LINES);
        true
    }

    /// Gives an unused block back to the pool; false if there is none.
    pub fn give_back(&mut self) -> bool {
        self.join_spares();
        let block = self.bins[BLOCK_LINES as usize];
        if block == 0 {
            return false;
        }
        self.unlink(block, BLOCK_LINES);
        self.blocks -= 1;
        self.free_lines -= u64::from(BLOCK_LINES);
        self.memory.give_back(block);
        true
    }

    /// Blocks that are unused.
    pub fn free_blocks(&mut self) -> u32 {
        self.join_spares();
        self.free_blocks
    }

    /// A run of `lines` lines, from 1 to a block.
    #[inline]
    pub fn allocate_run(&mut self, lines: u32) -> Option<u32> {
        if let Some(line) = self.spares.take(lines) {
            self.free_lines -= u64::from(lines);
            return Some(line);
        }
        let mut fitting = self.filled >> (lines - 1);
        if fitting == 0 {
            self.join_spares();
            fitting = self.filled >> (lines - 1);
        }
        if fitting == 0 {
            return None;
        }
        let run = lines + fitting.trailing_zeros();
        let block = self.bins[run as usize];
        let free = self.memory.free_bits(block);
        let start = starts_of_runs(free, lines).trailing_zeros();
        let left = free & !run_mask(start, lines);
        self.memory.set_free_bits(block, left);
        self.free_lines -= u64::from(lines);
        self.rebin(block, run, longest_run(left));
        Some(block * BLOCK_LINES + start)
    }

    /// Takes a run back.
    #[inline]
    pub fn free_run(&mut self, line: u32, lines: u32) {
        if self.closed != 0 {
            return self.join(line, lines);
        }
        if self.spares.are_unlike(lines) {
            self.join_spares();
        }
        if self.spares.keep(line, lines) {
            self.free_lines += u64::from(lines);
        } else {
            self.join(line, lines);
        }
    }

    /// A run becomes free lines of its block.
    fn join(&mut self, line: u32, lines: u32) {
        let (block, start) = (line / BLOCK_LINES, line % BLOCK_LINES);
        let free = self.memory.free_bits(block);
        let now = free | run_mask(start, lines);
        debug_assert_eq!(free & run_mask(start, lines), 0, "lines are freed once");
        self.memory.set_free_bits(block, now);
        if block == self.closed {
            return;
        }
        self.free_lines += u64::from(lines);
        self.rebin(block, longest_run(free), longest_run(now));
    }

    /// All spares become free lines of their blocks.
    fn join_spares(&mut self) {
        while let Some((line, lines)) = self.spares.pop() {
            self.free_lines -= u64::from(lines);
            self.join(line, lines);
        }
    }

    /// Lines for a header and `data` bytes, in one run if one fits, with all tags written. `None` if there are not
    /// enough.
    pub fn allocate(&mut self, data: usize) -> Option<Element> {
        let lines = lines_for(data);
        if lines <= BLOCK_LINES as usize {
            let line = self.allocate_run(lines as u32)?;
            let piece = Piece {
                next: 0,
                lines: lines as u32,
                kind: Kind::Head,
            };
            piece.store(&self.memory, line);
            return Element::new(line);
        }
        self.gather(data)
    }

    /// Lines for a header and `data` bytes, from as many runs as necessary.
    pub fn gather(&mut self, data: usize) -> Option<Element> {
        self.join_spares();
        if (lines_for(data) as u64) > self.free_lines {
            return None;
        }
        let mut head = None;
        let mut last = None;
        let mut rest = data;
        while head.is_none() || rest > 0 {
            let header = if head.is_none() { HEADER } else { MORE_HEADER };
            let wanted = (header + rest).div_ceil(LINE).min(BLOCK_LINES as usize) as u32;
            let longest = u64::BITS - self.filled.leading_zeros();
            let lines = wanted.min(longest);
            let line = (lines > 0).then(|| self.allocate_run(lines)).flatten();
            let Some(line) = line else {
                if let Some(element) = head {
                    self.free(element);
                }
                return None;
            };
            self.append_piece(&mut head, &mut last, line, lines);
            rest = rest.saturating_sub(lines as usize * LINE - header);
        }
        head
    }

    /// Makes a run the next piece of an element, or the first.
    fn append_piece(
        &self,
        head: &mut Option<Element>,
        last: &mut Option<u32>,
        line: u32,
        lines: u32,
    ) {
        let kind = match *head {
            Some(element) => {
                self.memory.store(line, 1, u64::from(element.line()));
                Kind::More
            }
            None => Kind::Head,
        };
        let (memory, next) = (&self.memory, 0);
        Piece { next, lines, kind }.store(memory, line);
        if let Some(last) = *last {
            let before = Piece::load(memory, last);
            Piece {
                next: line,
                ..before
            }
            .store(memory, last);
        }
        *last = Some(line);
        *head = head.or(Element::new(line));
    }

    /// Frees all lines of an element.
    pub fn free(&mut self, element: Element) {
        let mut line = element.line();
        while line != 0 {
            let piece = Piece::load(&self.memory, line);
            self.free_run(line, piece.lines);
            line = piece.next;
        }
    }

    /// Bytes of data that an element has room for.
    pub fn room(&self, element: Element) -> usize {
        let first = Piece::load(&self.memory, element.line());
        let mut room = first.lines as usize * LINE - HEADER;
        let mut next = first.next;
        while next != 0 {
            let piece = Piece::load(&self.memory, next);
            room += piece.lines as usize * LINE - MORE_HEADER;
            next = piece.next;
        }
        room
    }

    /// The block in use with the longest free run, the first to be emptied. A wholly free block does not count.
    pub fn emptiest(&self) -> Option<u32> {
        let partly = self.filled & (u64::MAX >> (64 - BLOCK_LINES + 1));
        let run = u64::BITS - partly.leading_zeros();
        Element::new(self.bins[run as usize]).map(Element::line)
    }

    /// Takes the free lines of a block out of use, so that its elements can only move to other blocks.
    pub fn close(&mut self, block: u32) {
        self.join_spares();
        let free = self.memory.free_bits(block);
        self.unlink(block, longest_run(free));
        self.free_lines -= u64::from(free.count_ones());
        self.closed = block;
    }

    /// Ends the effect of [`Space::close`]: the free lines of the block can be used again.
    pub fn reopen(&mut self) {
        let block = std::mem::take(&mut self.closed);
        let free = self.memory.free_bits(block);
        self.link(block, longest_run(free));
        self.free_lines += u64::from(free.count_ones());
    }

    /// The elements that have lines in a block.
    pub fn elements_in(&self, block: u32) -> Vec<Element> {
        let free = self.memory.free_bits(block);
        let mut elements = Vec::new();
        let mut at = 0;
        while at < BLOCK_LINES {
            if free >> at & 1 == 1 {
                at += 1;
                continue;
            }
            let line = block * BLOCK_LINES + at;
            let piece = Piece::load(&self.memory, line);
            let head = match piece.kind {
                Kind::Head => line,
                Kind::More => self.memory.load(line, 1) as u32,
            };
            elements.extend(Element::new(head).filter(|element| !elements.contains(element)));
            at += piece.lines.max(1);
        }
        elements
    }

    fn rebin(&mut self, block: u32, from: u32, to: u32) {
        if from != to {
            self.unlink(block, from);
            self.link(block, to);
        }
    }

    fn link(&mut self, block: u32, run: u32) {
        let first = self.bins[run as usize];
        self.memory.set_links(block, 0, first);
        if first != 0 {
            let (_, behind) = self.memory.links(first);
            self.memory.set_links(first, block, behind);
        }
        self.bins[run as usize] = block;
        if run > 0 {
            self.filled |= 1 << (run - 1);
        }
        self.free_blocks += u32::from(run == BLOCK_LINES);
    }

    fn unlink(&mut self, block: u32, run: u32) {
        self.free_blocks -= u32::from(run == BLOCK_LINES);
        let (before, behind) = self.memory.links(block);
        if behind != 0 {
            let (_, further) = self.memory.links(behind);
            self.memory.set_links(behind, before, further);
        }
        if before != 0 {
            let (further, _) = self.memory.links(before);
            self.memory.set_links(before, further, behind);
            return;
        }
        self.bins[run as usize] = behind;
        if behind == 0 && run > 0 {
            self.filled &= !(1 << (run - 1));
        }
    }

    /// Checks the invariants: it visits all blocks through the lists.
    pub fn audit(&self) -> Result<Vec<u32>, AuditError> {
        let mut blocks = Vec::new();
        let mut free_lines = 0;
        for (run, &first) in self.bins.iter().enumerate() {
            let mut block = first;
            let mut before = 0;
            while block != 0 {
                let free = self.memory.free_bits(block);
                if longest_run(free) as usize != run {
                    return Err(format!("space 1: block {block} is in the bin of run {run}").into());
                }
                if self.memory.links(block).0 != before {
                    return Err(
                        format!("space 1: the list of run {run} is broken at {block}").into(),
                    );
                }
                free_lines += u64::from(free.count_ones());
                blocks.push(block);
                if blocks.len() > self.blocks as usize {
                    return Err("space 1: more blocks are listed than there are".into());
                }
                before = block;
                block = self.memory.links(block).1;
            }
            let filled = run > 0 && self.filled >> (run - 1) & 1 == 1;
            if run > 0 && filled != (first != 0) {
                return Err(format!("space 1: bin {run} is not what its bit says").into());
            }
        }
        let (spares, lines) = self.spares.runs();
        for &line in spares {
            let free = self.memory.free_bits(line / BLOCK_LINES);
            if free & run_mask(line % BLOCK_LINES, lines) != 0 {
                return Err(format!("space 2: the spare run at line {line} is free too").into());
            }
            free_lines += u64::from(lines);
        }
        if blocks.len() != self.blocks as usize || free_lines != self.free_lines {
            let (listed, counted) = (blocks.len(), self.blocks);
            return Err(format!(
                "space 3: {listed} blocks with {free_lines} free lines are listed, {counted} with \
                 {} counted",
                self.free_lines
            )
            .into());
        }
        Ok(blocks)
    }
}

/// Lines of a header and `data` bytes in one run.
pub(super) fn lines_for(data: usize) -> usize {
    (HEADER + data).div_ceil(LINE)
}

/// `lines` bits from `start` on.
#[inline(always)]
fn run_mask(start: u32, lines: u32) -> u64 {
    (u64::MAX >> (64 - lines)) << start
}

/// The bits at which runs of at least `lines` ones begin.
#[inline(always)]
fn starts_of_runs(bits: u64, lines: u32) -> u64 {
    let mut starts = bits;
    let mut known = 1;
    // After each turn `starts` has the bits at which runs of `known` ones begin.
    while known < lines {
        let more = known.min(lines - known);
        starts &= starts >> more;
        known += more;
    }
    starts
}

/// The length of the longest run of ones.
#[inline]
fn longest_run(bits: u64) -> u32 {
    if bits == u64::MAX {
        return 64;
    }
    // powers[k]: the bits at which runs of 2^k ones begin.
    let mut powers = [bits; 6];
    for k in 1..6 {
        powers[k] = powers[k - 1] & powers[k - 1] >> (1 << (k - 1));
    }
    let mut longest = 0;
    let mut starts = u64::MAX;
    for k in (0..6).rev() {
        let longer = starts & powers[k] >> longest;
        if longer != 0 {
            starts = longer;
            longest += 1 << k;
        }
    }
    longest
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn space(blocks: usize) -> Space {
        let limit = blocks * super::super::memory::BLOCK_COST;
        Space::new(Arc::new(BlockMemory::new(limit, limit).unwrap()))
    }

    #[test]
    fn runs_are_found_as_by_counting() {
        let counted = |bits: u64| {
            let mut longest = 0;
            let mut run = 0;
            for bit in 0..64 {
                run = if bits >> bit & 1 == 1 { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            longest
        };
        let mut state = 7_u64;
        for turn in 0..20_000 {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            let mixed = state ^ state >> 29;
            let bits = if turn % 2 == 0 {
                mixed
            } else {
                mixed | mixed << 1 | mixed << 2
            };
            let longest = longest_run(bits);
            assert_eq!(longest, counted(bits), "{bits:b}");
            for lines in 1..=64 {
                let starts = starts_of_runs(bits, lines);
                assert_eq!(starts != 0, lines <= longest, "{bits:b} {lines}");
                if starts != 0 {
                    let mask = run_mask(starts.trailing_zeros(), lines);
                    assert_eq!(bits & mask, mask);
                }
            }
        }
        assert_eq!((longest_run(0), longest_run(u64::MAX)), (0, 64));
    }

    #[test]
    fn every_line_serves() {
        let mut space = space(4);
        while space.grow() {}
        assert_eq!(space.free_lines(), 4 * 64);
        let small: Vec<_> = (0..4 * 32).map(|_| space.allocate(64).unwrap()).collect();
        assert_eq!(space.free_lines(), 0);
        assert!(space.allocate(0).is_none());
        // Frees every second one: runs of two lines, and half of the memory.
        for element in small.iter().step_by(2) {
            space.free(*element);
        }
        assert!(space.allocate(1000).is_none());
        let scattered = space.gather(1000).unwrap();
        assert!(space.room(scattered) >= 1000);
        space.free(scattered);
        for element in small.iter().skip(1).step_by(2) {
            space.free(*element);
        }
        space.audit().unwrap();
        assert_eq!(space.free_lines(), 4 * 64);
        while space.give_back() {}
        assert_eq!((space.blocks(), space.memory.used()), (0, 0));
    }

    #[test]
    fn what_was_freed_last_is_taken_again_and_its_blocks_word_stays() {
        let mut space = space(1);
        assert!(space.grow());
        let words = |space: &Space| space.memory.free_bits(1);
        let elements: Vec<_> = (0..30).map(|_| space.allocate(64).unwrap()).collect();
        let before = words(&space);
        for _ in 0..3 {
            for &element in &elements[..4] {
                space.free(element);
            }
            assert_eq!((words(&space), space.free_lines()), (before, 4 + 8));
            space.audit().unwrap();
            let again: Vec<_> = (0..4).map(|_| space.allocate(64).unwrap()).collect();
            assert!(again.iter().eq(elements[..4].iter().rev()));
        }
        assert_eq!((words(&space), space.free_lines()), (before, 4));
        // More than are kept, and then a run of another length: all lines are free.
        for &element in &elements {
            space.free(element);
        }
        space.audit().unwrap();
        let whole = space.allocate(63 * LINE).unwrap();
        space.free(whole);
        assert_eq!(space.free_blocks(), 1);
        space.audit().unwrap();
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut space = space(3);
        while space.grow() {}
        assert!(space.allocate(3 * 4096).is_none());
        assert_eq!(space.free_lines(), 3 * 64);
        let whole = space.allocate(3 * 4096 - 64 - 2 * 16).unwrap();
        assert_eq!(space.free_lines(), 0);
        space.free(whole);
        space.audit().unwrap();
    }
}
