//! What belongs to one process: a child that was forked gets its own.

use std::process;
use std::sync::{Arc, OnceLock};

use mark::ForkMark;

/// With what is found in memory, a hit makes no system call: nor does it ask for the number of the process.
#[cfg(all(
    any(feature = "near", feature = "shm"),
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]
mod mark {
    pub(super) use nuthatch_base::memory::shared::ForkMark;
}

/// Without that, and on other systems than Linux, processes are told by their numbers.
#[cfg(not(all(
    any(feature = "near", feature = "shm"),
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
)))]
mod mark {
    use std::io;

    /// There is none.
    #[derive(Debug)]
    pub(super) enum ForkMark {}

    impl ForkMark {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn is_child(&self) -> bool {
            match *self {}
        }
    }
}

/// A value for this process, and others for its children. Nothing of the parent's is touched in a child: not even its locks,
/// which a thread may have held that the child has not.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    value: Arc<T>,
    owner: Owner,
    childs: OnceLock<Box<Self>>,
}

/// A process, told from its children.
#[derive(Debug)]
struct Owner {
    number: u32,
    /// Tells the same by a load, where there is such a mark; the number is a call of the system.
    mark: Option<ForkMark>,
}

impl Owner {
    /// This process.
    fn here() -> Self {
        Self {
            number: process::id(),
            mark: ForkMark::new().ok(),
        }
    }

    #[inline]
    fn is_parent(&self) -> bool {
        match &self.mark {
            Some(mark) => mark.is_child(),
            None => self.number != process::id(),
        }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self {
            value: Arc::default(),
            owner: Owner::here(),
            childs: OnceLock::new(),
        }
    }
}

impl<T: Default> PerProcess<T> {
    /// This process' value.
    #[inline]
    pub fn get(&self) -> &T {
        if self.owner.is_parent() {
            return self.childs.get_or_init(Box::default).get();
        }
        &self.value
    }

    /// The same, for a thread of this process.
    pub fn share(&self) -> Arc<T> {
        if self.owner.is_parent() {
            return self.childs.get_or_init(Box::default).share();
        }
        Arc::clone(&self.value)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.owner.is_parent() {
            // It is never dropped: that would end what the parent uses.
            std::mem::forget(Arc::clone(&self.value));
        }
    }
}
