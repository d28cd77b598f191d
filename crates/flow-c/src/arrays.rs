//! The arrays of a bulk lookup.

use std::slice;

use crate::status::Status;

/// Bits of a word of hits.
const WORD: usize = u64::BITS as usize;

pub(crate) struct Arrays<'a> {
    pub hashes: &'a [u64],
    pub values: &'a mut [u64],
    pub hits: &'a mut [u64],
}

impl<'a> Arrays<'a> {
    /// # Safety
    /// Each pointer is NULL or leads to an array as long as `count` says, which nobody else uses
    /// for `'a`.
    pub(crate) unsafe fn checked(
        hashes: *const u64,
        count: usize,
        values: *mut u64,
        hits: *mut u64,
    ) -> Result<Self, Status> {
        if count == 0 {
            return Ok(Self {
                hashes: &[],
                values: &mut [],
                hits: &mut [],
            });
        }
        if hashes.is_null() || values.is_null() || hits.is_null() {
            return Err(Status::NullPointer);
        }
        if count > isize::MAX as usize / size_of::<u64>() {
            return Err(Status::CountTooLarge);
        }
        // SAFETY: none is NULL, none is larger than half the address space, and the rest is the
        // caller's promise.
        Ok(unsafe {
            Self {
                hashes: slice::from_raw_parts(hashes, count),
                values: slice::from_raw_parts_mut(values, count),
                hits: slice::from_raw_parts_mut(hits, count.div_ceil(WORD)),
            }
        })
    }
}
