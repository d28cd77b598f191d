//! The growth bench: how long the longest request waits while the index becomes many times larger.
//!
//! One thread stores new items, one after the other, with a piece of the engine's background work now and then; beside
//! it another thread reads stored items. Each call is timed.
//!
//! The same run also measures two controls, since on a shared machine the longest call is likely to come from the
//! machine: as many sets while nothing grows, and the same two threads without any engine, for as long and with as much
//! new memory ([`machine`]).

use std::fmt::{self, Display};
use std::io;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nuthatch_engine::Engine;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Distribution, Items, Load, Operations, Options, OurWorker, Ours, Room, Subject, on_cores,
    preload,
};
use crate::host::Host;
use crate::machine::{self, Machine};
use crate::os;
use crate::times::{Times, Timings};
use nuthatch_program::Failure;

/// Sets between two pieces of background work.
const SETS_PER_MAINTENANCE: usize = 64;

/// Items listed at a time, at most.
const PIECE: u64 = 1 << 16;

/// From how many items to how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Items at the beginning.
    pub from: u64,
    /// Items at the end.
    pub to: u64,
}

impl FromStr for Growth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(from, to)| {
            Some(Growth {
                from: from.parse().ok()?,
                to: to.parse().ok()?,
            })
        });
        match numbers {
            Some(growth) if 0 < growth.from && growth.from < growth.to => Ok(growth),
            _ => Err("two numbers of items, the smaller first: 1000000:16000000".to_owned()),
        }
    }
}

/// Times of each kind of call during a phase.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// Single sets.
    pub sets: Times,
    /// Single gets, on the other thread.
    pub gets: Times,
    /// Pieces of background work.
    pub maintenance: Times,
}

/// The results of the growth bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The engine's name.
    pub engine: String,
    /// Items at the beginning.
    pub from: u64,
    /// Items at the end.
    pub to: u64,
    /// Slots of the index at the beginning.
    pub index_slots_from: u64,
    /// Slots of the index at the end.
    pub index_slots_to: u64,
    /// While items are only replaced, with as many sets as the growth has.
    pub steady: Phase,
    /// While new items are stored.
    pub growing: Phase,
    /// What this machine does to two threads without an engine.
    pub machine: Machine,
}

/// Runs the growth bench on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl FnOnce(Room) -> io::Result<Arc<E>>,
    growth: Growth,
    options: &Options,
) -> Result<Report, Failure> {
    let all = options.sizes.items(growth.to)?;
    let first = options.sizes.items(growth.from)?;
    let engine = build(Room {
        memory: options
            .memory
            .unwrap_or_else(|| options.sizes.memory_for(growth.to)),
        items: Some(growth.from as usize),
    })?;
    options.sizes.check_on(&*engine)?;
    let ours = Ours::new(engine.clone(), 1);
    preload(&ours, &first)?;
    let index_slots_from = engine.stats().index_slots;
    let gets = Load::new(1.0, Distribution::Uniform);
    let reads = Operations::random(&first, PIECE as usize * 4, &gets, 0);

    let sets = growth.to - growth.from;
    let steady = phase(&ours, &reads, &all, 0..growth.from, sets)?;
    let (resident, started) = (os::resident(), Instant::now());
    let growing = phase(&ours, &reads, &all, growth.from..growth.to, sets)?;
    let machine = machine::measure(started.elapsed(), os::resident().saturating_sub(resident))?;
    let stats = engine.stats();
    if stats.evictions > 0 {
        let words = "items were evicted: more --memory is needed";
        return Err(Failure::Run(words.to_owned()));
    }
    Ok(Report {
        host: Host::ask(),
        engine: engine.name().to_owned(),
        from: growth.from,
        to: growth.to,
        index_slots_from,
        index_slots_to: stats.index_slots,
        steady,
        growing,
        machine,
    })
}

/// Sets items of `numbers` on one thread, from the first again after the last, until `sets` are done, and reads
/// on another meanwhile.
fn phase<E: Engine>(
    ours: &Ours<E>,
    reads: &Operations,
    items: &Items,
    numbers: Range<u64>,
    sets: u64,
) -> Result<Phase, String> {
    let done = AtomicBool::new(false);
    let mut each = on_cores(2, |thread| {
        let (done, numbers) = (&done, numbers.clone());
        let mut timed = Timed::new(ours.worker());
        move || {
            if thread == 0 {
                timed.set(items, numbers, sets);
                // Relaxed: the flag publishes no other memory.
                done.store(true, Ordering::Relaxed);
            } else {
                timed.get_until(reads, done);
            }
            timed
        }
    })?
    .into_iter();
    let (Some(writer), Some(reader)) = (each.next(), each.next()) else {
        return Err("a thread is missing".to_owned());
    };
    match writer.wrong + reader.wrong {
        0 => Ok(Phase {
            sets: writer.calls.times(),
            gets: reader.calls.times(),
            maintenance: writer.maintenance.times(),
        }),
        wrong => Err(format!("{wrong} wrong answers")),
    }
}

/// A worker whose every call is timed.
struct Timed<H> {
    worker: OurWorker<H>,
    calls: Timings,
    maintenance: Timings,
    /// Wrong answers; a miss is one, because nothing is evicted here.
    wrong: u64,
}

impl<H: nuthatch_engine::Handle> Timed<H> {
    fn new(worker: OurWorker<H>) -> Self {
        Self {
            worker,
            calls: Timings::new(),
            maintenance: Timings::new(),
            wrong: 0,
        }
    }

    fn set(&mut self, items: &Items, numbers: Range<u64>, sets: u64) {
        let mut left = sets;
        let piece = items.at_most(PIECE);
        for from in numbers.clone().step_by(piece as usize).cycle() {
            let list = Operations::sets(items, from, (from + piece.min(left)).min(numbers.end));
            for at in 0..list.len() {
                self.call(&list, at);
                if at % SETS_PER_MAINTENANCE == 0 {
                    let now = self.worker.now();
                    self.maintenance.time(|| self.worker.maintain(now));
                }
            }
            left -= list.len() as u64;
            if left == 0 {
                break;
            }
        }
    }

    fn get_until(&mut self, reads: &Operations, done: &AtomicBool) {
        for at in (0..reads.len()).cycle() {
            // At least one read, however short the phase was.
            self.call(reads, at);
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    }

    fn call(&mut self, list: &Operations, at: usize) {
        let now = self.worker.now();
        let tally = self.calls.time(|| self.worker.ask(now, list, at, at + 1));
        self.wrong += tally.wrong + (tally.gets - tally.hits);
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "growth of {}: {} to {} items, {} to {} slots; microseconds a call",
            self.engine, self.from, self.to, self.index_slots_from, self.index_slots_to
        )?;
        for (name, phase) in [("steady", &self.steady), ("growing", &self.growing)] {
            writeln!(out, "  {name:<8} set       {}", phase.sets)?;
            writeln!(out, "  {name:<8} get       {}", phase.gets)?;
            writeln!(out, "  {name:<8} maintain  {}", phase.maintenance)?;
        }
        writeln!(out, "  machine  clock     {}", self.machine.clock)?;
        writeln!(out, "  machine  clock     {}", self.machine.other_clock)?;
        writeln!(out, "  machine  page      {}", self.machine.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_two_rising_numbers() {
        assert_eq!("1:16".parse(), Ok(Growth { from: 1, to: 16 }));
        for text in ["", "1", "1:", ":1", "2:1", "1:1", "0:5", "a:b", "-1:5"] {
            assert!(text.parse::<Growth>().is_err(), "{text}");
        }
    }
}
