//! The status codes of failed calls, and the guard by which all calls catch panics.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nuthatch_shmem::Error;

/// The result of a call. All but the first are negative: the call failed and did nothing. A function that returns a
/// count returns one of these instead when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A pointer that must not be NULL is NULL.
    NullPointer = -1,
    /// The key does not have 1 to 250 bytes.
    Key = -2,
    /// The item is larger than the configuration allows (see `item_size_max`), or a list is longer than memory can be.
    TooLarge = -3,
    /// The server is full, and nothing may be evicted.
    OutOfMemory = -4,
    /// The value is not a decimal number of 64 bits.
    NotNumeric = -5,
    /// The value does not fit into the buffer.
    BufferTooSmall = -6,
    /// The configuration is not possible, or not the same on all PEs. The reason is on standard error.
    Settings = -7,
    /// There is no symmetric memory for the store. Standard error says what to do.
    NoMemory = -8,
    /// Every PE serves in a thread beside the program's, but shmem_init_thread() did not provide SHMEM_THREAD_MULTIPLE.
    Threads = -9,
    /// This PE is not one that only serves, so it must not call nuthatch_shmem_serve().
    NoServer = -10,
    /// A defect of this library, described on standard error.
    Defect = -11,
    /// The key has another value by now.
    Changed = -12,
}

impl Status {
    const ALL: [(Status, &CStr); 13] = [
        (Status::Ok, c"success"),
        (Status::NullPointer, c"a pointer is NULL that must not be"),
        (Status::Key, c"a key has 1 to 250 bytes"),
        (Status::TooLarge, c"the item is larger than the largest"),
        (Status::OutOfMemory, c"the server is full"),
        (
            Status::NotNumeric,
            c"what is there is no decimal number of 64 bits",
        ),
        (
            Status::BufferTooSmall,
            c"the value does not fit into the buffer",
        ),
        (
            Status::Settings,
            c"settings that cannot be, described on standard error",
        ),
        (Status::NoMemory, c"no symmetric memory: see standard error"),
        (
            Status::Threads,
            c"servers beside the program want SHMEM_THREAD_MULTIPLE",
        ),
        (Status::NoServer, c"this PE is no server of its own"),
        (
            Status::Defect,
            c"a defect of the library, described on standard error",
        ),
        (Status::Changed, c"the key has another value by now"),
    ];
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Key => Self::Key,
            Error::TooLarge => Self::TooLarge,
            Error::OutOfMemory => Self::OutOfMemory,
            Error::NotNumeric => Self::NotNumeric,
        }
    }
}

/// Runs the body of a function that C called: a panic must not unwind into C.
pub(crate) fn catch(body: impl FnOnce() -> Result<c_int, Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(number)) => number,
        Ok(Err(status)) => status as c_int,
        Err(_) => Status::Defect as c_int,
    }
}

/// Returns a sentence that describes `status`, never NULL. The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_shmem_error_string(status: c_int) -> *const c_char {
    let known = Status::ALL
        .iter()
        .find(|(known, _)| *known as c_int == status);
    known.map_or(c"no such status", |(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_sentence() {
        for (at, (status, _)) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as i32, -(at as i32), "the list has a gap");
        }
        assert_eq!(
            catch(|| panic!("as if there were a defect")),
            Status::Defect as i32
        );
    }
}
