//! How long a call alone takes by different addresses, in one run and in turn: half of the gets, and of the sets, take less.
//!
//! ```text
//! nuthatch -s /run/nuthatch/socket --shared /run/nuthatch/shared & nuthatch -p 11311 &
//! cargo run --release -p nuthatch-client --features shm --example addresses -- \
//!     'shm:///run/nuthatch/shared?or=unix:///run/nuthatch/socket' unix:///run/nuthatch/socket tcp://127.0.0.1:11311
//! ```
//!
//! A get without a system call is too short to be timed alone: gets are timed by hundreds.

use std::hint::black_box;
use std::time::Instant;

use nuthatch_client::Client;

const ROUNDS: usize = 15;
const BLOCKS: usize = 20;
const CALLS: u32 = 100;
const KEYS: u32 = 1000;

fn main() {
    let connect = |address: String| {
        let client = Client::connect(&address).expect("an address");
        for number in 0..KEYS {
            client
                .set(name(number), [b'x'; 32], None)
                .expect("a server");
        }
        (address, client, Vec::new(), Vec::new())
    };
    let mut ways: Vec<_> = std::env::args().skip(1).map(connect).collect();
    for _ in 0..ROUNDS {
        for (_, client, gets, sets) in &mut ways {
            blocks(gets, |key| {
                black_box(client.get(key).expect("a server").expect("a value"));
            });
            blocks(sets, |key| {
                client.set(key, [b'x'; 32], None).expect("a server")
            });
        }
    }
    for (address, _, gets, sets) in &mut ways {
        println!(
            "{address:60} get {:8.0} ns   set {:8.0} ns",
            median(gets),
            median(sets)
        );
    }
}

fn name(number: u32) -> String {
    format!("key:{number:012}")
}

/// Adds the nanoseconds a call of some blocks of calls.
fn blocks(times: &mut Vec<f64>, mut call: impl FnMut(&str)) {
    let names: Vec<String> = (0..KEYS).map(name).collect();
    let mut state: u32 = 1;
    for _ in 0..BLOCKS {
        let begun = Instant::now();
        for _ in 0..CALLS {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            call(&names[(state >> 8) as usize % names.len()]);
        }
        times.push(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
