//! What all tables of this crate are: an index of references to items.

use std::io;

use nuthatch_base::sync::shim::AtomicU64;

use crate::search::Paths;

/// A reference to an item: its number and 1, so that 0 is free to mean none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference(u64);

impl Reference {
    /// To the item of this number, which is below 2^56 - 1: with a tag it is a word.
    #[inline(always)]
    pub fn to(number: usize) -> Self {
        Self(number as u64 + 1)
    }

    /// The item's number.
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0 as usize - 1
    }

    /// As a word, which is not 0.
    #[inline(always)]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// From a word; nothing if it is 0.
    #[inline(always)]
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }
}

/// What an index asks of the items that it refers to.
pub trait Items {
    /// The word of an item in which a chain keeps its next item. Only chains ask for it.
    fn link(&self, item: Reference) -> &AtomicU64;

    /// The hash of its key.
    fn hash(&self, item: Reference) -> u64;
}

/// How an index is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Buckets: a power of two, at least 2.
    pub buckets: u64,
    /// It lies on huge pages.
    pub huge_pages: bool,
}

/// What became of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The item is in the index.
    Yes {
        /// Items that were moved for it.
        displaced: usize,
        /// Items that the search would have moved, on all of its paths.
        kicked: usize,
    },
    /// No free slot was found.
    Full,
}

/// An index.
pub trait Index: Sized {
    /// Words that it needs in each item: of chains, the link.
    const LINKS: usize;

    /// An empty one. Errors: too little address space.
    fn new(shape: Shape) -> io::Result<Self>;

    /// What `look` says of the first item that it accepts, of those that may have a key with this hash. With versions
    /// for locks it may be called for an item that is just leaving, and its last answer counts.
    fn find<T>(
        &self,
        hash: u64,
        items: &impl Items,
        look: impl FnMut(Reference) -> Option<T>,
    ) -> Option<T>;

    /// Inserts an item whose key the index does not have.
    fn insert(&self, hash: u64, item: Reference, items: &impl Items, paths: &mut Paths)
    -> Inserted;

    /// Removes the item that `is` accepts, of those that may have a key with this hash.
    fn remove(
        &self,
        hash: u64,
        items: &impl Items,
        is: impl FnMut(Reference) -> bool,
    ) -> Option<Reference>;

    /// Bytes that it takes to index so many items, with what lies in the items.
    fn bytes(&self, items: u64) -> u64;

    /// Items of the fullest bucket.
    fn fullest(&self, items: &impl Items) -> usize;
}
