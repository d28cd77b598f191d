//! Memory as atomic words.
//!
//! Everything that optimistic readers look at lives in [`Words`]. Because each access is an atomic
//! one, a reader that is late sees old or new words, never undefined behaviour.

use std::ops::Deref;
use std::sync::Arc;

use nuthatch_base::memory::shared::SharedView;
use nuthatch_base::memory::{Mapped, Part, Source};
use nuthatch_base::sync::shim::AtomicU64;

/// A zeroed array of atomic words, on huge pages where they fill them. Words never touched cost no memory.
pub struct Words(Mapped<AtomicU64>);

impl Words {
    /// Reserves address space for `len` words.
    pub fn reserve(len: usize) -> std::io::Result<Self> {
        Mapped::reserve(len).map(Self)
    }

    /// The same for words of which the number in use is not known yet: see [`Mapped::reserve_to_grow`].
    pub fn reserve_to_grow(len: usize) -> std::io::Result<Self> {
        Mapped::reserve_to_grow(len).map(Self)
    }

    /// The same, with memory from `source`.
    pub fn reserve_to_grow_in(source: &Source, len: usize) -> std::io::Result<Self> {
        Mapped::reserve_to_grow_in(source, len).map(Self)
    }

    /// Words that another process made, to load from: see [`Mapped::view`].
    pub fn view(of: &Arc<SharedView>, part: Part) -> Option<Self> {
        Mapped::view(of, part).map(Self)
    }

    /// Where they lie in the file of their source.
    pub fn part(&self) -> Part {
        self.0.part()
    }

    /// The first `len` of them are going to be used: see [`Mapped::expect`].
    pub fn expect(&self, len: usize) {
        self.0.expect(len);
    }

    /// Asks the system to back these words with memory now: see [`Mapped::populate`].
    pub fn populate(&self, start: usize, len: usize) {
        self.0.populate(start..start + len);
    }

    /// Gives the memory of these words back to the system, as far as that takes any: see [`Mapped::release`].
    pub fn release(&self, start: usize, len: usize) {
        self.0.release(start..start + len);
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}
