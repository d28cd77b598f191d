//! The raw limit: how many independent random lines a second this memory gives.
//!
//! This depends on how many lines are requested at a time and on the instructions that request them, and the best way
//! differs between processors. So it is measured in several ways ([`WAYS`]), and the best is the limit.

use std::array;
use std::fmt::{self, Display};
use std::hint::black_box;
use std::time::{Duration, Instant};

use nuthatch_base::memory::Mapped;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::report::Spread;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines between two looks at the clock, about.
const LINES_PER_LOOK: usize = 4096;

/// The instructions that request lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Chains of loads: where a chain reads next depends on what it read last, so that exactly as many reads are
    /// under way as there are chains, if the processor can hold all their instructions.
    Loads,
    /// Prefetches into the first-level cache, and a load of each line after the others in flight were requested.
    NearPrefetches,
    /// The same into the second-level cache.
    FarPrefetches,
}

/// One way to read lines.
pub(crate) struct Way {
    by: By,
    in_flight: usize,
    read: fn(&[Line], u64, Duration) -> f64,
}

type Line = [u8; LINE];

/// All ways that are tried.
pub(crate) const WAYS: [Way; 18] = [
    Way::by_loads::<8>(),
    Way::by_loads::<12>(),
    Way::by_loads::<16>(),
    Way::by_loads::<24>(),
    Way::by_loads::<32>(),
    Way::by_loads::<48>(),
    Way::by_prefetches::<8, true>(),
    Way::by_prefetches::<12, true>(),
    Way::by_prefetches::<16, true>(),
    Way::by_prefetches::<24, true>(),
    Way::by_prefetches::<32, true>(),
    Way::by_prefetches::<48, true>(),
    Way::by_prefetches::<8, false>(),
    Way::by_prefetches::<12, false>(),
    Way::by_prefetches::<16, false>(),
    Way::by_prefetches::<24, false>(),
    Way::by_prefetches::<32, false>(),
    Way::by_prefetches::<48, false>(),
];

impl Way {
    const fn by_loads<const N: usize>() -> Self {
        Self {
            by: By::Loads,
            in_flight: N,
            read: follow_chains::<N>,
        }
    }

    const fn by_prefetches<const N: usize, const NEAR: bool>() -> Self {
        Self {
            by: if NEAR {
                By::NearPrefetches
            } else {
                By::FarPrefetches
            },
            in_flight: N,
            read: ask_ahead::<N, NEAR>,
        }
    }
}

/// The result of one way, in million operations a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WayReport {
    /// The instructions that requested lines.
    pub by: By,
    /// How many at a time.
    pub in_flight: usize,
    /// Million operations a second.
    pub mops: Spread,
}

impl Display for WayReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            By::Loads => "loads",
            By::NearPrefetches => "prefetches into the first level",
            By::FarPrefetches => "prefetches into the second level",
        };
        write!(out, "by {by}, {} in flight", self.in_flight)
    }
}

/// The results of all ways in all rounds.
pub(crate) struct Limits {
    /// Lines of an operation.
    lines: f64,
    /// Million operations a second, a list for each way.
    mops: Vec<Vec<f64>>,
}

impl Limits {
    /// Nothing measured yet, of operations of so many lines.
    pub fn new(lines: f64) -> Self {
        let mops = WAYS.iter().map(|_| Vec::new()).collect();
        Self { lines, mops }
    }

    /// A round of all ways; `read` measures one of them, in million lines a second, for its share of the time.
    pub fn round(&mut self, read: impl Fn(&Way, f64) -> Result<f64, String>) -> Result<(), String> {
        for (way, mops) in WAYS.iter().zip(&mut self.mops) {
            mops.push(read(way, 1.0 / WAYS.len() as f64)? / self.lines);
        }
        Ok(())
    }

    /// The rounds of the way with the greatest median: not the best of each round, which would count noise as speed.
    pub fn best(&self) -> &[f64] {
        let median = |mops: &&Vec<f64>| Spread::of(mops.iter().copied()).median;
        let best = self
            .mops
            .iter()
            .max_by(|one, other| median(one).total_cmp(&median(other)));
        best.expect("there are ways")
    }

    /// The result of each way, the best first.
    pub fn ways(&self) -> Vec<WayReport> {
        let mut ways: Vec<WayReport> = WAYS
            .iter()
            .zip(&self.mops)
            .map(|(way, mops)| WayReport {
                by: way.by,
                in_flight: way.in_flight,
                mops: Spread::of(mops.iter().copied()),
            })
            .collect();
        ways.sort_by(|one, other| other.mops.median.total_cmp(&one.mops.median));
        ways
    }
}

/// A buffer to read from, as large as the table that it is compared with.
pub(crate) struct ReadBuffer {
    map: Mapped<u8>,
}

