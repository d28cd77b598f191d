//! Reads under their bucket's lock, where partitions have descriptors: with random eviction.
//!
//! A batch is carried out in order here too: a get or read under its bucket's lock, everything else under its
//! partition's. The look ahead takes no lock.

use std::sync::Arc;

use nuthatch_base::sync::clock::Time;

use super::handle::{COPY_MAX, LockHashHandle, STAGE};
use super::{Lock, LockHash, LockHashValue};
use crate::descriptor::LockedElement;
use crate::memory::BlockMemory;
use crate::{Descriptor, Partition};
use nuthatch_engine::reply::{Item, Replies, Reply};
use nuthatch_engine::request::{Key, Op, Read, Request};
use nuthatch_engine::semantics::wants_value;

/// Starts loading what an operation on a hash will need.
type Load = fn(&Descriptor, &BlockMemory, u64);

/// The loads ahead of a request, each with its number of stages.
const LOADS: [(usize, Load); 2] = [
    (3, Descriptor::prefetch_bucket),
    (2, Descriptor::prefetch_header),
];

impl<L: Lock<Partition>> LockHash<L> {
    /// Starts loading a request's descriptor, and its partition as well if the request is not a read.
    #[inline]
    fn prefetch_descriptor(&self, Request { key, op }: &Request<'_>) {
        nuthatch_store::prefetch::soon(self.descriptor_of(key.hash()));
        if !matches!(op, Op::Get | Op::Read(_)) {
            self.prefetch(key);
        }
    }

    #[inline(always)]
    fn descriptor_of(&self, hash: u64) -> &Descriptor {
        &self.descriptors[self.partition_of(hash)]
    }
}

impl<L: Lock<Partition>> LockHashHandle<L> {
    /// A batch, where partitions have descriptors.
    #[inline]
    pub(super) fn execute_by_descriptors(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut impl Replies<LockHashValue<L>>,
    ) {
        for request in batch.iter().take(4 * STAGE) {
            self.engine.prefetch_descriptor(request);
        }
        for (index, request) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(index + 4 * STAGE) {
                self.engine.prefetch_descriptor(ahead);
            }
            for (stages, load) in LOADS {
                if let Some(Request { key, .. }) = batch.get(index + stages * STAGE) {
                    load(
                        self.engine.descriptor_of(key.hash()),
                        &self.engine.memory,
                        key.hash(),
                    );
                }
            }
            let read = match &request.op {
                Op::Get => self.read(now, index, &request.key, None, replies),
                Op::Read(read) => self.read(now, index, &request.key, Some(read), replies),
                _ => false,
            };
            if !read {
                self.run(now, index, request, replies);
            }
        }
        self.searches.hand_in(&self.counters);
    }

    /// A get, or a read with options, under its bucket's lock alone. False if the partition's owner has to do it: a
    /// flush is due, or an item is to be made.
    #[inline]
    fn read(
        &mut self,
        now: Time,
        index: usize,
        key: &Key<'_>,
        read: Option<&Read>,
        replies: &mut impl Replies<LockHashValue<L>>,
    ) -> bool {
        let engine = &*self.engine;
        let descriptor = engine.descriptor_of(key.hash());
        let Some(sight) = descriptor.seek(&engine.memory, now, key) else {
            return false;
        };
        if sight.live.is_none() && read.is_some_and(|read| read.vivify.is_some()) {
            return false;
        }
        self.searches.count(sight.found, sight.searched);
        let Some(held) = sight.live else {
            replies.done(index, Reply::Miss);
            return true;
        };
        let item = match read {
            None => held.get(now),
            Some(read) => match held.read(now, read) {
                Ok(item) => item,
                Err(refusal) => {
                    drop(held);
                    replies.done(index, refusal);
                    return true;
                }
            },
        };
        if read.is_none_or(|read| wants_value(read, &item)) {
            self.hand_out_held(held, key, item, index, replies);
        } else {
            drop(held);
            replies.done(index, Reply::Found(item));
        }
        true
    }

    /// Answers with the value of an element, and unlocks its bucket.
    #[inline]
    fn hand_out_held(
        &self,
        held: LockedElement<'_>,
        key: &Key<'_>,
        item: Item,
        index: usize,
        replies: &mut impl Replies<LockHashValue<L>>,
    ) {
        if item.value_len <= COPY_MAX {
            held.copy_value(replies.begin(index, &item));
            drop(held);
            replies.commit(index);
        } else if let Some(element) = held.pin() {
            drop(held);
            let partition = self.engine.partition_of(key.hash());
            let value = LockHashValue::new(Arc::clone(&self.engine), partition, element);
            replies.large(index, &item, value);
        } else {
            // There are sixteen million readers of one value already.
            drop(held);
            replies.done(index, Reply::OutOfMemory);
        }
    }
}
