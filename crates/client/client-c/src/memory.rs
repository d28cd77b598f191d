//! Memory that C passes.

use crate::status::Failure;

/// What a pointer refers to.
///
/// # Safety
/// `pointer` is NULL, or points to a valid `T` that no code changes for `'a`.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Failure::NullPointer)
}

/// An array. NULL is one of no elements.
///
/// # Safety
/// `pointer` is NULL and `length` is 0, or so many valid elements lie there that no code changes for `'a`.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, length: usize) -> Result<&'a [T], Failure> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::NullPointer),
        (false, _) => {
            check_length::<T>(length)?;
            // SAFETY: the caller's promise; and no slice is longer.
            Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
        }
    }
}

/// Errors: an array of so many elements has more bytes than memory.
pub(crate) fn check_length<T>(length: usize) -> Result<(), Failure> {
    match length <= isize::MAX as usize / size_of::<T>() {
        true => Ok(()),
        false => Err(Failure::TooLong),
    }
}

/// Errors: a result has nowhere to go.
pub(crate) fn check_place<T>(pointer: *mut T) -> Result<(), Failure> {
    match pointer.is_null() {
        true => Err(Failure::NullPointer),
        false => Ok(()),
    }
}

/// Writes a result.
///
/// # Safety
/// `pointer` is NULL, or may be written to; there need be nothing valid.
pub(crate) unsafe fn put<T>(pointer: *mut T, result: T) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::NullPointer);
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.write(result) };
    Ok(())
}