impl ReadBuffer {
    /// `bytes` of memory, touched, in huge pages where the system has them.
    pub fn new(bytes: usize) -> Result<Self, String> {
        let mut map = Mapped::<u8>::reserve(bytes.max(LINE))
            .map_err(|error| format!("cannot map {bytes} bytes: {error}"))?;
        let mut random = SmallRng::seed_from_u64(1);
        let (lines, _) = map.as_chunks_mut::<LINE>();
        for line in lines {
            line[..8].copy_from_slice(&random.random::<u64>().to_le_bytes());
        }
        Ok(Self { map })
    }

    /// Million lines a second that the calling thread reads in this way during about `time`.
    pub fn read(&self, way: &Way, seed: u64, time: Duration) -> f64 {
        (way.read)(self.map.as_chunks::<LINE>().0, seed, time)
    }
}

/// Reads along `N` chains.
fn follow_chains<const N: usize>(lines: &[Line], seed: u64, time: Duration) -> f64 {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut chains: [u64; N] = array::from_fn(|_| random.random());
    let mops = measure::<N>(time, || {
        for chain in &mut chains {
            *chain = mix(*chain ^ number_in(&lines[place(lines, *chain)]));
        }
    });
    black_box(chains);
    mops
}

/// Prefetches lines that are known beforehand, and reads each after `N - 1` others were prefetched.
fn ask_ahead<const N: usize, const NEAR: bool>(lines: &[Line], seed: u64, time: Duration) -> f64 {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut asked: [usize; N] = array::from_fn(|_| place(lines, random.random()));
    let (mut next, mut sum) = (random.random(), 0);
    let mops = measure::<N>(time, || {
        for place_asked in &mut asked {
            sum ^= number_in(&lines[*place_asked]);
            next = mix(next);
            *place_asked = place(lines, next);
            prefetch::<NEAR>(&lines[*place_asked]);
        }
    });
    black_box(sum);
    mops
}

/// Repeats a function that reads `N` lines for about `time`; returns million lines a second.
#[inline(always)]
fn measure<const N: usize>(time: Duration, mut read: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut lines = 0;
    loop {
        for _ in 0..LINES_PER_LOOK / N {
            read();
        }
        lines += LINES_PER_LOOK / N * N;
        let elapsed = started.elapsed();
        if elapsed >= time {
            return lines as f64 / elapsed.as_secs_f64() / 1e6;
        }
    }
}

/// The line that a random number stands for.
#[inline(always)]
fn place(lines: &[Line], number: u64) -> usize {
    ((u128::from(number) * lines.len() as u128) >> 64) as usize
}

/// What a line holds.
#[inline(always)]
fn number_in(line: &Line) -> u64 {
    u64::from_le_bytes(*line.first_chunk().unwrap_or(&[0; 8]))
}

/// The number after this one: an odd increment, so that no number leads to itself.
#[inline(always)]
fn mix(number: u64) -> u64 {
    number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
}

/// Starts loading a line: into the first-level cache if `NEAR`, else into the second.
#[inline(always)]
fn prefetch<const NEAR: bool>(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching is defined for every address and changes nothing that a program can see.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let address = line.as_ptr().cast();
        if NEAR {
            _mm_prefetch::<_MM_HINT_T0>(address);
        } else {
            _mm_prefetch::<_MM_HINT_T1>(address);
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; PRFM is a hint.
    unsafe {
        let address = line.as_ptr();
        if NEAR {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly));
        } else {
            std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sequences_reach_all_of_the_memory() {
        let memory = ReadBuffer::new(64 * LINE).unwrap();
        let (lines, rest) = memory.map.as_chunks::<LINE>();
        assert!(rest.is_empty());
        for reads in [true, false] {
            let mut seen = vec![false; lines.len()];
            let mut number = 1;
            for _ in 0..64 * 64 {
                let line = place(lines, number);
                seen[line] = true;
                let read = if reads { number_in(&lines[line]) } else { 0 };
                number = mix(number ^ read);
            }
            assert!(seen.iter().all(|&seen| seen), "chains: {reads}");
        }
    }

    #[test]
    fn the_best_way_is_that_of_the_greatest_median() {
        let memory = ReadBuffer::new(64 * LINE).unwrap();
        let mut limits = Limits::new(3.0);
        limits
            .round(|way, _| Ok(memory.read(way, 1, Duration::ZERO)))
            .unwrap();
        assert!(limits.ways().iter().all(|way| way.mops.min > 0.0));
        // One way has one fast round among slow ones, another is steady.
        let mut limits = Limits::new(3.0);
        for (lucky, steady) in [(90.0, 30.0), (3.0, 30.0), (3.0, 33.0)] {
            let read = |way: &Way, _| match (way.by, way.in_flight) {
                (By::Loads, 8) => Ok(lucky),
                (By::FarPrefetches, 32) => Ok(steady),
                _ => Ok(1.0),
            };
            limits.round(read).unwrap();
        }
        assert_eq!(limits.best(), [10.0, 10.0, 11.0]);
        let best = &limits.ways()[0];
        assert_eq!((best.by, best.in_flight), (By::FarPrefetches, 32));
        assert_eq!(best.mops.median, 10.0);
    }
}
