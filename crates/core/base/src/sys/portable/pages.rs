//! Pages that memmap2 maps, of which the process keeps what it has touched.

use std::ops::Range;
use std::ptr::NonNull;

use memmap2::MmapMut;

/// All are small.
pub fn use_small(_mapping: &MmapMut) {}

/// There are none on advice.
pub fn use_huge(_mapping: &MmapMut, _part: Range<usize>) {}

/// Memory comes when it is touched.
pub fn populate(_mapping: &MmapMut, _part: Range<usize>) {}

/// The unit in which [`release`] is asked. Any would do.
pub fn page_bytes() -> usize {
    4096
}

/// The memory stays. It reads as zero from then on, which `zero` writes. (So this is safe, where the other systems' is not.)
pub fn release(_first: NonNull<u8>, _bytes: usize, zero: impl FnOnce()) {
    zero();
}
