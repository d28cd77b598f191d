//! Checks with several threads of each PE that call the fabric at once.

use std::thread;

use nuthatch_fabric::{Address, Fabric};

use super::{Check, fill, own, pattern};

/// Words that each thread copies.
pub const WORDS: usize = 40;

pub fn check<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    let threads = check.sizes.threads;
    let counter = check.take(1);
    let from = check.take(threads * WORDS);
    let into = check.take(threads * WORDS);
    let rounds = check.sizes.rounds;
    let failures: Vec<String> = thread::scope(|scope| {
        let spawn = |thread: usize| {
            let at = thread * WORDS;
            let places = [from.plus(at), into.plus(at)];
            scope.spawn(move || work(fabric, counter, places, thread, rounds))
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .filter_map(|found| found.unwrap_or(Err("a thread panicked".into())).err())
            .collect()
    });
    check.equal("what threads found", failures, Vec::new());
    // All of this PE's threads have ended, and other PEs' calls may still need an answer.
    fabric.barrier();
    let total = fabric.fetch(0, counter);
    let total = check.done("fetch", total);
    let expected = rounds * (threads * fabric.pes()) as u64;
    check.equal("additions of all threads", total, expected);
    fabric.barrier();
}

/// One thread's calls: a counter that all share, and words of its own there and back.
fn work<F: Fabric>(
    fabric: &F,
    counter: Address,
    [from, into]: [Address; 2],
    thread: usize,
    rounds: u64,
) -> Result<(), String> {
    let gone = |gone: nuthatch_fabric::Gone| gone.to_string();
    let next = (fabric.pe() + 1) % fabric.pes();
    for round in 0..rounds {
        fabric.fetch_add(0, counter, 1).map_err(gone)?;
        let sent = pattern(fabric.pe() * 64 + thread, round, WORDS);
        let mut found = vec![0; WORDS];
        fabric.put(next, into, &sent).map_err(gone)?;
        fabric.quiet().map_err(gone)?;
        fabric.get(next, into, &mut found).map_err(gone)?;
        if found != sent {
            return Err(format!("thread {thread} gets other words than it has put"));
        }
        fabric.get_nbi(next, into, from, WORDS).map_err(gone)?;
        fabric.quiet().map_err(gone)?;
        if own(fabric, from, WORDS) != sent {
            return Err(format!("thread {thread} finds other words behind quiet"));
        }
        fill(fabric, from, &vec![0; WORDS]);
        fabric.pause(0);
    }
    Ok(())
}
