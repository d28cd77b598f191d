//! What a connection keeps that uses more than single commands.

use std::collections::VecDeque;
use std::sync::Arc;

use super::transaction::{Transaction, Watched};

/// The connection's name, its transaction, and requests that it kept.
#[derive(Default)]
pub struct Session {
    /// As its line in CLIENT LIST has it too.
    pub name: Arc<[u8]>,
    /// The requests since MULTI.
    pub transaction: Option<Transaction>,
    pub watched: Vec<Watched>,
    /// Requests that are carried out before any input is looked at.
    replay: VecDeque<QueuedRequest>,
}

/// A request that is kept.
pub struct QueuedRequest {
    bytes: Box<[u8]>,
    /// So many are used up.
    used: usize,
}

impl QueuedRequest {
    /// What is left of it.
    pub fn left(&self) -> &[u8] {
        &self.bytes[self.used..]
    }
}

impl Session {
    pub fn memory(&self) -> usize {
        let transaction = self.transaction.as_ref().map_or(0, Transaction::memory);
        let replay: usize = self.replay.iter().map(|kept| kept.bytes.len()).sum();
        let watched: usize = self.watched.iter().map(Watched::memory).sum();
        self.name.len() + transaction + replay + watched
    }

    #[inline]
    pub fn has_replay(&self) -> bool {
        !self.replay.is_empty()
    }

    /// Keeps a request, to be carried out behind those that are kept.
    pub fn keep(&mut self, request: Box<[u8]>) {
        self.replay.push_back(QueuedRequest {
            bytes: request,
            used: 0,
        });
    }

    /// Takes the first out: while it is carried out it is none of those that are kept, as it may be an EXEC, which keeps
    /// others and carries them out at once.
    pub fn take_kept(&mut self) -> Option<QueuedRequest> {
        self.replay.pop_front()
    }

    /// Puts back the first, of which so many more bytes are used up.
    pub fn put_back(&mut self, mut kept: QueuedRequest, used: usize) {
        kept.used += used;
        self.replay.push_front(kept);
    }
}
