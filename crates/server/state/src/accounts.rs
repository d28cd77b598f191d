//! The accounts of what clients can make grow, each with its bound.

use std::sync::Arc;

use nuthatch_engine::{AnyEngine, Engine};

use crate::buffers::{self, Buffers};
use crate::origins::Origins;
use crate::uploads::{self, Uploads};

/// The accounts of a server, one of each for all workers.
pub struct Accounts {
    /// The memory of connections' buffers.
    pub buffers: Buffers,
    /// The engine's memory for values that have not arrived completely.
    pub uploads: Arc<Uploads>,
    /// How many connections each address has.
    pub origins: Arc<Origins>,
}

impl Accounts {
    /// For this many connections and this engine.
    pub fn new(connections_max: usize, engine: &AnyEngine) -> Self {
        let (buffers, uploads) = bounds(connections_max, engine);
        Self {
            buffers: Buffers::new(buffers),
            uploads: Arc::new(Uploads::new(uploads)),
            origins: Arc::default(),
        }
    }

    /// Sets the bounds that depend on the number of connections and on the engine's memory limit, after a change.
    pub fn set_bounds(&self, connections_max: usize, engine: &AnyEngine) {
        let (buffers, uploads) = bounds(connections_max, engine);
        self.buffers.set_bound(buffers);
        self.uploads.set_bound(uploads);
    }
}

/// The bounds of buffers and of uploads.
fn bounds(connections_max: usize, engine: &AnyEngine) -> (usize, usize) {
    let memory = engine.stats().memory_limit;
    let uploads = uploads::bound(memory, engine.item_size_max());
    (buffers::bound(connections_max, memory), uploads)
}
