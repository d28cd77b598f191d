//! A visitor, and one that waits until the visitor has left what it may have entered before it saw a notice.
//!
//! The visitor's busy word is odd while it is inside. It stores the word and then loads the notice; the waiter gives
//! the notice and then loads the word. Each has a sequentially consistent fence in between, so one of them sees the
//! other: the visitor acts on the notice, or the waiter sees an odd word and waits until it has changed.
//!
//! Word and notice may lie anywhere: the distributed store's are words of two processes, and the waiter's loads are Gets.

use crate::sync::shim::{AtomicU64, Ordering, fence};

/// The visitor's end.
#[derive(Debug, Default)]
pub struct Visitor {
    /// Odd inside.
    busy: u64,
}

impl Visitor {
    /// From here on the visitor may access what no notice that it loads now forbids.
    #[inline]
    pub fn enter(&mut self, word: &AtomicU64) {
        self.store_next(word);
        // SeqCst: pairs with the fence in `notice_given`.
        fence(Ordering::SeqCst);
    }

    /// It accesses nothing any more.
    #[inline]
    pub fn leave(&mut self, word: &AtomicU64) {
        self.store_next(word);
    }

    fn store_next(&mut self, word: &AtomicU64) {
        self.busy += 1;
        // Release: the accesses lie before it. Pairs with the Acquire load of the waiter.
        word.store(self.busy, Ordering::Release);
    }
}

/// The waiter's step between a notice that has arrived at the visitor and its loads of the busy word.
#[inline]
pub fn notice_given() {
    // SeqCst: pairs with the fence in `Visitor::enter`.
    fence(Ordering::SeqCst);
}

/// A wait for one visitor, behind [`notice_given`].
#[derive(Debug, Default)]
pub struct VisitorWait {
    /// The busy word when it was first loaded.
    first: Option<u64>,
}

impl VisitorWait {
    /// The busy word that was loaded (Acquire). True if the visitor has left, or will see the notice when it enters.
    #[inline]
    pub fn is_out(&mut self, word: u64) -> bool {
        let first = *self.first.get_or_insert(word);
        word.is_multiple_of(2) || first != word
    }
}
