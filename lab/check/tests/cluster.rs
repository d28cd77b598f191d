//! The distributed store under every check: several PEs, which are threads here.

use std::sync::Arc;

use nuthatch_check::conformance::Setup;
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;
use nuthatch_cluster::{Cluster, Config, Operations, in_process, on_network};
use nuthatch_fabric::threads::{Network, ThreadsFabric};

type Engine = Arc<Cluster<ThreadsFabric>>;

fn config(setup: Setup, servers: usize) -> Config {
    Config {
        servers,
        memory: setup.memory_limit / servers,
        memory_max: setup.memory_limit / servers,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        // Few, so that buckets overflow under every check.
        buckets: Some(1 << 12),
        ..Config::default()
    }
}

fn start(config: Config) -> Engine {
    in_process(&config, 4).expect("there are memory and threads")
}

/// One server, and for each operation whatever is cheaper.
fn one(setup: Setup) -> Engine {
    start(config(setup, 1))
}

/// Two servers, and clients that go to blocks wherever they can.
fn direct(setup: Setup) -> Engine {
    start(Config {
        operations: Operations::Direct,
        ..config(setup, 2)
    })
}

/// The same where non-blocking Gets land at `quiet` only.
fn lazy(setup: Setup) -> Engine {
    let config = Config {
        operations: Operations::Direct,
        ..config(setup, 2)
    };
    let pes = config.servers + 4;
    let words = config.symmetric_words(pes).expect("valid settings");
    on_network(&config, Network::lazy(pes, words)).expect("there are memory and threads")
}

/// Messages only.
fn active(setup: Setup) -> Engine {
    start(Config {
        operations: Operations::Active,
        ..config(setup, 1)
    })
}

/// Without the cases that fill the memory again and again with values of all sizes: every answer waits for another
/// thread, and a server has few pages of the largest size here.
const CASES: &[&str] = &[
    "read",
    "store",
    "remove",
    "delta",
    "expiry",
    "flush",
    "size_",
    "batch",
    "reserve",
    "visit",
    "stats",
    "memory_full",
    "memory_limit",
    "memory_recent_hits",
    "engine",
];

const ONE: Extent = Extent {
    cases: CASES,
    sequences: 50,
    sequences_full: 15,
    sequences_of_bytes: 15,
    batches: 300,
    batches_of_churn: 200,
    batches_of_increments: 100,
    histories: 500,
    ..Extent::SMOKE
};

const DIRECT: Extent = ONE.part(2);

/// The checks that concern messages.
const ACTIVE: Extent = Extent {
    cases: &["read", "store", "remove", "delta", "batch", "reserve"],
    ..ONE.part(4)
};

/// The checks in which pages move and pairs are flushed.
const LAZY: Extent = Extent {
    cases: &["flush", "memory_full", "memory_limit", "reserve", "batch"],
    ..ONE.part(4)
};

suite!(one, one, ONE);
suite!(direct, direct, DIRECT);
suite!(lazy, lazy, LAZY);
suite!(active, active, ACTIVE);
