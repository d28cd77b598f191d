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
    replay: VecDeque<Box<[u8]>>,
    /// Bytes of the first that are used up.
    replayed: usize,
}

impl Session {
    pub fn memory(&self) -> usize {
        let transaction = self.transaction.as_ref().map_or(0, Transaction::memory);
        let replay: usize = self.replay.iter().map(|kept| kept.len()).sum();
        let watched: usize = self.watched.iter().map(Watched::memory).sum();
        self.name.len() + transaction + replay + watched
    }

    #[inline]
    pub fn has_replay(&self) -> bool {
        !self.replay.is_empty()
    }

    /// Keeps a request, to be carried out behind those that are kept.
    pub fn keep(&mut self, request: Box<[u8]>) {
        self.replay.push_back(request);
    }

    /// What is left of the first.
    pub fn replayed(&self) -> Option<&[u8]> {
        self.replay.front().map(|kept| &kept[self.replayed..])
    }

    /// Notes that so much more of the first is used up, or that it is over.
    pub fn has_replayed(&mut self, used: usize, over: bool) {
        self.replayed += used;
        if over {
            self.replay.pop_front();
            self.replayed = 0;
        }
    }
}
