//! Tests that the fabric of threads passes the conformance checks, and that its operations can be timed.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use nuthatch_cluster::Operations;
use nuthatch_cluster_lab::fabric::conformance::{self, Sizes};
use nuthatch_cluster_lab::fabric::latency;
use nuthatch_cluster_lab::fabric::throughput::{self, Load};
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

const LOAD: Load = Load {
    keys: 1000,
    value: 32,
    gets: 95,
    batch: 8,
    directory: 1 << 10,
};

#[test]
fn of_several_clients_each_tells_what_all_do() {
    let words = LOAD.words(4).unwrap() + 1000;
    let found = run(&Network::free(4, words), |end| {
        throughput::of_store(end, LOAD, 100, Operations::Chosen).expect("memory, and all PEs")
    });
    let [None, Some(one), Some(other), Some(last)] = &found[..] else {
        panic!("the first PE serves");
    };
    let all = [one, other, last];
    let sum: f64 = all.iter().map(|found| found.per_second).sum();
    for found in all {
        assert_eq!((found.clients, found.answered), (3, 1.0));
        assert!((found.of_all_per_second - sum).abs() < 4.0, "{all:?}");
    }
}

/// Answers as a memcached that has every key.
fn answer(stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 0 {
        let answer = match line.starts_with("set ") {
            true => {
                line.clear();
                reader.read_line(&mut line).unwrap();
                "STORED\r\n".to_owned()
            }
            false => format!("VALUE a 0 32\r\n{}\r\nEND\r\n", "v".repeat(32)),
        };
        stream.write_all(answer.as_bytes()).unwrap();
        line.clear();
    }
}

#[test]
fn each_client_has_a_connection_to_the_memcached_beside_the_store() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let found = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || answer(stream));
            }
        });
        run(&Network::free(3, 4096), |end| {
            throughput::of_memcached(&**end, &address, LOAD, 20).expect("it answers")
        })
    });
    let [None, Some(one), Some(other)] = &found[..] else {
        panic!("the first PE only waits");
    };
    assert_eq!((one.clients, one.answered, other.answered), (2, 1.0, 1.0));
    let sum = one.per_second + other.per_second;
    for found in [one, other] {
        assert!(
            (found.of_all_per_second - sum).abs() < 1e-6 * sum,
            "{found:?}"
        );
    }
}

#[test]
fn a_memcached_that_is_not_there_is_an_error_of_every_client() {
    let found = run(&Network::free(3, 4096), |end| {
        // A port that no program listens at, since it is no listener's.
        throughput::of_memcached(&**end, "127.0.0.1:1", LOAD, 20).is_err()
    });
    assert_eq!(found, [false, true, true]);
}
