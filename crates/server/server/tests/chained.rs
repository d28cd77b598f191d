//! The server with classic memcached's table.

mod engine {
    use std::sync::Arc;

    use nuthatch_chained::{Chained, ChainedConfig};

    use crate::wire::fixture::Wants;

    pub type TestEngine = Chained;

    pub fn engine(wants: Wants) -> Arc<TestEngine> {
        let config = ChainedConfig {
            memory_limit: wants.memory,
            memory_limit_max: 2 * wants.memory,
            item_size_max: wants.item_size_max,
            evicts: wants.evicts,
            ..ChainedConfig::default()
        };
        Arc::new(Chained::new(config).unwrap())
    }
}

#[path = "wire/core.rs"]
mod wire;
