//! The interface of a table under measurement, and the round that measures it.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::operations::{Items, Operations};
use crate::os;
use nuthatch_workload::proof::{consume, vouches};

/// Items stored in one piece while preloading, at most.
const PRELOAD: u64 = 1 << 14;

/// Operations between two looks at the clock, at least.
const OPERATIONS_PER_LOOK: usize = 1024;

/// A table under measurement, shared by threads.
pub trait Subject: Sync {
    /// One thread's access to it.
    type Worker<'a>: Worker
    where
        Self: 'a;

    /// A new access.
    fn worker(&self) -> Self::Worker<'_>;

    /// Ends the work that was put off while items were stored.
    fn finish_pending(&self) {}
}

/// One thread's access to a table.
pub trait Worker: Send {
    /// Carries out operations `from` to `to`, reads each value found, and checks it against its key.
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally;

    /// A piece of the work that the table leaves to its callers.
    fn rest(&mut self) {}

    /// Both.
    fn run(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        let tally = self.requests(list, from, to);
        self.rest();
        tally
    }
}

/// The results of operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Gets and sets.
    pub operations: u64,
    /// Gets.
    pub gets: u64,
    /// Gets that found a value.
    pub hits: u64,
    /// Values that were not their key's, and sets that were refused.
    pub wrong: u64,
    /// Computed from the values' bytes, so that the compiler cannot leave out the reads.
    pub consumed: u64,
}

impl Tally {
    /// Counts a value that was found, reads all of it, and checks it against its key.
    #[inline(always)]
    pub fn hit(&mut self, value: &[u8], key: &[u8], size: usize) {
        self.hits += 1;
        self.consumed ^= consume(value);
        self.wrong += u64::from(value.len() != size || !vouches(value, key));
    }

    /// Counts the operations of both.
    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.gets += other.gets;
        self.hits += other.hits;
        self.wrong += other.wrong;
        self.consumed ^= other.consumed;
    }

    /// Hits among gets; 1 without gets.
    pub fn hit_ratio(&self) -> f64 {
        if self.gets == 0 {
            1.0
        } else {
            self.hits as f64 / self.gets as f64
        }
    }
}

/// Stores all items, before anything is measured, and checks that none was refused.
pub fn preload<S: Subject>(subject: &S, items: &Items) -> Result<(), String> {
    let mut worker = subject.worker();
    let mut refused = 0;
    let piece = items.at_most(PRELOAD);
    for from in (0..items.count).step_by(piece as usize) {
        let to = (from + piece).min(items.count);
        let list = Operations::sets(items, from, to);
        refused += worker.run(&list, 0, list.len()).wrong;
    }
    drop(worker);
    subject.finish_pending();
    match refused {
        0 => Ok(()),
        _ => Err(format!("{refused} items could not be stored")),
    }
}

/// One round: each list on a thread and a core of its own, over and over, for about `time` (or once, if it is for once); between
/// two looks at the clock come whole batches of this size. Returns million operations a second and
/// what they did.
pub fn round<S: Subject>(
    subject: &S,
    lists: &[Operations],
    batch: usize,
    from: usize,
    time: Duration,
) -> Result<(f64, Tally), String> {
    let look = OPERATIONS_PER_LOOK.next_multiple_of(batch);
    let each = on_cores(lists.len(), |thread| {
        let mut worker = subject.worker();
        let list = &lists[thread];
        move || run_for(&mut worker, list, look, from, time)
    })?;
    let mut tally = Tally::default();
    let mut mops = 0.0;
    for (thread, elapsed) in &each {
        tally.add(thread);
        mops += thread.operations as f64 / elapsed.as_secs_f64() / 1e6;
    }
    Ok((mops, tally))
}

/// Runs `threads` closures at the same time, each pinned to a core. `make` runs on the thread, before
/// all start together.
pub fn on_cores<R: Send, F: FnOnce() -> R>(
    threads: usize,
    make: impl Fn(usize) -> F + Sync,
) -> Result<Vec<R>, String> {
    let cores = os::cores();
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|index| {
                let (start, make) = (&start, &make);
                let core = cores[index % cores.len()];
                scope.spawn(move || {
                    let pinned = os::pin(core);
                    let run = make(index);
                    start.wait();
                    pinned.map(|()| run())
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
            .collect()
    })
}

fn run_for<W: Worker>(
    worker: &mut W,
    list: &Operations,
    look: usize,
    from: usize,
    time: Duration,
) -> (Tally, Duration) {
    let mut tally = Tally::default();
    let mut at = if list.is_once() { 0 } else { from % list.len() };
    let started = Instant::now();
    loop {
        let to = (at + look).min(list.len());
        tally.add(&worker.run(list, at, to));
        at = if to == list.len() { 0 } else { to };
        let elapsed = started.elapsed();
        if elapsed >= time || (at == 0 && list.is_once()) {
            return (tally, elapsed);
        }
    }
}
