//! What a sidecar is worth: clients get keys of a pool, of which a few are wanted most of the time, from the pool itself and from a
//! sidecar of this machine, in turn. Each client has connections of its own, as a process has.
//!
//! ```text
//! memcached -p 11311 & memcached -p 11312 &
//! nuthatch -p 11313 --shared /tmp/sidecar --upstream tcp://127.0.0.1:11311,127.0.0.1:11312 &
//! cargo run --release -p nuthatch-client --features shm --example sidecar -- \
//!     tcp://127.0.0.1:11311,127.0.0.1:11312 shm:///tmp/sidecar [CLIENTS]
//! ```

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_client::{Client, Keep};

const KEYS: usize = 100_000;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_secs(60);

/// Of all gets, the share of each key and of those before it, by Zipf's law with exponent 1.
fn shares() -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=KEYS).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let sums: Vec<f64> = weights.collect();
    sums.iter().map(|part| part / sums[KEYS - 1]).collect()
}

/// A number between 0 and 1, of a sequence that is always the same.
fn next(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1_u64 << 53) as f64
}

/// How long each get of one client took, in nanoseconds.
fn gets(client: &Client, shares: &[f64], seed: u64) -> Result<Vec<u64>, nuthatch_client::Error> {
    let (mut state, mut times, began) = (seed, Vec::new(), Instant::now());
    while began.elapsed() < ROUND {
        let wanted = next(&mut state);
        let key = shares.partition_point(|&share| share < wanted);
        let asked = Instant::now();
        client.get(format!("key-{key}"))?;
        times.push(asked.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// The gets that the servers of this address have counted.
fn counted(pool: &Client) -> u64 {
    let stats = pool
        .stats("")
        .into_iter()
        .filter_map(|(_, stats)| stats.ok());
    let gets = stats.flatten().filter(|(name, _)| name == "cmd_get");
    gets.filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [pool, sidecar, rest @ ..] = words.as_slice() else {
        return Err("the addresses of a pool and of its sidecar are wanted".into());
    };
    let clients: u64 = rest.first().map_or(Ok(4), |word| word.parse())?;
    let shares = shares();
    let origin = Client::connect(pool)?;
    let value = [b'x'; 100];
    let items: Vec<(String, &[u8], Keep)> = (0..KEYS)
        .map(|key| (format!("key-{key}"), &value[..], Keep::from(60 * MINUTE)))
        .collect();
    for part in items.chunks(1000) {
        origin.set_many(part).complete()?;
    }
    for _ in 0..ROUNDS {
        for address in [pool, sidecar] {
            let before = counted(&origin);
            let mut times = thread::scope(|scope| -> Result<Vec<u64>, Box<dyn Error>> {
                let running = (0..clients).map(|number| {
                    let client = Client::connect(address)?;
                    let shares = &shares;
                    Ok(scope.spawn(move || gets(&client, shares, 77 + number)))
                });
                let running: Vec<_> = running.collect::<Result<_, nuthatch_client::Error>>()?;
                let mut all = Vec::new();
                for thread in running {
                    all.extend(thread.join().map_err(|_| "a client panicked")??);
                }
                Ok(all)
            })?;
            times.sort_unstable();
            let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize] as f64 / 1e3;
            let seconds = ROUND.as_secs_f64();
            println!(
                "{address}: {clients} clients, {:.0} gets a second, p50 {:.2} us, p99 {:.2} us, {:.0} gets a second at the pool",
                times.len() as f64 / seconds,
                at(0.5),
                at(0.99),
                (counted(&origin) - before) as f64 / seconds,
            );
        }
    }
    Ok(())
}
