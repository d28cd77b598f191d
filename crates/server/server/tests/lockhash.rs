//! The server with the engine whose partitions are behind locks: with CPServer's protocol it is the paper's LockServer.

mod engine {
    use std::sync::Arc;

    use nuthatch_partition::{LockHash, LockHashConfig};

    use crate::wire::fixture::Wants;

    pub type TestEngine = LockHash;

    pub fn engine(wants: Wants) -> Arc<TestEngine> {
        let config = LockHashConfig {
            memory_limit: wants.memory,
            memory_limit_max: 2 * wants.memory,
            item_size_max: wants.item_size_max,
            evicts: wants.evicts,
            ..LockHashConfig::default()
        };
        Arc::new(LockHash::new(config).unwrap())
    }
}

#[path = "wire/core.rs"]
mod wire;
