//! The size classes of a store, and the size of its pages.

use super::arena::WORD;

/// Bytes of the largest page: what classes take from the pool and give back. Loom models each word by
/// itself.
pub const PAGE: usize = if cfg!(loom) { 1 << 8 } else { 1 << 20 };
/// Bytes of the smallest page.
pub const PAGE_MIN: usize = if cfg!(loom) { PAGE } else { 1 << 14 };
/// A memory limit is divided into at least this many pages, unless they would be smaller than [`PAGE_MIN`]: each class
/// in use takes one, and with few pages classes take them from each other all the time. (Items of 100 to 2000 bytes, in
/// fourteen classes, used 4 % of four pages and 80 % of sixty-four.)
const PAGES_MIN: usize = 64;
/// The limit of a store of smaller pages can be raised to so many of them, if nothing else is configured: the state of
/// each page must not outweigh a small limit.
const SMALL_PAGES_MAX: usize = 1 << 14;
/// The smallest chunk: one recency bit stands for this many bytes of the arena.
pub const CHUNK_MIN: usize = 32;
/// The largest number of classes.
pub const CLASSES_MAX: usize = if cfg!(loom) { 3 } else { 63 };

/// Sizes looked up by one table access.
const TABLE_BYTES: usize = 2048;

/// The longest record of a log is this part of a page.
const LONGEST: usize = 16;
/// A log with less memory than the first number is divided into the second number of pages. One page is kept free, and
/// one more is half empty on average. But a page is to have room for a dozen of the usual larger values, or else a
/// space as long as one of them stays empty at its end.
const LOG_PAGES: [(usize, usize); 2] = [(64 << 20, 128), (usize::MAX, 256)];

/// The size of pages, and chunk sizes, ascending.
#[derive(Debug)]
pub struct Sizes {
    page: usize,
    /// Bytes of the largest chunk, or the longest record of a log.
    largest: usize,
    chunks: Vec<usize>,
    table: [u8; TABLE_BYTES / WORD + 1],
}

impl Sizes {
    /// Pages for a memory limit of `limit` bytes, and classes from `smallest` bytes up, each about `factor` times the
    /// one before, up to half a page. Where a page holds few chunks, their size is rounded up to the page's share for
    /// each.
    pub fn new(limit: usize, smallest: usize, factor: f64) -> Self {
        let page = page_of(limit / PAGES_MIN);
        Self::of_page(page, page / 2, smallest, factor)
    }

    /// Pages for a log with a memory limit of `limit` bytes, and classes by which its records are counted.
    ///
    /// The longest record is about a 16th of a page: longer values are cut into pieces, so that little space is left at
    /// the end of a page.
    pub fn for_log(limit: usize, smallest: usize, factor: f64) -> Self {
        let pages = LOG_PAGES.iter().find(|&&(below, _)| limit < below);
        let page = page_of(limit / pages.map_or(1, |&(_, pages)| pages));
        let largest = match page / LONGEST {
            _ if cfg!(loom) => page / 2,
            // A value of 8 KiB with its header.
            8192 => 9 << 10,
            largest => largest,
        };
        Self::of_page(page, largest, smallest, factor)
    }

    fn of_page(page: usize, largest: usize, smallest: usize, factor: f64) -> Self {
        let mut chunks = Vec::new();
        let mut wanted = smallest
            .next_multiple_of(WORD)
            .clamp(CHUNK_MIN, largest / 2);
        while wanted < largest && chunks.len() < CLASSES_MAX - 1 {
            let size = page / (page / wanted) / WORD * WORD;
            chunks.push(size);
            // Rounded down, so that 64 bytes are a class on the way from 32 by 1.25: an item with a 16-byte key and a
            // 32-byte value takes 64 bytes.
            let next = (size as f64 * factor) as usize / WORD * WORD;
            wanted = next.max(size + WORD);
        }
        chunks.retain(|&size| size < largest);
        chunks.push(largest);
        let mut table = [0; TABLE_BYTES / WORD + 1];
        for (words, class) in table.iter_mut().enumerate() {
            let first = chunks.partition_point(|&size| size < words * WORD);
            *class = first.min(chunks.len() - 1) as u8;
        }
        Self {
            page,
            largest,
            chunks,
            table,
        }
    }

