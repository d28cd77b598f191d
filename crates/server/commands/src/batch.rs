//! The requests of one engine batch, and how each is to be answered.
//!
//! Requests borrow keys and values from the inputs of the iteration's turns. Their buffers outlive one batch, and so
//! does their capacity: see [`BatchBuffers`].

use nuthatch_engine::{Key, Op, Request};

use crate::answers::ReplyFormat;
use crate::answers::meta::MetaFormat;

/// How one request is answered.
#[derive(Clone, Copy, Debug)]
pub struct PendingReply {
    /// The turn whose output gets the answer: an index into the turns of the iteration.
    pub turn: u32,
    /// The protocol of the answer, and what the answer depends on.
    pub format: ReplyFormat,
}

/// A batch under construction.
pub struct Batch<'a> {
    /// The requests to the engine.
    pub requests: Vec<Request<'a>>,
    /// How each is answered.
    pub pending: Vec<PendingReply>,
    /// The parts of memcached's meta commands that their answers repeat.
    pub(crate) metas: Vec<MetaFormat<'a>>,
    /// The most requests that it holds.
    max: usize,
}

/// A place in a batch. Requests of turns join it one turn after the other, so what is behind the place of a turn's
/// begin is that turn's.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    requests: usize,
    metas: usize,
}

impl<'a> Batch<'a> {
    /// True if no other request has room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.max
    }

    /// True if there is no request.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds a request.
    #[inline]
    pub fn push(&mut self, key: Key<'a>, op: Op<'a>, pending: PendingReply) {
        self.requests.push(Request { key, op });
        self.pending.push(pending);
    }

    /// Where the next request will be.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            requests: self.requests.len(),
            metas: self.metas.len(),
        }
    }

    /// Removes the requests that were added since.
    pub fn cut(&mut self, since: Mark) {
        self.requests.truncate(since.requests);
        self.pending.truncate(since.requests);
        self.metas.truncate(since.metas);
    }

    /// Removes all requests.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.pending.clear();
        self.metas.clear();
    }
}

/// A batch's memory between two iterations, when it borrows nothing.
#[derive(Default)]
pub struct BatchBuffers {
    requests: Vec<Request<'static>>,
    pending: Vec<PendingReply>,
    metas: Vec<MetaFormat<'static>>,
}

impl BatchBuffers {
    /// An empty batch for up to `max` requests, which may borrow for the lifetime of the batch.
    pub fn take<'a>(&mut self, max: usize) -> Batch<'a> {
        Batch {
            // A vector with lifetime `'static` is also a vector with a shorter lifetime.
            requests: std::mem::take(&mut self.requests),
            pending: std::mem::take(&mut self.pending),
            metas: std::mem::take(&mut self.metas),
            max,
        }
    }

    /// The number of requests that fit without another allocation, and the bytes of that memory.
    pub fn room(&self) -> (usize, usize) {
        let (requests, pending) = (self.requests.capacity(), self.pending.capacity());
        let bytes = requests * size_of::<Request<'_>>() + pending * size_of::<PendingReply>();
        (pending, bytes)
    }

    /// Keeps the memory of a finished batch.
    pub fn give(&mut self, batch: Batch<'_>) {
        self.requests = recycle(batch.requests);
        self.pending = batch.pending;
        self.pending.clear();
        self.metas = recycle(batch.metas);
    }
}

/// Empties a vector and reuses its memory for another type, here the same type with another lifetime. No element
/// exists, so none is converted. The standard library collects in place when sizes agree. If it ever stops doing so,
/// this costs one allocation per iteration and nothing else.
fn recycle<A, B>(mut vec: Vec<A>) -> Vec<B> {
    vec.clear();
    vec.into_iter()
        .map(|_| unreachable!("the vector was just emptied"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_engine::KeyHasher;
    use nuthatch_protocol::cpserver::Dialect;

    use crate::answers::cpserver;

    #[test]
    fn buffers_keep_their_memory_from_round_to_round() {
        let hasher = KeyHasher::seeded(1);
        let mut buffers = BatchBuffers::default();
        let mut addresses = Vec::new();
        for _ in 0..3 {
            let name = String::from("a key of this iteration only");
            let mut batch = buffers.take(1);
            let pending = PendingReply {
                turn: 0,
                format: ReplyFormat::CpServer(cpserver::Format::Lookup(Dialect::Paper)),
            };
            batch.push(Key::new(name.as_bytes(), &hasher), Op::Get, pending);
            assert!(batch.is_full());
            addresses.push(batch.requests.as_ptr() as usize);
            buffers.give(batch);
        }
        assert_eq!(addresses[1], addresses[0]);
        assert_eq!(addresses[2], addresses[0]);
    }
}
