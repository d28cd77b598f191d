//! Growth: how long the longest request waits while the index becomes many times larger.
//!
//! One thread stores new items, one after the other, with a piece of the engine's background work
//! now and then; beside it another thread reads items that are there. Each call is timed. The same
//! is timed first while nothing grows: on a busy machine the longest call is the machine's doing,
//! and only the difference is the engine's.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use nuthatch::Engine;
use serde::Serialize;

use crate::engine::{
    Distribution, Items, Operations, Options, OurWorker, Ours, Room, Subject, on_cores, preload,
};

/// Sets between two pieces of background work.
const SETS_PER_MAINTENANCE: usize = 64;

/// Items written down at a time.
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

/// Times of calls, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Calls.
    pub count: u64,
    /// The middle one.
    pub p50_us: f64,
    /// One in ten thousand took longer.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Times of each kind of call during a phase.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Phase {
    /// Single sets.
    pub sets: Times,
    /// Single gets, on the other thread.
    pub gets: Times,
    /// Pieces of background work.
    pub maintenance: Times,
}

/// What the growth bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The engine's name.
    pub engine: &'static str,
    /// Items at the beginning.
    pub from: u64,
    /// Items at the end.
    pub to: u64,
    /// Slots of the index at the beginning.
    pub index_slots_from: u64,
    /// Slots of the index at the end.
    pub index_slots_to: u64,
    /// While items are only replaced.
    pub steady: Phase,
    /// While new items come.
    pub growing: Phase,
}

/// Runs the growth bench on an engine that `build` makes.
pub fn run<E: Engine>(
    build: impl FnOnce(Room) -> Result<Arc<E>, String>,
    growth: Growth,
    options: &Options,
) -> Result<Report, String> {
    let all = options.sizes.items(growth.to)?;
    let first = options.sizes.items(growth.from)?;
    let engine = build(Room {
        memory: options
            .memory
            .unwrap_or_else(|| options.sizes.memory_for(growth.to)),
        items: Some(growth.from as usize),
    })?;
    let ours = Ours::new(engine.clone(), 1);
    preload(&ours, &first)?;
    let index_slots_from = engine.stats().index_slots;
    let reads = Operations::random(&first, PIECE as usize * 4, 1.0, Distribution::Uniform, 0);

    let steady = phase(&ours, &reads, &all, 0..growth.from.min(growth.to / 4))?;
    let growing = phase(&ours, &reads, &all, growth.from..growth.to)?;
    let stats = engine.stats();
    if stats.evictions > 0 {
        return Err("items were evicted: more --memory is needed".to_owned());
    }
    Ok(Report {
        engine: engine.name(),
        from: growth.from,
        to: growth.to,
        index_slots_from,
        index_slots_to: stats.index_slots,
        steady,
        growing,
    })
}

/// Sets the items of `numbers` on one thread and reads on another until that is done.
fn phase<E: Engine>(
    ours: &Ours<E>,
    reads: &Operations,
    items: &Items,
    numbers: std::ops::Range<u64>,
) -> Result<Phase, String> {
    let done = AtomicBool::new(false);
    let mut each = on_cores(2, |thread| {
        let (done, numbers) = (&done, numbers.clone());
        let mut timed = Timed::new(ours.worker());
        move || {
            if thread == 0 {
                timed.set(items, numbers);
                // Relaxed: nothing but the flag itself is handed over.
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
            sets: times(&writer.calls),
            gets: times(&reader.calls),
            maintenance: times(&writer.maintenance),
        }),
        wrong => Err(format!("{wrong} wrong answers")),
    }
}

/// A worker whose every call is timed, in nanoseconds.
struct Timed<H> {
    worker: OurWorker<H>,
    calls: Histogram<u64>,
    maintenance: Histogram<u64>,
    /// Answers that were not as they must be; a miss is one, for nothing is evicted here.
    wrong: u64,
}

impl<H: nuthatch::Handle> Timed<H> {
    fn new(worker: OurWorker<H>) -> Self {
        Self {
            worker,
            calls: histogram(),
            maintenance: histogram(),
            wrong: 0,
        }
    }

    fn set(&mut self, items: &Items, numbers: std::ops::Range<u64>) {
        for from in numbers.clone().step_by(PIECE as usize) {
            let list = Operations::sets(items, from, (from + PIECE).min(numbers.end));
            for at in 0..list.len() {
                self.call(&list, at);
                if at % SETS_PER_MAINTENANCE == 0 {
                    let now = self.worker.now();
                    let started = Instant::now();
                    self.worker.maintain(now);
                    record(&mut self.maintenance, started);
                }
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
        let started = Instant::now();
        let tally = self.worker.ask(now, list, at, at + 1);
        record(&mut self.calls, started);
        self.wrong += tally.wrong + (tally.gets - tally.hits);
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are lawful")
}

fn record(histogram: &mut Histogram<u64>, started: Instant) {
    histogram
        .record(started.elapsed().as_nanos() as u64)
        .expect("a histogram that resizes takes any value");
}

fn times(nanoseconds: &Histogram<u64>) -> Times {
    let at = |quantile| nanoseconds.value_at_quantile(quantile) as f64 / 1e3;
    Times {
        count: nanoseconds.len(),
        p50_us: at(0.5),
        p9999_us: at(0.9999),
        max_us: nanoseconds.max() as f64 / 1e3,
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
            for (call, times) in [
                ("set", &phase.sets),
                ("get", &phase.gets),
                ("maintain", &phase.maintenance),
            ] {
                writeln!(
                    out,
                    "  {name:<8} {call:<9} p50 {:.2}  p99.99 {:.1}  max {:.1}  ({} calls)",
                    times.p50_us, times.p9999_us, times.max_us, times.count
                )?;
            }
        }
        Ok(())
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
