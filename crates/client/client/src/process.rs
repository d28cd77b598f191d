//! What belongs to one process: a child that was forked gets its own.

use std::sync::{Arc, OnceLock};

use crate::memory::ForkMark;

/// A value for this process, and others for its children. Nothing of the parent's is touched in a child: not even its locks,
/// which a thread may have held that the child has not.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    value: Arc<T>,
    /// None: nobody asks whether this is a child.
    mark: Option<ForkMark>,
    childs: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    /// `notices`: children get their own.
    pub fn new(notices: bool) -> Self {
        Self {
            value: Arc::default(),
            // A kernel without marks (before 4.14) has no shared memory that is sealed either.
            mark: notices.then(ForkMark::new).and_then(Result::ok),
            childs: OnceLock::new(),
        }
    }

    /// This process' value.
    #[inline]
    pub fn get(&self) -> &T {
        if self.is_parents() {
            return self.childs.get_or_init(|| Box::new(Self::new(true))).get();
        }
        &self.value
    }
}

impl<T> PerProcess<T> {
    fn is_parents(&self) -> bool {
        self.mark.as_ref().is_some_and(ForkMark::is_child)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.is_parents() {
            // It is never dropped: that would end what the parent uses.
            std::mem::forget(Arc::clone(&self.value));
        }
    }
}
