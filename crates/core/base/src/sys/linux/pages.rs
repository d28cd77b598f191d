//! Huge pages, and what else Linux does on advice.

use std::ops::Range;
use std::ptr::NonNull;

use memmap2::{Advice, MmapMut};
use nix::sys::mman::{MmapAdvise, madvise};

pub use crate::sys::posix::page_bytes;

/// No huge pages, until [`use_huge`]. Where the system uses them by default, it would also use them for parts whose use has
/// only begun.
pub fn use_small(mapping: &MmapMut) {
    let _ = mapping.advise(Advice::NoHugePage);
}

/// Huge pages for a part that fills them. They are worth 1.8x on random reads. Where the kernel refuses, small pages work as
/// well, only slower: so the result is ignored.
pub fn use_huge(mapping: &MmapMut, part: Range<usize>) {
    let _ = mapping.advise_range(Advice::HugePage, part.start, part.len());
}

/// Backs a part with memory now, if the kernel can do it (5.14).
pub fn populate(mapping: &MmapMut, part: Range<usize>) {
    // The kernel faults pages in as if each were written with its own content.
    let _ = mapping.advise_range(Advice::PopulateWrite, part.start, part.len());
}

/// Gives the memory of whole pages back, so many bytes. They read as zero from then on: if the system keeps them, because they
/// are locked (`mlockall`), `zero` writes that.
///
/// # Safety
/// The pages are inside of one mapping of the caller, which nobody else unmaps. For other threads this is a store of zero to
/// each byte, which is allowed for what they load and store atomically.
pub unsafe fn release(first: NonNull<u8>, bytes: usize, zero: impl FnOnce()) {
    // SAFETY: the caller's promise.
    if unsafe { madvise(first.cast(), bytes, MmapAdvise::MADV_DONTNEED) }.is_err() {
        zero();
    }
}
