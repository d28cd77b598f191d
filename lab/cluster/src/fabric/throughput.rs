//! How many operations a second the distributed store carries out, and a memcached for as many clients.
//!
//! The first PE serves, and all others are clients: of the store, then, each over a connection of its own, of the
//! memcached. Keys are drawn by Zipf's law with exponent 0.99 (YCSB) between the requests, as YCSB's clients do it.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Instant;

use nuthatch_cluster::{Cluster, Config, ConfigError, Operations};
use nuthatch_engine::{Engine, Handle, Key, Op, Request, Store};
use nuthatch_fabric::{Address, Fabric};
use nuthatch_workload::{Distribution, Popularity, Seed};
use rand::Rng;
use rand::rngs::SmallRng;
use serde::Serialize;

use crate::fabric::memcached::Memcached;
use crate::fabric::store::{BESIDE, Failed, MEMORY, NOW, Sink, config, with_store};

/// Bytes of a pair beside its value: key, header, and some of what its class is larger.
const PAIR: usize = 96;

/// Pairs that a client stores together before the clock starts.
const TOGETHER: usize = 64;

/// The requests of clients.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Keys.
    pub keys: u64,
    /// Bytes of a value.
    pub value: usize,
    /// Share of gets, of a hundred; the others are sets.
    pub gets: u32,
    /// Requests of a batch.
    pub batch: usize,
    /// Entries of each client's directory.
    pub directory: usize,
}

impl Load {
    /// Percentages of gets, requests of a batch and entries of the directory that docs/cluster.md shows.
    pub const MIXES: [(u32, usize, usize); 11] = [
        (0, 64, 1 << 16),
        (50, 32, 1 << 16),
        (50, 1, 1 << 16),
        (95, 1, 1 << 16),
        (100, 1, 1 << 16),
        (95, 32, 1 << 16),
        (100, 32, 1 << 16),
        (100, 1, 0),
        (100, 1, 1 << 8),
        (100, 1, 1 << 11),
        (100, 1, 1 << 14),
    ];

    /// A store with room for all pairs, twice.
    fn config(&self, operations: Operations) -> Config {
        let pairs = (self.keys as usize).saturating_mul(self.value + PAIR);
        let memory = pairs.saturating_mul(2).max(MEMORY);
        Config {
            memory,
            memory_max: memory,
            ..config(operations, self.directory)
        }
    }

    /// Words of symmetric memory that its store takes on each PE of a job.
    ///
    /// # Errors
    /// There can be no such store.
    pub fn words(&self, pes: usize) -> Result<usize, ConfigError> {
        let of_store = self.config(Operations::Chosen).symmetric_words(pes)?;
        Ok(of_store + BESIDE)
    }
}

/// Whose operations were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// The distributed store's.
    Store,
    /// Those of a memcached over TCP.
    Memcached,
}

/// How many operations a second.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    /// Whose.
    pub system: System,
    /// Of which requests.
    #[serde(flatten)]
    pub load: Load,
    /// Clients.
    pub clients: usize,
    /// Operations a second, of the calling PE.
    pub per_second: f64,
    /// Operations a second, of all clients.
    pub of_all_per_second: f64,
    /// Share of this client's requests that hit or stored: 1 if all keys have room.
    pub answered: f64,
    /// What the store's client did; nothing of memcached's.
    #[serde(flatten)]
    pub session: Session,
}

/// What one of the store's clients did, by the counts of its session.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Session {
    /// Share of gets that the directory led to their pair.
    pub directory_hits: f64,
    /// For each operation: messages to the server.
    pub messages: f64,
    /// Blocks read again, because a writer had them locked.
    pub reads_again: f64,
    /// Compare-swaps of a lock that were lost to another writer.
    pub locks_lost: f64,
    /// Compare-swaps of a recency.
    pub recency_swaps: f64,
}

