//! The status codes of failed calls, and how all calls check pointers and catch panics.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use nuthatch_flow::ConfigError;

/// The result of a call. All but the first are negative: the call failed and did nothing. A function
/// that returns a count returns one of these instead when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A pointer that must not be NULL is NULL.
    NullPointer = -1,
    /// No such layout.
    UnknownLayout = -2,
    /// No such eviction.
    UnknownEviction = -3,
    /// No such entry.
    UnknownEntry = -4,
    /// No such insert position.
    UnknownInsertAt = -5,
    /// A probability is not a number from 0 to 1.
    Probability = -6,
    /// The eviction does not work on the layout.
    Unsuited = -7,
    /// Threads cannot share a table of this eviction or entry.
    NotShared = -8,
    /// More entries than a table may have, which are 2^32.
    TooManyEntries = -9,
    /// The value has more bits than an entry of this table keeps.
    ValueTooWide = -10,
    /// The system has no memory for the table.
    NoMemory = -11,
    /// The version of an address is neither 4 nor 6.
    AddressVersion = -12,
    /// The arrays would not fit into the address space.
    CountTooLarge = -13,
    /// A defect of this library, described on standard error. Destroy the table.
    Defect = -14,
    /// The stride is smaller than a 32-bit hash.
    Stride = -15,
}

impl Status {
    const ALL: [Status; 16] = [
        Status::Ok,
        Status::NullPointer,
        Status::UnknownLayout,
        Status::UnknownEviction,
        Status::UnknownEntry,
        Status::UnknownInsertAt,
        Status::Probability,
        Status::Unsuited,
        Status::NotShared,
        Status::TooManyEntries,
        Status::ValueTooWide,
        Status::NoMemory,
        Status::AddressVersion,
        Status::CountTooLarge,
        Status::Defect,
        Status::Stride,
    ];

    const fn text(self) -> &'static CStr {
        match self {
            Status::Ok => c"success",
            Status::NullPointer => c"a pointer is NULL that must not be",
            Status::UnknownLayout => c"no such layout",
            Status::UnknownEviction => c"no such eviction",
            Status::UnknownEntry => c"no such entry",
            Status::UnknownInsertAt => c"no such insert position",
            Status::Probability => c"a probability is not a number from 0 to 1",
            Status::Unsuited => c"the eviction does not work on the layout",
            Status::NotShared => c"threads cannot share a table of this eviction or entry",
            Status::TooManyEntries => c"a table has 2^32 entries at most",
            Status::ValueTooWide => c"the value has more bits than an entry of this table keeps",
            Status::NoMemory => c"the system has no memory for the table",
            Status::AddressVersion => c"the version of an address is neither 4 nor 6",
            Status::CountTooLarge => c"the arrays would not fit into the address space",
            Status::Defect => c"a defect of the library, described on standard error",
            Status::Stride => c"the stride is smaller than a 32-bit hash",
        }
    }
}

impl From<ConfigError> for Status {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::TooManyEntries(_) => Status::TooManyEntries,
            ConfigError::Unsuited { .. } => Status::Unsuited,
            ConfigError::EvictionNotShared(_) | ConfigError::EntryNotShared(_) => Status::NotShared,
            ConfigError::Memory(_) => Status::NoMemory,
            // The other errors are about settings that C does not have.
            _ => Status::Defect,
        }
    }
}

impl From<Status> for c_int {
    fn from(status: Status) -> Self {
        status as c_int
    }
}

impl From<Status> for i64 {
    fn from(status: Status) -> Self {
        status as i64
    }
}

/// Runs the body of a function that C called: a panic must not go beyond it.
///
/// After a panic the caller may only destroy the table, so no call sees one that is half changed.
pub(crate) fn catch<N: From<Status>>(body: impl FnOnce() -> Result<N, Status>) -> N {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(number)) => number,
        Ok(Err(status)) => status.into(),
        Err(_) => Status::Defect.into(),
    }
}

/// A reference to the value that a pointer from C points to.
///
/// # Safety
/// `pointer` is NULL, or points to a valid `T` that no code changes for `'a`.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Status::NullPointer)
}

/// An output parameter. Its target may be uninitialised: it is written if there is a result, and never read or referred
/// to.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// # Safety
    /// `pointer` is NULL, or may be written to for as long as this lives.
    pub(crate) unsafe fn checked(pointer: *mut T) -> Result<Self, Status> {
        NonNull::new(pointer).map(Self).ok_or(Status::NullPointer)
    }

    /// An output parameter that may be NULL: then nothing is stored.
    ///
    /// # Safety
    /// As for [`Out::checked`].
    pub(crate) unsafe fn optional(pointer: *mut T) -> OptionalOut<T> {
        OptionalOut(NonNull::new(pointer).map(Self))
    }

    pub(crate) fn set(&self, result: T) {
        // SAFETY: promised when this was made.
        unsafe { self.0.write(result) }
    }
}

/// An output parameter that may be NULL.
pub(crate) struct OptionalOut<T>(Option<Out<T>>);

impl<T> OptionalOut<T> {
    /// Stores the result, if there is one and a place for it.
    pub(crate) fn set_some(&self, result: Option<T>) {
        if let (Some(out), Some(result)) = (&self.0, result) {
            out.set(result);
        }
    }
}

/// Returns a sentence that describes `status`, never NULL. The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_error_string(status: c_int) -> *const c_char {
    let known = Status::ALL.iter().find(|&&known| known as c_int == status);
    let text = known.map_or(c"no such status", |known| known.text());
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status: i64 = catch(|| panic!("as if there were a defect"));
        assert_eq!(status, Status::Defect as i64);
    }

    #[test]
    fn every_status_has_a_sentence_of_its_own() {
        let mut sentences: Vec<_> = Status::ALL.iter().map(|status| status.text()).collect();
        sentences.sort();
        sentences.dedup();
        assert_eq!(sentences.len(), Status::ALL.len());
        for (at, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as i32, -(at as i32), "the list has a gap");
        }
    }
}
