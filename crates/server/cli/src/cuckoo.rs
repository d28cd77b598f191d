//! The engine of `nuthatch`: cuckoo over the log.
//!
//! It is the one that docs/engines.md recommends wherever no paper is to be repeated, and it has one eviction: on the
//! traces of docs/hits.md the others, SIEVE in the log and CLOCK in size classes, are better next to nowhere. All are run
//! by `nuthatch-lab serve`.

use std::sync::Arc;

use clap::Args;
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::settings::LOG_MIN;
use nuthatch_engine::{CommonSettings, Engine};
use serde::Serialize;

use crate::engine::{ChosenEngine, EngineFlags};
use crate::file::File;

/// The flags of `nuthatch` for its engine: none. (If a second policy of the log comes to be worth an operator's choice, a
/// flag `eviction` here takes the names of [`POLICIES`](nuthatch_cuckoo::config::POLICIES).)
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
pub struct DefaultEngine {}

/// Flags that `nuthatch` had, and `nuthatch-lab serve` has.
const OF_LAB: [&str; 6] = [
    "engine",
    "eviction",
    "partitions",
    "server-threads",
    "pin",
    "cpserver",
];

/// Where a flag of this long name went, if it is one that `nuthatch` had.
pub fn went_where(name: &str) -> Option<&'static str> {
    OF_LAB.contains(&name).then_some(
        "nuthatch has no such setting; `nuthatch-lab serve` has it, which is the same server on any engine",
    )
}

impl EngineFlags for DefaultEngine {
    fn take_from(file: &mut File) -> Result<Self, String> {
        file.refuse(went_where)?;
        Ok(Self {})
    }

    fn over(self, Self {}: Self) -> Self {
        self
    }

    fn engine(&self, common: CommonSettings) -> Result<ChosenEngine, String> {
        let config = CuckooConfig::from(&common);
        let mut lines = common.lines(usize::MAX, LOG_MIN);
        lines.push(("eviction", config.eviction.name.to_owned()));
        Ok(ChosenEngine {
            memory_limit: common.memory_limit,
            item_size_max: config.item_size_max,
            // Those by which a log counts its items.
            has_size_classes: true,
            gains_by_large_batches: false,
            lines,
            build: Box::new(move || {
                let engine = Cuckoo::<EightWay>::new(config.clone())?;
                Ok(Arc::new(engine).any())
            }),
            flag: |_| None,
        })
    }

    fn cpserver(&self) -> Option<Vec<String>> {
        None
    }
}