impl Session {
    /// Of `operations` operations between two readings.
    fn between(
        before: nuthatch_cluster::ClientStats,
        after: nuthatch_cluster::ClientStats,
        operations: f64,
    ) -> Self {
        let hits = (after.directory_hits - before.directory_hits) as f64;
        let misses = (after.directory_misses - before.directory_misses) as f64;
        let each = |before: u64, after: u64| (after - before) as f64 / operations;
        Self {
            directory_hits: hits / (hits + misses).max(1.0),
            messages: each(before.active, after.active),
            reads_again: each(before.torn, after.torn),
            locks_lost: each(before.locks_lost, after.locks_lost),
            recency_swaps: each(before.recency_swaps, after.recency_swaps),
        }
    }
}

/// The names of the columns.
pub const HEADING: &str =
    "system     gets  value  batch  directory  clients  of one client/s  of all/s  directory hits";

impl Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load {
            value,
            gets,
            batch,
            directory,
            ..
        } = self.load;
        let name = match self.system {
            System::Store => "store",
            System::Memcached => "memcached",
        };
        write!(
            f,
            "{name:<10}{gets:>3} %{value:>7}{batch:>7}{directory:>11}{:>9}{:>17.0}{:>10.0}",
            self.clients, self.per_second, self.of_all_per_second
        )?;
        match self.system {
            System::Store => write!(f, "{:>14.1} %", 100.0 * self.session.directory_hits),
            System::Memcached => Ok(()),
        }
    }
}

/// Where clients meet, at the first PE.
struct Meeting<'f, F> {
    fabric: &'f F,
    clients: u64,
    arrived: Address,
    sum: Address,
}

impl<'f, F: Fabric> Meeting<'f, F> {
    /// A meeting by two words that are zero.
    fn new(fabric: &'f F, words: Address) -> Self {
        Self {
            fabric,
            clients: fabric.pes() as u64 - 1,
            arrived: words,
            sum: words.plus(1),
        }
    }

    /// Waits until all clients have come here `times` times.
    fn wait(&self, times: u64) -> Result<(), Failed> {
        self.fabric.fetch_add(0, self.arrived, 1)?;
        let mut attempt = 0;
        while self.fabric.fetch(0, self.arrived)? < times * self.clients {
            self.fabric.pause(attempt);
            attempt += 1;
        }
        Ok(())
    }
}

/// A client's requests: a key's number, and whether it is a get.
struct Draw {
    gets: u32,
    popularity: Popularity,
    random: SmallRng,
}

impl Draw {
    fn new(load: &Load, pe: usize) -> Self {
        Self {
            gets: load.gets,
            popularity: Popularity::new(Distribution::YCSB, load.keys),
            random: Seed(7).thread(pe),
        }
    }

    fn next(&mut self) -> (u64, bool) {
        let is_get = self.random.random_range(0..100) < self.gets;
        (self.popularity.draw(&mut self.random), is_get)
    }
}

fn names(load: &Load) -> Vec<String> {
    (0..load.keys).map(|key| format!("user{key:012}")).collect()
}

/// The numbers of the keys that a client stores before the clock starts.
fn own_keys(load: &Load, clients: usize, pe: usize) -> impl Iterator<Item = usize> + use<> {
    (pe - 1..load.keys as usize).step_by(clients)
}

/// Operations a second of the store, in `rounds` batches of each client. Collective; clients begin together.
///
/// # Errors
/// The store cannot be opened, or a PE is gone.
pub fn of_store<F: Fabric>(
    fabric: &Arc<F>,
    load: Load,
    rounds: u64,
    operations: Operations,
) -> Result<Option<Throughput>, Failed> {
    with_store(fabric, &load.config(operations), |engine, pe, words| {
        let meeting = Meeting::new(&**fabric, words);
        measure(engine, &meeting, pe, load, rounds)
    })
}