    /// Bytes of a page.
    #[inline(always)]
    pub fn page(&self) -> usize {
        self.page
    }

    /// Words of a page.
    #[inline(always)]
    pub fn page_words(&self) -> usize {
        self.page / WORD
    }

    /// The highest limit that can be set on a machine with so much memory, in bytes.
    pub fn limit_max(&self, machine: usize) -> usize {
        if self.page == PAGE {
            machine
        } else {
            machine.min(self.page * SMALL_PAGES_MAX)
        }
    }

    /// The smallest class whose chunks have `bytes` bytes; for more than [`Sizes::largest`], the largest.
    #[inline(always)]
    pub fn class_of(&self, bytes: usize) -> usize {
        match self.table.get(bytes.div_ceil(WORD)) {
            Some(&class) => class as usize,
            None => {
                let class = self.chunks.partition_point(|&size| size < bytes);
                class.min(self.chunks.len() - 1)
            }
        }
    }

    /// Bytes of a chunk of a class.
    #[inline(always)]
    pub fn chunk(&self, class: usize) -> usize {
        self.chunks[class]
    }

    /// Bytes of the largest chunk.
    #[inline(always)]
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.chunks.len()
    }
}

/// The size of a page of about so many bytes.
fn page_of(share: usize) -> usize {
    (1 << share.max(1).ilog2()).clamp(PAGE_MIN, PAGE)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_has_small_pages() {
        for (mib, page) in [
            (1, 16),
            (3, 32),
            (4, 64),
            (63, 512),
            (64, 1024),
            (999, 1024),
        ] {
            let sizes = Sizes::new(mib << 20, CHUNK_MIN, 1.25);
            assert_eq!(sizes.page(), page << 10, "{mib} MiB");
            assert_eq!(sizes.largest(), sizes.chunk(sizes.count() - 1));
        }
        let limit_max = |mib: usize| Sizes::new(mib << 20, CHUNK_MIN, 1.25).limit_max(1 << 40);
        assert_eq!((limit_max(1), limit_max(64)), (256 << 20, 1 << 40));
    }

    #[test]
    fn a_log_has_more_pages() {
        for (mib, page, largest) in [
            (1, 16, 1 << 10),
            (4, 32, 2 << 10),
            (16, 128, 9 << 10),
            (64, 256, 16 << 10),
            (1024, 1024, 64 << 10),
        ] {
            let sizes = Sizes::for_log(mib << 20, CHUNK_MIN, 1.25);
            assert_eq!(
                (sizes.page(), sizes.largest()),
                (page << 10, largest),
                "{mib} MiB"
            );
            assert_eq!(sizes.class_of(largest + 1), sizes.count() - 1);
            assert_eq!(sizes.chunk(sizes.count() - 1), largest);
        }
    }

    #[test]
    fn small_items_waste_little() {
        let sizes = Sizes::new(64 * PAGE, CHUNK_MIN, 1.25);
        assert!((0..sizes.count()).any(|class| sizes.chunk(class) == 64));
        for bytes in 1..=sizes.largest() {
            let class = sizes.class_of(bytes);
            assert!(sizes.chunk(class) >= bytes);
            assert!(class == 0 || sizes.chunk(class - 1) < bytes);
        }
    }

    #[test]
    fn pages_are_used_up() {
        for factor in [1.02, 1.08, 1.25, 2.0, 4.0] {
            let sizes = Sizes::new(64 * PAGE, 48, factor);
            assert!(sizes.count() <= CLASSES_MAX);
            for class in 0..sizes.count() {
                let chunk = sizes.chunk(class);
                assert_eq!(chunk % WORD, 0);
                assert!(
                    PAGE - PAGE / chunk * chunk < PAGE / chunk * WORD + WORD,
                    "{chunk}"
                );
            }
        }
    }
}
