//! A session's steps, as models drive them one by one.

use nuthatch_engine::{Key, Reply, Store, Time};
use nuthatch_fabric::Fabric;

use super::Client;
use super::directory::Hint;
use crate::bars::Bars;
use crate::block;
use crate::message::BlockState;

impl<F: Fabric> Client<F> {
    /// Direct operations on a page that the session knows: `inside` runs unless a notice says that the page has changed.
    pub fn visit_page(&mut self, page: usize, inside: impl FnOnce()) {
        self.enter();
        if self.page_changes(0, page) == 0 {
            inside();
        }
        self.exit();
    }

    /// The session knows a pair's block.
    pub fn learn_pair(&mut self, key: &Key<'_>, known: BlockState) {
        let hint = Hint {
            pointer: known.pointer,
            generation: known.generation,
            tail: known.tail,
        };
        self.directory.learn(key.hash(), hint, 0, Bars::NONE, true);
    }

    /// Sets a pair directly. False if the server is to do it.
    pub fn set_pair(&mut self, key: &Key<'_>, value: &[u8]) -> bool {
        let Some((at, hint)) = self.directory.find(key.hash()) else {
            return false;
        };
        let set = self.direct_set(0, key, &Store::set(value), at, hint);
        matches!(set, Ok(Some(Reply::Stored(_))))
    }

    /// The value of a pair that is read directly, and its version.
    pub fn get_pair(&mut self, key: &Key<'_>) -> Option<(u64, Vec<u8>)> {
        let control = self.control(0);
        let (_, header, len) = self.read_known(Time(1000), 0, &control, key)?;
        let words = &self.block[..len];
        Some((
            words[block::HEAD],
            block::value_bytes(words, &header).to_vec(),
        ))
    }
}
