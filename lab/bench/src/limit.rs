//! The raw limit: how many independent random lines a second this memory gives.
//!
//! Each thread follows [`IN_FLIGHT`] chains: where a chain reads next depends on what it read last,
//! so exactly that many reads are under way at any time, and none can be skipped.

use std::hint::black_box;
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Reads under way at a time.
pub const IN_FLIGHT: usize = 16;

/// Lines that an operation of a table touches at least: two buckets and an item.
pub const LINES_PER_OPERATION: f64 = 3.0;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Rounds of all chains between two looks at the clock.
const ROUNDS_PER_LOOK: usize = 256;

/// Memory to read from, as large as the table that it is compared with.
pub struct Memory {
    map: MmapMut,
}

impl Memory {
    /// `bytes` of memory, touched, in huge pages where the system has them.
    pub fn new(bytes: usize) -> Result<Self, String> {
        let mut map = MmapMut::map_anon(bytes.max(LINE * IN_FLIGHT))
            .map_err(|error| format!("cannot map {bytes} bytes: {error}"))?;
        // Without huge pages the limit is lower, which the tables would feel likewise.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let mut random = SmallRng::seed_from_u64(1);
        let (lines, _) = map.as_chunks_mut::<LINE>();
        for line in lines {
            line[..8].copy_from_slice(&random.random::<u64>().to_le_bytes());
        }
        Ok(Self { map })
    }

    /// Million lines a second that the calling thread reads during about `time`.
    pub fn read(&self, seed: u64, time: Duration) -> f64 {
        let (lines, _) = self.map.as_chunks::<LINE>();
        let mut random = SmallRng::seed_from_u64(seed);
        let mut chains: [u64; IN_FLIGHT] = std::array::from_fn(|_| random.random());
        let started = Instant::now();
        let mut rounds = 0;
        loop {
            for _ in 0..ROUNDS_PER_LOOK {
                for chain in &mut chains {
                    *chain = step(lines, *chain);
                }
            }
            rounds += ROUNDS_PER_LOOK;
            let elapsed = started.elapsed();
            if elapsed >= time {
                black_box(chains);
                return (rounds * IN_FLIGHT) as f64 / elapsed.as_secs_f64() / 1e6;
            }
        }
    }
}

/// Reads the line that a chain stands at and says where it goes on.
#[inline(always)]
fn step(lines: &[[u8; LINE]], chain: u64) -> u64 {
    let index = (u128::from(chain) * lines.len() as u128) >> 64;
    let line = &lines[index as usize];
    let read = u64::from_le_bytes(*line.first_chunk().unwrap_or(&[0; 8]));
    (chain ^ read).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_reach_all_of_the_memory() {
        let memory = Memory::new(64 * LINE).unwrap();
        assert!(memory.read(1, Duration::ZERO) > 0.0);
        let (lines, rest) = memory.map.as_chunks::<LINE>();
        assert!(rest.is_empty());
        let mut seen = vec![false; lines.len()];
        let mut chain = 1;
        for _ in 0..64 * 64 {
            chain = step(lines, chain);
            seen[((u128::from(chain) * lines.len() as u128) >> 64) as usize] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
    }
}
