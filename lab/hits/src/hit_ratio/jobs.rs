//! Replays of one trace, on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;

use super::contender::Contender;
use super::report::{Cell, Row};
use super::servers::{self, SpawnCommand};
use crate::live::{Cache, EngineCache, read_through, refuse_if};
use crate::policy::Future;
use crate::simulate::{Charging, simulate};
use crate::trace::Trace;

/// A trace, and the sizes of cache that it is replayed on.
pub struct Jobs<'a> {
    pub trace: &'a Trace,
    /// In the unit of the charges.
    pub sizes: &'a [u64],
    pub charging: Charging,
    /// How many replays run at a time. A server and its client count as one: each waits for the other.
    pub threads: usize,
    pub progress: &'a Progress,
    /// True if it is the only trace: then a server that starts in no size is an error. With other traces it may start
    /// in their sizes.
    pub alone: bool,
    /// Set when the run is interrupted.
    pub stop: &'a AtomicBool,
}

/// A cache that the trace is replayed on.
enum Entrant<'a> {
    Contender(&'a Contender),
    Server(&'a SpawnCommand),
}

impl Entrant<'_> {
    fn name(&self) -> String {
        match self {
            Self::Contender(contender) => contender.to_string(),
            Self::Server(command) => command.name().to_owned(),
        }
    }
}

impl Jobs<'_> {
    /// Replays the trace on each contender and server at each size. Rows and their cells are in the order of these.
    pub fn run(
        &self,
        contenders: &[Contender],
        servers: &[SpawnCommand],
    ) -> Result<Vec<Row>, Failure> {
        let future = match contenders.iter().any(Contender::is_offline) {
            true => Some(self.future()?),
            false => None,
        };
        let contenders = contenders.iter().map(Entrant::Contender);
        let servers = servers.iter().map(Entrant::Server);
        let entrants: Vec<Entrant<'_>> = contenders.chain(servers).collect();
        let columns = self.sizes.len();
        let cells = self.in_parallel(entrants.len() * columns, |number| {
            let (entrant, size) = (&entrants[number / columns], self.sizes[number % columns]);
            let (trace, name) = (&self.trace.name, entrant.name());
            self.progress.step(format!("{trace}: {name}"));
            let cell = self.replay(entrant, size, future.as_ref());
            self.progress.add(1);
            cell
        })?;
        let rows = entrants.iter().zip(cells.chunks(columns));
        rows.map(|(entrant, cells)| row(entrant, cells, self.alone))
            .collect()
    }

    /// Calls `job` with each number below `count`, on several threads, and returns the results. The first error ends
    /// all.
    fn in_parallel(
        &self,
        count: usize,
        job: impl Fn(usize) -> Result<Cell, String> + Sync,
    ) -> Result<Vec<Cell>, String> {
        let done: Mutex<Vec<(usize, Cell)>> = Mutex::default();
        let failed: Mutex<Option<String>> = Mutex::default();
        let (next, failing) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            // Relaxed, here and below: the flags and the number publish no other memory.
            while !self.stop.load(Ordering::Relaxed) && !failing.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                match job(number) {
                    Ok(cell) => done.lock().push((number, cell)),
                    Err(error) => {
                        failing.store(true, Ordering::Relaxed);
                        failed.lock().get_or_insert(error);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.threads.min(count) {
                scope.spawn(work);
            }
        });
        if let Some(error) = failed.lock().take() {
            return Err(error);
        }
        refuse_if(self.stop)?;
        let mut done = std::mem::take(&mut *done.lock());
        done.sort_unstable_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, cell)| cell).collect())
    }

    fn future(&self) -> Result<Future, Failure> {
        let keys = self.trace.requests.iter().map(|request| request.key);
        Future::of(keys, self.trace.keys.len()).ok_or_else(|| {
            Failure::run("the optimum takes up to 2^32 - 1 requests: take fewer with --limit")
        })
    }

    fn replay(
        &self,
        entrant: &Entrant<'_>,
        size: u64,
        future: Option<&Future>,
    ) -> Result<Cell, String> {
        match entrant {
            Entrant::Contender(Contender::Policy(policy)) => {
                let (hits, movement) = simulate(self.trace, policy, size, self.charging, future);
                Ok(Cell::simulated(hits, movement))
            }
            Entrant::Contender(Contender::Engine(engine)) => match EngineCache::new(engine, size) {
                Ok(mut cache) => {
                    let hits = read_through(self.trace, &mut cache, self.stop)?;
                    Ok(Cell {
                        more_hits: cache.more_hits(),
                        ..Cell::live(hits, cache.memory())
                    })
                }
                Err(error) => Ok(Cell::none(error)),
            },
            Entrant::Server(command) => match command.start(size, self.stop) {
                Ok(server) => servers::replay(&server, self.trace, self.stop),
                // The server may refuse to start in too small a size.
                Err(error) => Ok(Cell::none(error)),
            },
        }
    }
}

/// The row of a contender or server. Errors: the server starts in no size of the only trace.
fn row(entrant: &Entrant<'_>, cells: &[Cell], alone: bool) -> Result<Row, Failure> {
    let none = alone && cells.iter().all(|cell| cell.note.is_some());
    if let (
        Entrant::Server(_),
        true,
        [
            Cell {
                note: Some(error), ..
            },
            ..,
        ],
    ) = (entrant, none, cells)
    {
        return Err(Failure::run(error));
    }
    Ok(Row {
        name: entrant.name(),
        is_online_policy: match entrant {
            Entrant::Contender(contender) => contender.is_online_policy(),
            Entrant::Server(_) => false,
        },
        cells: cells.to_vec(),
    })
}
