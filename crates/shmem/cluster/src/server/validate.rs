//! What a server checks of a message before it carries it out.
//!
//! Sessions send only valid messages. But any PE of the job can write over symmetric memory by mistake. A server that
//! acted on such words would put a pair where no lookup finds it, or would end, and the job with it.

use std::sync::atomic::Ordering;

use nuthatch_engine::{Key, Request};
use nuthatch_fabric::{Fabric, Word};

use super::shard::Shard;
use crate::block::{self, KEY};
use crate::bucket::Pointer;
use crate::message::ServerRequest;

impl<F: Fabric> Shard<F> {
    /// True if the key comes with its own hash, and a block that is to come into the table is held by the session and
    /// contains the pair.
    pub fn is_valid(&self, request: &ServerRequest<'_>, session: usize) -> bool {
        match request {
            ServerRequest::Op(Request { key, .. })
            | ServerRequest::Copy(key, _)
            | ServerRequest::Reserve(key, _) => self.is_hashed(key),
            ServerRequest::Commit(key, _, value_len, pointer) => {
                self.is_hashed(key)
                    && self.reserved(*pointer, session).is_some()
                    && self.is_laid(key, *value_len, *pointer)
            }
            _ => true,
        }
    }

    fn is_hashed(&self, key: &Key<'_>) -> bool {
        self.hasher.hash(key.bytes()) == key.hash()
    }

    /// True if a block has room for a pair, and its key lies there.
    fn is_laid(&self, key: &Key<'_>, value_len: usize, pointer: Pointer) -> bool {
        let block = self.words(pointer);
        // Acquire: the words were put before the message that announces them.
        let is_there = |(word, there): (&u64, &Word)| there.load(Ordering::Acquire) == *word;
        block::pair_words(key.bytes().len(), value_len) <= block.len()
            && Self::key_words(key).iter().zip(&block[KEY..]).all(is_there)
    }
}
