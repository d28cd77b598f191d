//! Size classes of blocks. A pair lies in the smallest possible one.

/// Words of the smallest block.
const SMALLEST: usize = 8;

/// Blocks begin at multiples of this many words, 32 bytes, and places are counted in these units.
pub const UNIT: usize = 4;

/// The classes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    words: Vec<usize>,
}

impl Classes {
    /// Each about a quarter larger than the one before; the largest fills a page.
    pub fn of_page(page_words: usize) -> Self {
        let mut words = vec![SMALLEST];
        let mut last = SMALLEST;
        while last < page_words {
            let next = (last * 5 / 4).next_multiple_of(UNIT).max(last + UNIT);
            // As many blocks as fit into a page, each as large as that many can be.
            let fit = page_words / next.min(page_words);
            last = (page_words / fit / UNIT * UNIT).max(last + UNIT);
            words.push(last);
        }
        Self { words }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Words of a class's blocks.
    #[inline(always)]
    pub fn words(&self, class: usize) -> usize {
        self.words[class]
    }

    /// Words of the largest block.
    pub fn largest(&self) -> usize {
        self.words[self.words.len() - 1]
    }

    /// The smallest class with blocks of at least `words` words.
    #[inline]
    pub fn class_of(&self, words: usize) -> Option<usize> {
        let class = self.words.partition_point(|&of_class| of_class < words);
        (class < self.words.len()).then_some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_to_a_page() {
        for page in [2048, 8192, 1 << 17] {
            let classes = Classes::of_page(page);
            assert!(classes.len() < 64, "{}", classes.len());
            assert_eq!(classes.largest(), page);
            for class in 1..classes.len() {
                let (less, more) = (classes.words(class - 1), classes.words(class));
                assert!(less < more && more % UNIT == 0);
                // Small blocks are units apart, and of the largest few go into a page.
                let close = more <= less * 3 / 2 + UNIT || page / more <= 4;
                assert!(close, "{less} {more}");
                assert_eq!(classes.class_of(less + 1), Some(class));
                assert_eq!(classes.class_of(more), Some(class));
            }
            assert_eq!(classes.class_of(page + 1), None);
        }
    }
}
