//! A large value that a client reads in place, with a reference to its element.

use std::sync::Arc;

use nuthatch_base::sync::ring::RingKind;

use super::shared::Shared;
use nuthatch_engine::Value;
use nuthatch_partition::{Element, ValueInPlace};

/// A value in place. Its bytes neither move nor change until it is dropped.
pub struct CpValue<D: RingKind>(Bytes<D>);

enum Bytes<D: RingKind> {
    Pinned {
        shared: Arc<Shared<D>>,
        partition: usize,
        value: ValueInPlace,
    },
    /// A value that was copied to make room.
    Copied(Vec<u8>),
}

impl<D: RingKind> CpValue<D> {
    /// Takes over a reference that the caller has.
    pub(super) fn pinned(shared: &Arc<Shared<D>>, partition: usize, element: Element) -> Self {
        Self(Bytes::Pinned {
            shared: Arc::clone(shared),
            partition,
            value: ValueInPlace::new(&shared.memory, element),
        })
    }

    pub(super) fn copied(value: Vec<u8>) -> Self {
        Self(Bytes::Copied(value))
    }
}

impl<D: RingKind> Value for CpValue<D> {
    fn len(&self) -> usize {
        match &self.0 {
            Bytes::Pinned { value, .. } => value.value_len(),
            Bytes::Copied(value) => value.len(),
        }
    }

    fn chunk(&self, offset: usize) -> &[u8] {
        match &self.0 {
            Bytes::Pinned { shared, value, .. } => {
                // SAFETY: self has a reference to the element, which is READY: neither its bytes
                // nor its lines change before the reference is given back, when self is dropped.
                unsafe { value.stretch(&shared.memory, offset) }
            }
            Bytes::Copied(value) => value.get(offset..).unwrap_or_default(),
        }
    }
}

impl<D: RingKind> Drop for CpValue<D> {
    fn drop(&mut self) {
        // A value may be dropped on any thread, at any time: there may be no ring for a release.
        if let Bytes::Pinned {
            shared,
            partition,
            value,
        } = &self.0
        {
            shared.partitions[*partition].give_back(value.element());
        }
    }
}
