//! Tests that the fabric of threads passes the conformance checks, and that its operations can be timed.

use std::sync::Arc;
use std::thread;

use nuthatch_cluster::Operations;
use nuthatch_cluster_lab::fabric::conformance::{self, Sizes};
use nuthatch_cluster_lab::fabric::{latency, store};
use nuthatch_fabric::threads::{Network, ThreadsFabric};

/// Runs `work` on each PE of a network.
fn run<T: Send>(network: &Arc<Network>, work: impl Fn(&Arc<ThreadsFabric>) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let handles: Vec<_> = network
            .ends()
            .into_iter()
            .map(|end| scope.spawn(move || work(&end)))
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.map(|found| found.expect("no PE panics")).collect()
    })
}

fn conforms(network: &Arc<Network>, seeded: bool, sizes: Sizes) {
    let reports = run(network, |end| {
        let _entered = seeded.then(|| end.enter(nuthatch_fabric::Fabric::pe(&**end)));
        conformance::check(&**end, sizes).expect("memory")
    });
    for report in reports {
        assert_eq!(report.failures, Vec::<String>::new());
        assert!(report.checks > 1000);
    }
}

#[test]
fn a_free_network_conforms() {
    for pes in [1, 2, 3, 5] {
        let sizes = Sizes {
            rounds: 30,
            threads: 3,
            longest: 10_000,
        };
        for network in [Network::free, Network::lazy] {
            conforms(&network(pes, sizes.words(pes) + 2000), false, sizes);
        }
    }
}

#[test]
fn a_seeded_network_conforms() {
    for seed in 0..100 {
        // Its threads are counted.
        let sizes = Sizes {
            rounds: 5,
            threads: 1,
            longest: 200,
        };
        let pes = 1 + seed as usize % 3;
        conforms(
            &Network::seeded(pes, sizes.words(pes) + 2000, pes, seed),
            true,
            sizes,
        );
    }
}

#[test]
fn operations_are_timed() {
    let found = run(&Network::free(2, latency::WORDS), |end| {
        latency::measure(&**end, 50).expect("memory, and all PEs")
    });
    assert!(found[1].is_empty());
    assert!(found[0].len() > 4 * latency::BYTES.len());
    for latency in &found[0] {
        assert!(latency.p50_ns <= latency.p99_ns && latency.mean_ns > 0.0);
    }
}

#[test]
fn of_several_clients_each_tells_what_all_do() {
    let found = run(&Network::free(4, store::THROUGHPUT_WORDS), |end| {
        store::throughput(end, 95, 8, 1 << 10, 100, Operations::Chosen)
            .expect("memory, and all PEs")
    });
    let [None, Some(one), Some(other), Some(last)] = &found[..] else {
        panic!("the first PE serves");
    };
    let all = [one, other, last];
    let sum: f64 = all.iter().map(|found| found.per_second).sum();
    for found in all {
        assert_eq!(found.clients, 3);
        assert!((found.of_all_per_second - sum).abs() < 4.0, "{all:?}");
    }
}
