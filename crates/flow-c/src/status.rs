//! What functions return when they did not do what was asked.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use nuthatch_flow::ConfigError;

/// Why a call did nothing: all but the first are negative. A function that returns a number of
/// things returns one of these instead, if it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// A pointer is NULL that must not be.
    NullPointer = -1,
    /// There is no such layout.
    UnknownLayout = -2,
    /// There is no such eviction.
    UnknownEviction = -3,
    /// There is no such entry.
    UnknownEntry = -4,
    /// There is no such place to insert at.
    UnknownInsertAt = -5,
    /// A probability is not a number from 0 to 1.
    Probability = -6,
    /// The layout and the eviction do not go together.
    Unsuited = -7,
    /// Threads cannot share a table of this eviction or entry.
    NotShared = -8,
    /// More entries than a table may have, which are 2^32.
    TooManyEntries = -9,
    /// The value has more bits than an entry of this table keeps.
    ValueTooWide = -10,
    /// The system refused the memory.
    NoMemory = -11,
    /// The version of an address is neither 4 nor 6.
    AddressVersion = -12,
    /// The arrays would not fit into the address space.
    CountTooLarge = -13,
    /// A defect of this library, described on standard error. Destroy the table.
    Defect = -14,
}

impl Status {
    const ALL: [Status; 15] = [
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
    ];

    const fn text(self) -> &'static CStr {
        match self {
            Status::Ok => c"done",
            Status::NullPointer => c"a pointer is NULL that must not be",
            Status::UnknownLayout => c"there is no such layout",
            Status::UnknownEviction => c"there is no such eviction",
            Status::UnknownEntry => c"there is no such entry",
            Status::UnknownInsertAt => c"there is no such place to insert at",
            Status::Probability => c"a probability is not a number from 0 to 1",
            Status::Unsuited => c"the layout and the eviction do not go together",
            Status::NotShared => c"threads cannot share a table of this eviction or entry",
            Status::TooManyEntries => c"a table has 2^32 entries at most",
            Status::ValueTooWide => c"the value has more bits than an entry of this table keeps",
            Status::NoMemory => c"the system refused the memory for the table",
            Status::AddressVersion => c"the version of an address is neither 4 nor 6",
            Status::CountTooLarge => c"the arrays would not fit into the address space",
            Status::Defect => c"a defect of the library, described on standard error",
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
            // The others are about choices that C does not have.
            _ => Status::Defect,
        }
    }
}

/// Runs the body of a function that C called: a panic must not go beyond it.
///
/// Tables are not used after a panic but to be destroyed, so nobody sees one half changed.
pub(crate) fn answer(body: impl FnOnce() -> Result<i64, Status>) -> i64 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(number)) => number,
        Ok(Err(status)) => status as i64,
        Err(_) => Status::Defect as i64,
    }
}

/// The same, for functions whose answers are small.
pub(crate) fn small(body: impl FnOnce() -> Result<c_int, Status>) -> c_int {
    answer(|| body().map(i64::from)) as c_int
}

/// What a pointer from C points to.
///
/// # Safety
/// `pointer` is NULL, or points to a valid `T` that nobody changes for `'a`.
pub(crate) unsafe fn read<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Status::NullPointer)
}

/// A place of the caller's for an answer, which may be uninitialised: it is written to, if there is an
/// answer, and never read or referred to.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// # Safety
    /// `pointer` is NULL, or may be written to for as long as this lives.
    pub(crate) unsafe fn checked(pointer: *mut T) -> Result<Self, Status> {
        NonNull::new(pointer).map(Self).ok_or(Status::NullPointer)
    }

    /// The same for an answer that the caller may do without.
    ///
    /// # Safety
    /// As for [`Place::checked`].
    pub(crate) unsafe fn optional(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) fn put(&self, answer: T) {
        // SAFETY: who made this vouched for it.
        unsafe { self.0.write(answer) }
    }
}

/// What a pointer from C points to, to be changed.
///
/// # Safety
/// `pointer` is NULL, or points to a valid, initialised `T` that nobody else uses for `'a`.
pub(crate) unsafe fn write<'a, T>(pointer: *mut T) -> Result<&'a mut T, Status> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(Status::NullPointer)
}

/// Returns a sentence for what a function returned, never NULL. It is not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_error_string(status: c_int) -> *const c_char {
    let known = Status::ALL.iter().find(|&&known| known as c_int == status);
    let text = known.map_or(c"there is no such status", |known| known.text());
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = answer(|| panic!("as if there were a defect"));
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
