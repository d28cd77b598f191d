//! Which size classes there are.

use super::arena::WORD;

/// Bytes of a page: what classes take from the pool and give back. Loom models each word by itself.
pub const PAGE: usize = if cfg!(loom) { 1 << 8 } else { 1 << 20 };
/// Words of a page.
pub const PAGE_WORDS: usize = PAGE / WORD;
/// The smallest chunk: one recency bit stands for this many bytes of the arena.
pub const CHUNK_MIN: usize = 32;
/// Classes at most.
pub const CLASSES_MAX: usize = if cfg!(loom) { 3 } else { 63 };

/// Sizes looked up by one table access.
const TABLE_BYTES: usize = 2048;

/// Chunk sizes, ascending.
#[derive(Debug)]
pub struct Sizes {
    chunks: Vec<usize>,
    table: [u8; TABLE_BYTES / WORD + 1],
}

impl Sizes {
    /// Classes from `smallest` bytes up, each about `factor` times the one before, up to half a
    /// page. Where a page holds few chunks, the size is rounded up to what the page really gives.
    pub fn new(smallest: usize, factor: f64) -> Self {
        let mut chunks = Vec::new();
        let mut wanted = smallest.next_multiple_of(WORD).clamp(CHUNK_MIN, PAGE / 4);
        while wanted < PAGE / 2 && chunks.len() < CLASSES_MAX - 1 {
            let size = PAGE / (PAGE / wanted) / WORD * WORD;
            chunks.push(size);
            // Rounded down, so that 64 bytes are a class on the way from 32 by 1.25: an item of a
            // 16-byte key and a 32-byte value is 64 bytes.
            let next = (size as f64 * factor) as usize / WORD * WORD;
            wanted = next.max(size + WORD);
        }
        chunks.push(PAGE / 2);
        let mut table = [0; TABLE_BYTES / WORD + 1];
        for (words, class) in table.iter_mut().enumerate() {
            *class = chunks.partition_point(|&size| size < words * WORD) as u8;
        }
        Self { chunks, table }
    }

    /// The smallest class whose chunks have `bytes` bytes; `bytes` is at most [`Sizes::largest`].
    #[inline(always)]
    pub fn class_of(&self, bytes: usize) -> usize {
        match self.table.get(bytes.div_ceil(WORD)) {
            Some(&class) => class as usize,
            None => self.chunks.partition_point(|&size| size < bytes),
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
        PAGE / 2
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.chunks.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn small_items_waste_little() {
        let sizes = Sizes::new(CHUNK_MIN, 1.25);
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
            let sizes = Sizes::new(48, factor);
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
