//! A large value that is read in place.

use std::mem::MaybeUninit;
use std::sync::Arc;

use nuthatch_base::sync::spinlock::SpinLock;

use super::{Lock, LockHash};
use crate::{Element, Partition, ValueInPlace};
use nuthatch_engine::Value;

/// A value, with a reference to its element. Its bytes neither move nor change until it is dropped.
pub struct LockHashValue<L: Lock<Partition> = SpinLock<Partition>> {
    engine: Arc<LockHash<L>>,
    partition: usize,
    value: ValueInPlace,
}

impl<L: Lock<Partition>> LockHashValue<L> {
    /// Takes over a reference that the caller took under the partition's lock.
    pub(super) fn new(engine: Arc<LockHash<L>>, partition: usize, element: Element) -> Self {
        Self {
            value: ValueInPlace::new(&engine.memory, element),
            engine,
            partition,
        }
    }

    /// Reads the whole value.
    pub(super) fn read(&self, into: &mut [MaybeUninit<u8>]) {
        self.value.read(&self.engine.memory, into);
    }
}

impl<L: Lock<Partition>> Value for LockHashValue<L> {
    fn len(&self) -> usize {
        self.value.value_len()
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        // SAFETY: self holds a reference to the element, which was found READY (partition 7).
        unsafe { self.value.stretch(&self.engine.memory, offset) }
    }
}

impl<L: Lock<Partition>> Drop for LockHashValue<L> {
    fn drop(&mut self) {
        let element = self.value.element();
        self.engine
            .at(self.partition, |locked| locked.decref(element));
    }
}
