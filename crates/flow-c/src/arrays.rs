//! Arrays that C passes.

use std::slice;

use crate::status::Status;

/// Bits of a word of hits.
pub(crate) const WORD: usize = u64::BITS as usize;

/// An array from C, to be read.
///
/// # Safety
/// `first` is NULL or leads to `count` valid elements that nobody changes for `'a`.
pub(crate) unsafe fn many<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Status> {
    check(first, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is not NULL and not larger than half the address space; the rest is the caller's
    // promise.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// An array from C, to be written and not read: C need not have initialised it.
///
/// # Safety
/// `first` is NULL or leads to `count` elements that nobody else uses for `'a`.
pub(crate) unsafe fn many_mut<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], Status> {
    check(first, count)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `many`.
    Ok(unsafe { slice::from_raw_parts_mut(first, count) })
}

fn check<T>(first: *const T, count: usize) -> Result<(), Status> {
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Status::CountTooLarge);
    }
    if first.is_null() && count > 0 {
        return Err(Status::NullPointer);
    }
    Ok(())
}

/// The arrays of a bulk lookup.
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
        // SAFETY: the caller's promise, for all.
        unsafe {
            Ok(Self {
                keys: many(keys, count)?,
                values: many_mut(values, count)?,
                hits: many_mut(hits, count.div_ceil(WORD))?,
            })
        }
    }
}
