//! Memory for slots and records: zeroed, aligned, never moved, and on huge pages if it is large enough.
//!
//! It is a private anonymous mapping, so the kernel allocates a page when it is first written, from the
//! NUMA node of the writing thread's processor.

pub use nuthatch_base::memory::{Mapped, Zeroed};

// SAFETY: atomic integers; 0 is one of their values.
unsafe impl Zeroed for crate::entry::Tag16 {}
// SAFETY: as above.
unsafe impl Zeroed for crate::entry::Tag32 {}
// SAFETY: as above.
unsafe impl Zeroed for crate::entry::Hash64 {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::entry::{Content, Hash64, Slot, Tag16};

    #[test]
    fn zeroed_slots_are_empty() {
        for len in [0, 1, 1000, 600_000, 1_500_000] {
            let slots = Mapped::<Tag16>::reserve(len).unwrap();
            assert_eq!(slots.len(), len);
            assert!(slots.iter().all(|slot| slot.load() == Content::EMPTY));
            assert_eq!(slots.as_ptr() as usize % if cfg!(miri) { 4 } else { 64 }, 0);
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Mapped::<Hash64>::reserve(usize::MAX / 2).is_err());
        assert!(Mapped::<Hash64>::reserve(usize::MAX / 40).is_err());
    }
}
