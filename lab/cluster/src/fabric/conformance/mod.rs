//! Checks of what a fabric must do, on all PEs at once.
//!
//! Every check is collective, and passes the same barriers on every PE whatever it finds, so that a failure is
//! reported instead of leaving PEs waiting. What OpenSHMEM leaves open is not checked.

mod atomics;
mod collectives;
mod copies;
mod order;
mod threads;

use nuthatch_fabric::{Address, Fabric, NoMemory};

/// The sizes of the checks.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rounds of a check.
    pub rounds: u64,
    /// Threads of each PE that call the fabric at once; 1 leaves those checks out.
    pub threads: usize,
    /// Words of the longest copy.
    pub longest: usize,
}

/// The results on this PE.
#[derive(Debug, Default)]
pub struct Report {
    /// Checks that were made.
    pub checks: u64,
    /// Checks that failed, in words: the first ones.
    pub failures: Vec<String>,
}

impl Sizes {
    /// Words of symmetric memory that [`check`] takes on each of `pes` PEs.
    pub fn words(&self, pes: usize) -> usize {
        let counted = pes * (self.rounds as usize * pes + 64);
        let copied = 2 * self.longest.max(copies::LEAST)
            + order::words(self.longest)
            + 2 * self.threads * threads::WORDS;
        counted + copied + (1 << 13)
    }
}

/// The most failures that are reported.
const MOST_FAILURES: usize = 20;

/// Checks all that a fabric promises. Collective, by one thread of each PE. Errors: no memory.
pub fn check<F: Fabric>(fabric: &F, sizes: Sizes) -> Result<Report, NoMemory> {
    let mut check = Check {
        fabric,
        sizes,
        report: Report::default(),
        rest: fabric.allocate(sizes.words(fabric.pes()))?,
    };
    collectives::check(&mut check);
    copies::check(&mut check);
    atomics::check(&mut check);
    order::check(&mut check);
    if sizes.threads > 1 {
        threads::check(&mut check);
    }
    fabric.barrier();
    Ok(check.report)
}

/// A check under way.
struct Check<'a, F> {
    fabric: &'a F,
    sizes: Sizes,
    report: Report,
    /// Where the unused symmetric memory begins.
    rest: Address,
}

impl<'a, F: Fabric> Check<'a, F> {
    /// Counts a check, and notes it if it does not hold.
    fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.report.checks += 1;
        if !holds && self.report.failures.len() < MOST_FAILURES {
            let pe = self.fabric.pe();
            self.report.failures.push(format!("PE {pe}: {}", what()));
        }
    }

    /// Checks that two things are the same.
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, expected: T) {
        let holds = found == expected;
        self.holds(holds, || {
            format!("{what}: {found:?} instead of {expected:?}")
        });
    }

    /// Checks that an operation was carried out: no PE of a check dies.
    fn done<T: Default, E: std::fmt::Display>(&mut self, what: &str, result: Result<T, E>) -> T {
        let failed = result.as_ref().err().map(ToString::to_string);
        self.holds(failed.is_none(), || {
            format!("{what}: {}", failed.unwrap_or_default())
        });
        result.unwrap_or_default()
    }

    /// Zeroed symmetric memory for a check, at a line's start.
    fn take(&mut self, words: usize) -> Address {
        let taken = self.rest;
        self.rest = taken.plus(words.next_multiple_of(8));
        taken
    }

    /// The PE `distance` after this one.
    fn after(&self, distance: usize) -> usize {
        (self.fabric.pe() + distance) % self.fabric.pes()
    }

    /// The PE `distance` before this one.
    fn before(&self, distance: usize) -> usize {
        let pes = self.fabric.pes();
        (self.fabric.pe() + pes - distance % pes) % pes
    }
}

/// Words that tell which PE wrote them, in which round, and where they belong.
fn pattern(pe: usize, round: u64, words: usize) -> Vec<u64> {
    (0..words as u64)
        .map(|at| (pe as u64) << 48 | (round & 0xffff) << 32 | at)
        .collect()
}

/// Words of this PE's own memory as they are.
fn own<F: Fabric>(fabric: &F, at: Address, words: usize) -> Vec<u64> {
    use std::sync::atomic::Ordering;
    let local = fabric.local(at, words).iter();
    // Relaxed: ordered by the barrier or the fetch before it.
    local.map(|word| word.load(Ordering::Relaxed)).collect()
}

/// Writes words of this PE's own memory.
fn fill<F: Fabric>(fabric: &F, at: Address, words: &[u64]) {
    use std::sync::atomic::Ordering;
    for (word, value) in fabric.local(at, words.len()).iter().zip(words) {
        // Relaxed: ordered by the barrier behind it.
        word.store(*value, Ordering::Relaxed);
    }
}

/// Waits until `ready` returns something.
fn wait<F: Fabric, T>(fabric: &F, mut ready: impl FnMut() -> Option<T>) -> T {
    let mut turn = 0;
    loop {
        if let Some(found) = ready() {
            return found;
        }
        fabric.pause(turn);
        turn = turn.saturating_add(1);
    }
}
