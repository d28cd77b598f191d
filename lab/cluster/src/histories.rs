//! Histories of several PEs that use one store at once, judged for linearizability.
//!
//! The first PEs serve. Each of the others records its requests and replies, by a clock that is a word of the first PE.
//! Then all send their records to the last one, which judges.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuthatch_check::history::{self, Plan, Recorded, Seen};
use nuthatch_check::sequence::Misses;
use nuthatch_cluster::{Config, ConfigError, Member, Operations};
use nuthatch_engine::AnyEngine;
use nuthatch_fabric::Fabric;
use nuthatch_workload::Seed;

/// Words of the fabric beside the stores': a line for the clock and one for the end, of each store.
const OWN: usize = 64;

/// The extent of the histories.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Rounds of each client.
    pub rounds: usize,
    /// PEs that serve.
    pub servers: usize,
    /// Which way sessions choose for operations.
    pub operations: Operations,
    /// The seed of the random requests.
    pub seed: u64,
}

/// The stores, and the plans of their requests: with ample memory nothing may be missed, with tight memory items are
/// evicted.
fn cells(extent: Extent) -> [(Config, Plan); 2] {
    let config = |memory| Config {
        servers: extent.servers,
        memory,
        memory_max: memory,
        item_size_max: 64 << 10,
        // Few, so that buckets overflow and pointers are forgotten.
        buckets: Some(64),
        directory: 256,
        operations: extent.operations,
        seed: RandomState::new().hash_one(memory),
        ..Config::default()
    };
    let ample = Plan {
        rounds: extent.rounds,
        flushes: 40,
        seed: Seed(extent.seed),
        ..Plan::GROWTH
    };
    let tight = Plan {
        generations: 4,
        ballast_len: 0..30_000,
        misses: Misses::Lawful,
        counts_in_tick: 16,
        ..ample.clone()
    };
    [(config(64 << 20), ample), (config(512 << 10), tight)]
}

/// Words of the fabric that it takes on each of `pes` PEs.
pub fn words(extent: Extent, pes: usize) -> Result<usize, ConfigError> {
    let words = cells(extent).map(|(config, _)| config.symmetric_words(pes));
    let words: Vec<_> = words.into_iter().collect::<Result<_, _>>()?;
    Ok(words.into_iter().sum::<usize>() + OWN)
}

/// Records and judges. Collective; the last PE has the result of each cell.
pub fn run<F: Fabric>(fabric: &Arc<F>, extent: Extent) -> Result<Vec<Seen>, String> {
    let mut all = Vec::new();
    for (config, plan) in cells(extent) {
        let recorded = record(fabric, &config, &plan).map_err(|error| error.to_string())?;
        let recorded = gather(&**fabric, extent.servers, &recorded);
        if fabric.pe() + 1 == fabric.pes() {
            all.push(history::judge_parts(recorded, plan.misses)?);
        }
    }
    Ok(all)
}

fn record<F: Fabric>(
    fabric: &Arc<F>,
    config: &Config,
    plan: &Plan,
) -> Result<Vec<Recorded>, ConfigError> {
    let (clock, ended) = (fabric.allocate(8)?, fabric.allocate(8)?);
    let member = Member::open(Arc::clone(fabric), config)?;
    let clients = (fabric.pes() - config.servers) as u64;
    let mut recorded = Vec::new();
    if member.is_server() {
        // Acquire: the clients' requests lie before.
        let done = || fabric.local(ended, 1)[0].load(Ordering::Acquire) == clients;
        member.server().run_until(done);
    } else {
        let engine = AnyEngine::new(member.engine());
        let tick = || match fabric.fetch_add(0, clock, 1) {
            Ok(count) => count as usize,
            Err(gone) => panic!("{gone}"),
        };
        let thread = fabric.pe() - config.servers;
        recorded = history::part(&engine, plan, &tick, thread);
        for server in 0..config.servers {
            let counted = fabric.fetch_add(server, ended, 1);
            counted.unwrap_or_else(|gone| panic!("{gone}"));
        }
    }
    fabric.barrier();
    Ok(recorded)
}

/// The records of each client. Collective.
fn gather<F: Fabric>(fabric: &F, servers: usize, own: &[Recorded]) -> Vec<Recorded> {
    let own = history::to_words(own);
    let mut all = Vec::new();
    for client in servers..fabric.pes() {
        let mut len = [own.len() as u64];
        fabric.broadcast(client, &mut len);
        let mut words = vec![0; len[0] as usize];
        if fabric.pe() == client {
            words.copy_from_slice(&own);
        }
        fabric.broadcast(client, &mut words);
        all.extend(history::from_words(&words));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_fabric::threads::Network;

    #[test]
    fn what_two_clients_see_is_judged_together() {
        let extent = Extent {
            rounds: 10,
            servers: 2,
            operations: Operations::Direct,
            seed: 3,
        };
        let words = words(extent, 4).unwrap();
        std::thread::scope(|scope| {
            for end in Network::free(4, words).ends() {
                scope.spawn(move || {
                    let seen = run(&end, extent).unwrap();
                    assert_eq!(seen.len(), if end.pe() == 3 { 2 } else { 0 });
                    assert!(seen.iter().all(|seen| seen.hits > 0));
                });
            }
        });
    }
}