fn measure<F: Fabric>(
    engine: &Arc<Cluster<F>>,
    meeting: &Meeting<'_, F>,
    pe: usize,
    load: Load,
    rounds: u64,
) -> Result<Throughput, Failed> {
    let clients = meeting.clients as usize;
    let mut handle = engine.handle();
    let mut sink = Sink::new();
    let value = vec![b'v'; load.value];
    let names = names(&load);
    let request = |number: usize, op| Request {
        key: Key::new(names[number].as_bytes(), engine.hasher()),
        op,
    };
    let set = Op::Store(Store::set(&value));
    let stores: Vec<_> = own_keys(&load, clients, pe)
        .map(|number| request(number, set))
        .collect();
    for batch in stores.chunks(TOGETHER) {
        handle.execute(NOW, batch, &mut sink);
    }
    let mut draw = Draw::new(&load, pe);
    let (before, hits) = (engine.client_stats(), sink.hits);
    meeting.wait(1)?;
    let started = Instant::now();
    for _ in 0..rounds {
        let batch = (0..load.batch).map(|_| match draw.next() {
            (number, true) => request(number as usize, Op::Get),
            (number, false) => request(number as usize, set),
        });
        handle.execute(NOW, &batch.collect::<Vec<_>>(), &mut sink);
    }
    let seconds = started.elapsed().as_secs_f64();
    let count = (rounds * load.batch as u64) as f64;
    let per_second = count / seconds;
    meeting
        .fabric
        .fetch_add(0, meeting.sum, per_second as u64)?;
    meeting.wait(2)?;
    Ok(Throughput {
        system: System::Store,
        load,
        clients,
        per_second,
        of_all_per_second: meeting.fabric.fetch(0, meeting.sum)? as f64,
        answered: (sink.hits - hits) as f64 / count,
        session: Session::between(before, engine.client_stats(), count),
    })
}

/// Operations a second of the memcached at `address`, for the same requests. Collective; clients begin together, and the
/// first PE only waits. A batch is a pipeline.
///
/// # Errors
/// The memcached cannot be reached by some client, or gives no valid answer.
pub fn of_memcached<F: Fabric>(
    fabric: &F,
    address: &str,
    load: Load,
    rounds: u64,
) -> Result<Option<Throughput>, Failed> {
    let (pe, clients) = (fabric.pe(), fabric.pes() - 1);
    let names = names(&load);
    let filled = match pe {
        0 => Ok(None),
        _ => fill(address, &load, &names, clients, pe).map(Some),
    };
    fabric.barrier();
    let found = match filled {
        Ok(Some(client)) => pipelines(client, &load, &names, rounds, pe).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    // Also a client that failed takes part, so that no other one waits for it.
    let own = found.as_ref().ok().and_then(|found| found.as_ref());
    let own = own.map_or(0.0, |(per_second, _)| *per_second);
    let mut of_all_per_second = 0.0;
    for client in 1..=clients {
        let mut rate = [own.to_bits()];
        fabric.broadcast(client, &mut rate);
        of_all_per_second += f64::from_bits(rate[0]);
    }
    Ok(found?.map(|(per_second, answered)| Throughput {
        system: System::Memcached,
        load,
        clients,
        per_second,
        of_all_per_second,
        answered,
        session: Session::default(),
    }))
}

/// A connection whose client has stored its part of the keys.
fn fill(
    address: &str,
    load: &Load,
    names: &[String],
    clients: usize,
    pe: usize,
) -> std::io::Result<Memcached> {
    let mut client = Memcached::connect(address, load.value)?;
    let value = vec![b'v'; load.value];
    for number in own_keys(load, clients, pe) {
        client.set(&names[number], &value)?;
    }
    client.finish()?;
    Ok(client)
}

/// Operations a second, and the share of requests that hit or stored.
fn pipelines(
    mut client: Memcached,
    load: &Load,
    names: &[String],
    rounds: u64,
    pe: usize,
) -> std::io::Result<(f64, f64)> {
    let value = vec![b'v'; load.value];
    let mut draw = Draw::new(load, pe);
    let mut answered = 0;
    let started = Instant::now();
    for _ in 0..rounds {
        for _ in 0..load.batch {
            match draw.next() {
                (number, true) => client.get(&names[number as usize])?,
                (number, false) => client.set(&names[number as usize], &value)?,
            }
        }
        answered += client.finish()?;
    }
    let count = (rounds * load.batch as u64) as f64;
    let seconds = started.elapsed().as_secs_f64();
    Ok((count / seconds, answered as f64 / count))
}
