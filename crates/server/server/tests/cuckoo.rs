//! The server with the cuckoo engine, for which it is made.

mod engine {
    use std::sync::Arc;

    use nuthatch_cuckoo::{Cuckoo, CuckooConfig};

    use crate::wire::fixture::Wants;

    pub type TestEngine = Cuckoo;

    pub fn engine(wants: Wants) -> Arc<TestEngine> {
        let config = CuckooConfig {
            memory_limit: wants.memory,
            memory_limit_max: 2 * wants.memory,
            item_size_max: wants.item_size_max,
            evicts: wants.evicts,
            ..CuckooConfig::default()
        };
        Arc::new(Cuckoo::new(config).unwrap())
    }
}

mod wire;
