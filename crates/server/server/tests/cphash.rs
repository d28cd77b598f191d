//! The server with the engine whose partitions belong to server threads: with CPServer's protocol it is the paper's
//! CPServer.

mod engine {
    use std::sync::Arc;

    use nuthatch_cphash::CpHash;
    use nuthatch_cphash::config::CpHashConfig;

    use crate::wire::fixture::Wants;

    pub type TestEngine = CpHash;

    pub fn engine(wants: Wants) -> Arc<TestEngine> {
        let config = CpHashConfig {
            memory_limit: wants.memory,
            memory_limit_max: 2 * wants.memory,
            item_size_max: wants.item_size_max,
            evicts: wants.evicts,
            ..CpHashConfig::default()
        };
        Arc::new(CpHash::new(config).unwrap())
    }
}

#[path = "wire/core.rs"]
mod wire;
