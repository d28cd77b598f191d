//! Runs of lines that were freed last: the next elements of the same length take them.
//!
//! A store of one more element like the others frees a run and takes another. In the words of their blocks both would be
//! searched for, and the words of eight blocks share a line of memory with each other, also if they are of different
//! partitions: their owners would take it from each other. A run in here is taken without a look at its block's word, in
//! which it stays marked as used.

/// Runs that are kept at most. Several, since a client's stores arrive together, and free what they replace together.
const MOST: usize = 16;

/// Runs of one length.
#[derive(Default)]
pub(super) struct Spares {
    /// Lines of each.
    lines: u32,
    count: u32,
    /// The first line of each.
    runs: [u32; MOST],
}

impl Spares {
    /// The run that was kept last, if it has so many lines.
    #[inline(always)]
    pub fn take(&mut self, lines: u32) -> Option<u32> {
        if self.lines != lines {
            return None;
        }
        self.pop().map(|(line, _)| line)
    }

    /// Any run, with its length.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(u32, u32)> {
        self.count = self.count.checked_sub(1)?;
        Some((self.runs[self.count as usize % MOST], self.lines))
    }

    /// True if its runs have another length.
    #[inline(always)]
    pub fn are_unlike(&self, lines: u32) -> bool {
        self.count > 0 && self.lines != lines
    }

    /// Keeps a run that is like the others; false if there is no room for it.
    #[inline(always)]
    pub fn keep(&mut self, line: u32, lines: u32) -> bool {
        let Some(run) = self.runs.get_mut(self.count as usize) else {
            return false;
        };
        *run = line;
        self.lines = lines;
        self.count += 1;
        true
    }

    /// All runs: the first line of each, and the lines of each.
    pub fn runs(&self) -> (&[u32], u32) {
        (&self.runs[..self.count as usize], self.lines)
    }
}
