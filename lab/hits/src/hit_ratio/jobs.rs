//! Replays of one trace, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;

use super::contender::Contender;
use super::report::{Cell, Row};
use crate::live::{Cache, EngineCache, read_through, refuse_if};
use crate::policy::Future;
use crate::simulate::{Charging, simulate};
use crate::trace::Trace;

/// A trace, and the sizes of cache that it is replayed on.
pub struct Jobs<'a> {
    pub trace: &'a Trace,
    /// In the unit that the charges have.
    pub sizes: &'a [u64],
    pub charging: Charging,
    /// So many at a time.
    pub threads: usize,
    pub progress: &'a Progress,
    /// Set when the run is interrupted.
    pub stop: &'a AtomicBool,
}

impl Jobs<'_> {
    /// Replays the trace on each contender at each size. Rows and their cells are in the order of these.
    pub fn run(&self, contenders: &[Contender]) -> Result<Vec<Row>, Failure> {
        let count = contenders.len() * self.sizes.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let future = match contenders.iter().any(Contender::is_offline) {
            true => Some(self.future()?),
            false => None,
        };
        let cells: Mutex<Vec<Option<Cell>>> = Mutex::new(vec![None; count]);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..self.threads.min(count) {
                scope.spawn(|| {
                    // Relaxed: nothing but the flag and the number is handed over.
                    while !self.stop.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            break;
                        }
                        let contender = &contenders[number / self.sizes.len()];
                        let size = self.sizes[number % self.sizes.len()];
                        let name = &self.trace.name;
                        self.progress.step(format!("{name}: {contender}"));
                        let cell = self.replay(contender, size, future.as_ref());
                        self.progress.add(1);
                        if let Ok(mut cells) = cells.lock() {
                            cells[number] = Some(cell);
                        }
                    }
                });
            }
        });
        let cells = cells.into_inner().unwrap_or_default();
        refuse_if(self.stop)?;
        // A thread that panicked has ended the program with the scope, so no cell is missing.
        let cells: Vec<Cell> = cells.into_iter().flatten().collect();
        let rows = contenders.iter().zip(cells.chunks(self.sizes.len()));
        let row = |(contender, cells): (&Contender, &[Cell])| Row {
            name: contender.to_string(),
            is_online_policy: contender.is_online_policy(),
            cells: cells.to_vec(),
        };
        Ok(rows.map(row).collect())
    }

    fn future(&self) -> Result<Future, Failure> {
        let keys = self.trace.requests.iter().map(|request| request.key);
        Future::of(keys, self.trace.keys.len()).ok_or_else(|| {
            Failure::run("the optimum takes up to 2^32 - 1 requests: take fewer with --limit")
        })
    }

    fn replay(&self, contender: &Contender, size: u64, future: Option<&Future>) -> Cell {
        match contender {
            Contender::Policy(policy) => {
                Cell::simulated(simulate(self.trace, policy, size, self.charging, future))
            }
            Contender::Engine(engine) => {
                let replay = || {
                    let mut cache = EngineCache::new(engine, size)?;
                    let hits = read_through(self.trace, &mut cache, self.stop)?;
                    Ok(Cell::live(hits, cache.memory()))
                };
                replay().unwrap_or_else(Cell::none)
            }
        }
    }
}
