//! The arrays of a bulk lookup.

use std::slice;

use crate::status::Status;

/// Bits of a word of hits.
pub(crate) const WORD: usize = u64::BITS as usize;

pub(crate) struct Arrays<'a, K> {
    pub keys: &'a [K],
    pub values: &'a mut [u64],
    pub hits: &'a mut [u64],
}

impl<'a, K> Arrays<'a, K> {
    /// # Safety
    /// Each pointer is NULL or leads to an array as long as `count` says, which nobody else uses
    /// for `'a`.
    pub(crate) unsafe fn checked(
        keys: *const K,
        count: usize,
        values: *mut u64,
        hits: *mut u64,
    ) -> Result<Self, Status> {
        if count == 0 {
            return Ok(Self {
                keys: &[],
                values: &mut [],
                hits: &mut [],
            });
        }
        if keys.is_null() || values.is_null() || hits.is_null() {
            return Err(Status::NullPointer);
        }
        if count > isize::MAX as usize / size_of::<K>().max(size_of::<u64>()) {
            return Err(Status::CountTooLarge);
        }
        // SAFETY: none is NULL, none is larger than half the address space, and the rest is the
        // caller's promise.
        Ok(unsafe {
            Self {
                keys: slice::from_raw_parts(keys, count),
                values: slice::from_raw_parts_mut(values, count),
                hits: slice::from_raw_parts_mut(hits, count.div_ceil(WORD)),
            }
        })
    }
}
