//! The state of a connection that uses more than single commands.

use std::collections::VecDeque;
use std::sync::Arc;

use super::muted::Unwanted;
use super::transaction::{Transaction, Watched};
use crate::output::Mark;

/// The connection's name, its transaction, and its queued requests.
#[derive(Default)]
pub struct Session {
    /// The same name as in its line of CLIENT LIST.
    pub name: Arc<[u8]>,
    /// The requests since MULTI.
    pub transaction: Option<Transaction>,
    pub watched: Vec<Watched>,
    pub unwanted: Unwanted,
    /// Where the output ends for a client that does not want the answer that is being written.
    pub unheard: Option<Mark>,
    /// Queued requests, which are executed before any input is parsed.
    replay: VecDeque<QueuedRequest>,
}

/// A queued request.
pub struct QueuedRequest {
    bytes: Box<[u8]>,
    /// The bytes of it that are used up.
    used: usize,
}

impl QueuedRequest {
    /// The rest of it.
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

    /// True if input is parsed next, and what it asks is answered.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.has_replay() && self.unwanted.is_nothing()
    }

    #[inline]
    pub fn has_replay(&self) -> bool {
        !self.replay.is_empty()
    }

    /// Appends a request to the queue.
    pub fn keep(&mut self, request: Box<[u8]>) {
        self.replay.push_back(QueuedRequest {
            bytes: request,
            used: 0,
        });
    }

    /// Takes the first request out of the queue. It must not be in the queue while it is executed: it may be an EXEC,
    /// which queues other requests and executes them at once.
    pub fn take_kept(&mut self) -> Option<QueuedRequest> {
        self.replay.pop_front()
    }

    /// Puts the first request back, with this many more bytes used up.
    pub fn put_back(&mut self, mut kept: QueuedRequest, used: usize) {
        kept.used += used;
        self.replay.push_front(kept);
    }
}
