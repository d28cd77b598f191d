//! A script in Lua that is to run: it waits for the next step of its connection, as an EXEC does.

use std::sync::Arc;

use nuthatch_lua::Source;

/// A call of a script.
pub struct LuaCall {
    pub source: Arc<Source>,
    /// Its keys, and its arguments behind them.
    pub words: Vec<Vec<u8>>,
    /// The number of its keys.
    pub keys: usize,
    /// It may only read.
    pub read_only: bool,
}

impl LuaCall {
    pub fn memory(&self) -> usize {
        let words: usize = self.words.iter().map(Vec::capacity).sum();
        size_of::<Self>() + words + self.words.capacity() * size_of::<Vec<u8>>()
    }
}
