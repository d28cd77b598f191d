//! What a call came to, and in words; and how all calls catch panics.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nuthatch_client::{CarriedOut, Error, Outcome};

use crate::cancel::Uncancelled;

/// What a call came to. A negative number is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// The call did what it says.
    Done = 0,
    /// There is no such item.
    NotFound = 1,
    /// The item was not stored: add found one, or replace, append or prepend found none.
    NotStored = 2,
    /// Somebody else has changed the item since its number was read.
    Changed = 3,
    /// The caller is to compute the value.
    Compute = 4,
    /// Only a server can say.
    Ask = 5,
    /// A pointer that must not be NULL is NULL.
    NullPointer = -1,
    /// The key is empty or too long, or the value is too long, or the address or an option is invalid.
    Invalid = -2,
    /// The server cannot be reached, or too many calls wait for it, or the connection or the time ended before anything was
    /// sent: surely nothing has been changed.
    NotSent = -3,
    /// The connection ended, or the time, before the reply came: a change may have been made.
    NoReply = -4,
    /// The server refused the request.
    Refused = -5,
    /// The value is no number.
    NotANumber = -6,
    /// A defect of this library, described on standard error.
    Defect = -7,
    /// The caller's function did not compute the value.
    NotComputed = -8,
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        match error {
            Error::Key { .. } | Error::Value { .. } | Error::Address(_) => Self::Invalid,
            Error::Refused(_) => Self::Refused,
            Error::NotANumber => Self::NotANumber,
            other if other.carried_out() == CarriedOut::Maybe => Self::NoReply,
            _ => Self::NotSent,
        }
    }
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::NotFound => Self::NotFound,
            Outcome::NotStored => Self::NotStored,
            Outcome::Changed => Self::Changed,
        }
    }
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    NullPointer,
    Error(Error),
    Address,
    TooLong,
    /// The process has as many clients as it may keep.
    Full,
    /// The caller's function returned this number.
    NotComputed(c_int),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

thread_local! {
    /// What the thread's last failure was, in words.
    static WORDS: RefCell<CString> = RefCell::default();
}

/// Returns what the last failed call of this thread failed at, in words; an empty string if none has. The caller must not free
/// it. It is valid until this thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_client_error() -> *const c_char {
    WORDS
        .try_with(|words| words.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

fn say(words: &str) {
    let words = CString::new(words.replace('\0', "?")).unwrap_or_default();
    // A thread that ends has nobody to read them.
    let _ = WORDS.try_with(|last| *last.borrow_mut() = words);
}

/// Runs the body of a function that C called: a panic must not go beyond it, and no cancellation of its thread come into it.
pub(crate) fn catch(body: impl FnOnce() -> Result<Status, Failure>) -> c_int {
    let _uncancelled = Uncancelled::begin();
    // A client is left in order by a panic: its locks pass over one.
    let (status, words) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => return status as c_int,
        Ok(Err(Failure::Error(error))) => ((&error).into(), error.to_string()),
        Ok(Err(Failure::NullPointer)) => (
            Status::NullPointer,
            "a pointer is NULL that must not be".to_owned(),
        ),
        Ok(Err(Failure::Address)) => (Status::Invalid, "the address is not UTF-8".to_owned()),
        Ok(Err(Failure::TooLong)) => (
            Status::Invalid,
            "an array of more bytes than memory has".to_owned(),
        ),
        Ok(Err(Failure::Full)) => (
            Status::Invalid,
            "a process keeps clients of 64 addresses at most".to_owned(),
        ),
        Ok(Err(Failure::NotComputed(number))) => (
            Status::NotComputed,
            format!("the function that computes the value returned {number}"),
        ),
        Err(_) => (
            Status::Defect,
            "a defect of the library, described on standard error".to_owned(),
        ),
    };
    say(&words);
    status as c_int
}

/// A string of C's.
///
/// # Safety
/// `text` is NULL, or points to a string that ends with a zero byte.
pub(crate) unsafe fn string<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::NullPointer);
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Failure::Address)
}
