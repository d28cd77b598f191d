//! How long a fabric's operations take, one at a time, from one PE to the next.
//!
//! PE 0 measures with PE 1, which calls [`Fabric::pause`] and never gives its core away: a fabric may need that PE to
//! answer, and other work of the machine is not to be measured. Give each of the two a core, and do not let the
//! launcher assume more PEs than cores (`oshrun --oversubscribe` makes PE 0 yield while it waits). Each operation is
//! timed by itself for the percentiles, less the time that the clock takes. The mean is that of all of them without a
//! clock in between, and so the better number where an operation takes as long as a look at the clock.

use std::fmt::{self, Display};
use std::time::Instant;

use hdrhistogram::Histogram;
use nuthatch_fabric::{Address, Fabric, Gone, NoMemory};
use serde::Serialize;

/// The sizes of copies, in bytes.
pub const BYTES: [usize; 7] = [8, 32, 64, 512, 1024, 4096, 16_384];

/// Words of symmetric memory that [`measure`] takes on each PE.
pub const WORDS: usize = 2 * LONGEST + 64;

const LONGEST: usize = BYTES[BYTES.len() - 1] / 8;

/// Non-blocking Gets under way at once.
const WINDOW: usize = 8;

/// The operations that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A Get that has returned.
    Get,
    /// One of eight non-blocking Gets and a quiet.
    GetOfEight,
    /// A Put that has arrived.
    PutQuiet,
    /// A compare-and-swap that succeeds.
    CompareSwap,
    /// An atomic fetch.
    Fetch,
    /// An addition.
    FetchAdd,
    /// A Put of a word, a fence, a set, and a quiet.
    PutFenceSet,
    /// A load and copy by a pointer, if the peer can be reached by one.
    Load,
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operation::Get => "Get",
            Operation::GetOfEight => "Get, one of 8",
            Operation::PutQuiet => "Put and quiet",
            Operation::CompareSwap => "compare-swap",
            Operation::Fetch => "fetch",
            Operation::FetchAdd => "fetch-add",
            Operation::PutFenceSet => "Put, fence, set, quiet",
            Operation::Load => "load by pointer",
        })
    }
}

/// How long one operation takes, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The operation.
    pub operation: Operation,
    /// The bytes that are copied.
    pub bytes: usize,
    /// How often it was carried out with a clock, and how often without.
    pub count: u64,
    /// The mean of all of them without a clock in between.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred takes longer.
    pub p99_ns: u64,
}

impl Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Latency {
            operation,
            bytes,
            mean_ns,
            p50_ns,
            p99_ns,
            ..
        } = self;
        write!(
            f,
            "{operation:<24}{bytes:>7}{mean_ns:>11.0}{p50_ns:>9}{p99_ns:>9}"
        )
    }
}

/// The names of a [`Latency`]'s columns.
pub const HEADING: &str = "operation                 bytes    mean ns   p50 ns   p99 ns";

/// Measures each operation `count` times. Collective; of two PEs or more, the first measures with the second, and has
/// the result. Errors: no memory, or a PE that is gone.
pub fn measure<F: Fabric>(fabric: &F, count: u64) -> Result<Vec<Latency>, Failed> {
    let place = fabric.allocate(WORDS)?;
    let bench = Bench {
        fabric,
        peer: 1 % fabric.pes(),
        place,
        own: place.plus(LONGEST),
        word: place.plus(2 * LONGEST),
        count,
        clock_ns: clock_ns(),
    };
    let done = place.plus(2 * LONGEST + 8);
    let mut found = Vec::new();
    if fabric.pe() == 0 {
        found = bench.all()?;
        for pe in 1..fabric.pes() {
            fabric.set(pe, done, 1)?;
        }
        fabric.quiet()?;
    } else {
        let mut attempt = 0;
        while fabric.fetch(fabric.pe(), done)? == 0 {
            fabric.pause(attempt);
            // PE 1 stays at its first attempt.
            attempt = attempt.saturating_add((fabric.pe() > 1).into());
        }
    }
    fabric.barrier();
    Ok(found)
}

/// Why nothing was measured.
#[derive(Clone, Debug)]
pub enum Failed {
    /// The memory cannot be allocated.
    Memory(NoMemory),
    /// A PE is gone.
    Gone(Gone),
}

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Memory(none) => none.fmt(f),
            Failed::Gone(gone) => gone.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

impl From<NoMemory> for Failed {
    fn from(none: NoMemory) -> Self {
        Failed::Memory(none)
    }
}

impl From<Gone> for Failed {
    fn from(gone: Gone) -> Self {
        Failed::Gone(gone)
    }
}

