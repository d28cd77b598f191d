//! A hook for tests: a function that is called in the middle of each read of a value, on the reader's thread, to change
//! the item then. Only in builds with debug assertions.

use std::cell::RefCell;

type Meddler = Box<dyn FnMut()>;

thread_local! {
    static MEDDLER: RefCell<Option<Meddler>> = const { RefCell::new(None) };
}

/// Calls `meddler` whenever this thread begins to read a value, but not for what it reads itself, until the
/// guard is dropped.
pub fn meddle(meddler: impl FnMut() + 'static) -> Meddling {
    MEDDLER.set(Some(Box::new(meddler)));
    Meddling
}

/// Ends the meddling.
pub struct Meddling;

impl Drop for Meddling {
    fn drop(&mut self) {
        MEDDLER.take();
    }
}

/// A value is about to be read.
pub fn reading() {
    // Gone in a thread that is ending.
    let meddler = MEDDLER.try_with(RefCell::take).ok().flatten();
    if let Some(mut meddler) = meddler {
        meddler();
        MEDDLER.set(Some(meddler));
    }
}
