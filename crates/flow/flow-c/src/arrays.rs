//! Arrays that C passes: a pointer and a count, checked before they become slices.

use std::slice;

use crate::status::Status;

/// Bits of a word of hits.
pub(crate) const WORD: usize = u64::BITS as usize;

/// An array from C, to be read.
///
/// # Safety
/// `first` is NULL or points to `count` valid elements that no code changes for `'a`.
pub(crate) unsafe fn input<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Status> {
    check(first, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is not NULL and not larger than half the address space; the caller promises the
    // rest.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// An array from C, to be written and not read: C need not have initialised it.
///
/// # Safety
/// `first` is NULL or points to `count` elements that no other code uses for `'a`.
pub(crate) unsafe fn output<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], Status> {
    check(first, count)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `input`.
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

/// Where a bulk lookup stores its results.
pub(crate) struct Results<'a> {
    pub values: &'a mut [u64],
    pub hits: &'a mut [u64],
}

impl<'a> Results<'a> {
    /// For `count` keys.
    ///
    /// # Safety
    /// Each pointer is NULL or points to an array that no other code uses for `'a`: of `count` values, and of a word of
    /// hits for every 64 keys or part of 64.
    pub(crate) unsafe fn checked(
        count: usize,
        values: *mut u64,
        hits: *mut u64,
    ) -> Result<Self, Status> {
        // SAFETY: the caller's promise, for both.
        unsafe {
            Ok(Self {
                values: output(values, count)?,
                hits: output(hits, count.div_ceil(WORD))?,
            })
        }
    }
}