/// The median time between two looks at the clock.
fn clock_ns() -> u64 {
    let mut times: Vec<u64> = (0..1001)
        .map(|_| Instant::now().elapsed().as_nanos() as u64)
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

struct Bench<'a, F> {
    fabric: &'a F,
    peer: usize,
    /// On the peer: the words that are read and written.
    place: Address,
    /// On this PE: for operations that do not return what they read.
    own: Address,
    /// On the peer: the word for atomic operations.
    word: Address,
    count: u64,
    clock_ns: u64,
}

impl<F: Fabric> Bench<'_, F> {
    fn all(&self) -> Result<Vec<Latency>, Gone> {
        let mut found = Vec::new();
        for bytes in BYTES {
            found.push(self.get(bytes)?);
        }
        for bytes in BYTES {
            found.push(self.gets_of_eight(bytes)?);
        }
        for bytes in BYTES {
            found.push(self.put(bytes)?);
        }
        if self.fabric.direct(self.peer, self.place, LONGEST).is_some() {
            for bytes in BYTES {
                found.push(self.load(bytes)?);
            }
        }
        found.extend(self.atomics()?);
        Ok(found)
    }

    fn get(&self, bytes: usize) -> Result<Latency, Gone> {
        let mut into = vec![0; bytes / 8];
        self.time(Operation::Get, bytes, 1, |_| {
            self.fabric.get(self.peer, self.place, &mut into)
        })
    }

    fn gets_of_eight(&self, bytes: usize) -> Result<Latency, Gone> {
        self.time(Operation::GetOfEight, bytes, WINDOW as u64, |_| {
            for _ in 0..WINDOW {
                self.fabric
                    .get_nbi(self.peer, self.place, self.own, bytes / 8)?;
            }
            self.fabric.quiet()
        })
    }

    fn put(&self, bytes: usize) -> Result<Latency, Gone> {
        let words = vec![1; bytes / 8];
        self.time(Operation::PutQuiet, bytes, 1, |_| {
            self.fabric.put(self.peer, self.place, &words)?;
            self.fabric.quiet()
        })
    }

    fn load(&self, bytes: usize) -> Result<Latency, Gone> {
        use std::sync::atomic::Ordering;
        let words = bytes / 8;
        let mut into = vec![0; words];
        self.time(Operation::Load, bytes, 1, |_| {
            let from = self.fabric.direct(self.peer, self.place, words);
            for (into, word) in into.iter_mut().zip(from.unwrap_or_default()) {
                // Relaxed: no PE writes there.
                *into = word.load(Ordering::Relaxed);
            }
            std::hint::black_box(&mut into);
            Ok(())
        })
    }

    fn atomics(&self) -> Result<[Latency; 4], Gone> {
        let (fabric, peer, word) = (self.fabric, self.peer, self.word);
        let mut expected = fabric.fetch(peer, word)?;
        Ok([
            self.time(Operation::CompareSwap, 8, 1, |_| {
                let found = fabric.compare_swap(peer, word, expected, expected + 1)?;
                assert_eq!(found, expected, "nobody else changes the word");
                expected += 1;
                Ok(())
            })?,
            self.time(Operation::Fetch, 8, 1, |_| {
                fabric.fetch(peer, word).map(drop)
            })?,
            self.time(Operation::FetchAdd, 8, 1, |_| {
                fabric.fetch_add(peer, word, 1).map(drop)
            })?,
            self.time(Operation::PutFenceSet, 8, 1, |number| {
                fabric.put(peer, self.place, &[number])?;
                fabric.fence();
                fabric.set(peer, word, number)?;
                fabric.quiet()
            })?,
        ])
    }

    /// Times calls of `work`, each of which is `each` operations.
    fn time(
        &self,
        operation: Operation,
        bytes: usize,
        each: u64,
        mut work: impl FnMut(u64) -> Result<(), Gone>,
    ) -> Result<Latency, Gone> {
        let calls = (self.count / each).max(1);
        for number in 0..calls / 10 {
            work(number)?;
        }
        let mut times = Histogram::<u64>::new(3).expect("three digits are lawful");
        for number in 0..calls {
            let started = Instant::now();
            work(number)?;
            let took = started.elapsed().as_nanos() as u64;
            times
                .record(took.saturating_sub(self.clock_ns) / each)
                .expect("a histogram that resizes takes any value");
        }
        let started = Instant::now();
        for number in 0..calls {
            work(number)?;
        }
        let mean_ns = started.elapsed().as_nanos() as f64 / (calls * each) as f64;
        Ok(Latency {
            operation,
            bytes,
            count: calls * each,
            mean_ns,
            p50_ns: times.value_at_quantile(0.5),
            p99_ns: times.value_at_quantile(0.99),
        })
    }
}
