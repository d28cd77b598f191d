//! The server with the oracle engine, which is simple enough to be right: a test that fails here is the server's fault.

mod engine {
    use std::sync::Arc;

    use nuthatch_check::naive::{Naive, Options};

    use crate::wire::fixture::Wants;

    pub type TestEngine = Naive;

    pub fn engine(wants: Wants) -> Arc<TestEngine> {
        Naive::new(Options {
            memory_limit: wants.memory,
            item_size_max: wants.item_size_max,
            evicts: wants.evicts,
            ..Options::default()
        })
    }
}

mod wire;
