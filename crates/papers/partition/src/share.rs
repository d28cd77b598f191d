//! The owner's side of a partition's [`descriptor`](super::descriptor): it locks buckets against readers, and publishes
//! the places of buckets.

use std::sync::Arc;

use super::bucket::Bucket;
use super::descriptor::Descriptor;
use super::table::Partition;
use nuthatch_engine::AuditError;

/// One of many descriptors.
pub(super) struct OwnDescriptor {
    pub descriptors: Arc<[Descriptor]>,
    pub number: usize,
}

impl Partition {
    /// The descriptor through which other threads read it, if there is one.
    pub(super) fn descriptor(&self) -> Option<&Descriptor> {
        let of = self.descriptor.as_ref()?;
        of.descriptors.get(of.number)
    }

    /// Calls `act` while no reader holds the bucket of a hash. `act` locks no other bucket (bucket 3), divides none but
    /// this one, and panics only if an invariant is broken. There must be buckets.
    #[inline(always)]
    pub(super) fn holding<T>(&mut self, hash: u64, act: impl FnOnce(&mut Self) -> T) -> T {
        let held = self.hold(hash);
        let done = act(self);
        self.release(held);
        done
    }

    /// Locks the bucket of a hash against readers, if there are any: the first step of [`Partition::holding`]. The
    /// caller [releases](Partition::release) it.
    #[inline(always)]
    pub(super) fn hold(&self, hash: u64) -> Option<Bucket> {
        let shared = self.index.is_shared();
        let bucket = shared.then(|| self.index.place(self.index.bucket_of(hash)));
        if let Some(bucket) = bucket {
            bucket.lock(self.memory());
        }
        bucket
    }

    /// Releases a bucket for readers.
    #[inline(always)]
    pub(super) fn release(&self, held: Option<Bucket>) {
        if let Some(bucket) = held {
            bucket.unlock(self.memory());
        }
    }

    /// Publishes flushes to readers.
    pub(super) fn tell_flush(&self) {
        if let Some(descriptor) = self.descriptor() {
            descriptor.set_flush(self.flush_before, self.flush_at);
        }
    }

    /// Publishes to readers the block of the next buckets.
    pub(super) fn tell_block(&self, block: u32) {
        if let Some(descriptor) = self.descriptor() {
            descriptor.name_block(self.index.blocks().len(), block);
        }
    }

    /// Publishes to readers the number of buckets.
    pub(super) fn tell_buckets(&self) {
        if let Some(descriptor) = self.descriptor() {
            descriptor.set_buckets(self.index.buckets());
        }
    }

    /// Checks the descriptor against the owner's state.
    pub(super) fn audit_descriptor(&self) -> Result<(), AuditError> {
        let flush = (self.flush_before, self.flush_at);
        let (blocks, buckets) = (self.index.blocks(), self.index.buckets());
        self.descriptor().map_or(Ok(()), |descriptor| {
            descriptor.audit(blocks, buckets, flush)
        })
    }
}
