//! A large value that is read in place.

use std::sync::Arc;

use super::LockHash;
use crate::Element;
use nuthatch_engine::Value;

/// A value, with a reference to its element. Its bytes neither move nor change until it is dropped.
pub struct LockHashValue {
    engine: Arc<LockHash>,
    partition: usize,
    element: Element,
    key_len: usize,
    len: usize,
}

impl LockHashValue {
    /// Takes over a reference that the caller took under the partition's lock.
    pub(super) fn new(engine: Arc<LockHash>, partition: usize, element: Element) -> Self {
        let (key_len, len) = {
            let memory = &engine.memory;
            (memory.key_len(element), memory.value_len(element))
        };
        Self {
            engine,
            partition,
            element,
            key_len,
            len,
        }
    }
}

impl Value for LockHashValue {
    fn len(&self) -> usize {
        self.len
    }

    #[cfg(not(loom))]
    fn chunk(&self, offset: usize) -> &[u8] {
        let rest = self.len.saturating_sub(offset);
        let start = self.key_len + offset;
        // SAFETY: self holds a reference to the element, which was found READY (partition 7).
        unsafe { self.engine.memory.stretch(self.element, start, rest) }
    }

    /// Loom's atomics are not the bytes they stand for: a copy, leaked, since a model is short.
    #[cfg(loom)]
    fn chunk(&self, offset: usize) -> &[u8] {
        let rest = self.len.saturating_sub(offset);
        let start = self.key_len + offset;
        Box::leak(
            self.engine
                .memory
                .to_vec(self.element, start, rest)
                .into_boxed_slice(),
        )
    }
}

impl Drop for LockHashValue {
    fn drop(&mut self) {
        let element = self.element;
        self.engine
            .at(self.partition, |locked| locked.decref(element));
    }
}
