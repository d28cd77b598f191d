//! What a server checks of a message before it carries it out.
//!
//! Sessions make no other messages. But any PE of the job can write over symmetric memory by mistake, and a server that acted on
//! what lies there then would put a pair where nobody finds it, or end, and with it the job.

use std::sync::atomic::Ordering;

use nuthatch_engine::{Key, Request};
use nuthatch_fabric::Fabric;

use super::shard::Shard;
use crate::block::{self, KEY};
use crate::bucket::Pointer;
use crate::message::Ask;

impl<F: Fabric> Shard<F> {
    /// True if what is asked is about a key by its own hash, and a block that is to come into the table is the session's and
    /// holds the pair.
    pub fn is_valid(&self, ask: &Ask<'_>, session: usize) -> bool {
        match ask {
            Ask::Op(Request { key, .. }) | Ask::Copy(key, _) | Ask::Reserve(key, _) => {
                self.is_hashed(key)
            }
            Ask::Commit(key, _, value_len, pointer) => {
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
        // Acquire: what was put lies before the message that tells of it.
        let is_there = |(word, there): (&u64, &std::sync::atomic::AtomicU64)| {
            there.load(Ordering::Acquire) == *word
        };
        block::pair_words(key.bytes().len(), value_len) <= block.len()
            && Self::key_words(key).iter().zip(&block[KEY..]).all(is_there)
    }
}
