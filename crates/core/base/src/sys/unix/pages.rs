//! Pages of one size, which the system takes back when it wants them.

use std::ops::Range;
use std::ptr::NonNull;

use memmap2::MmapMut;
use nix::sys::mman::{MmapAdvise, madvise};

pub use crate::sys::posix::page_bytes;

/// All are small.
pub fn use_small(_mapping: &MmapMut) {}

/// Systems that have large pages use them by themselves.
pub fn use_huge(_mapping: &MmapMut, _part: Range<usize>) {}

/// Memory comes when it is touched.
pub fn populate(_mapping: &MmapMut, _part: Range<usize>) {}

/// Lets the system have the memory of whole pages, so many bytes, when it wants some. They read as zero from then on: `zero`
/// writes that, since until then they stay as they are.
///
/// # Safety
/// The pages are inside of one mapping of the caller, which nobody else unmaps. For other threads this is a store of zero to
/// each byte, which is allowed for what they load and store atomically.
pub unsafe fn release(first: NonNull<u8>, bytes: usize, zero: impl FnOnce()) {
    zero();
    // The result is ignored: locked memory stays.
    //
    // SAFETY: the caller's promise. What the system takes was zero, and comes back as zero; what another thread has stored
    // meanwhile stays, or becomes zero.
    let _ = unsafe { madvise(first.cast(), bytes, MmapAdvise::MADV_FREE) };
}
