//! The lines of memory that an operation touches at least, by which the raw limit is divided.

use nuthatch_engine::Engine;
use serde::{Deserialize, Serialize};

use crate::engine::operations::Items;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of an item before its key.
const HEADER: usize = 16;

/// An item begins and ends at a multiple of so many bytes, and takes at least as many as the second number.
const WORD: usize = 8;
const RECORD_MIN: usize = 32;

/// Items whose sizes are looked at.
const SAMPLE: u64 = 100_000;

/// Means over all operations. Misses touch buckets alone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Lines {
    /// Buckets of the index: two for each key.
    pub buckets: f64,
    /// Of header, key and value, where the engine puts them.
    pub item: f64,
    /// The recency of an item that was hit. Its table is small: the line is often in the last-level cache.
    pub recency: f64,
}

impl Lines {
    /// The lines of operations of which this share are misses.
    pub fn new<E: Engine>(engine: &E, items: &Items, miss_ratio: f64) -> Self {
        let sample = items.count.min(SAMPLE);
        let all = items.sizes_of(0..sample).map(|(key, value)| {
            let bytes = engine.footprint(key, value).size;
            let record = bytes.next_multiple_of(WORD).max(RECORD_MIN);
            (record, (HEADER + key + value).min(bytes))
        });
        let all: Vec<_> = all.collect();
        let step = all
            .iter()
            .fold(LINE, |step, &(record, _)| gcd(step, record));
        let lines: f64 = all.iter().map(|&(_, bytes)| lines(bytes, step)).sum();
        let hits = 1.0 - miss_ratio;
        Self {
            buckets: 2.0,
            item: hits * lines / sample as f64,
            recency: hits,
        }
    }

    /// Those that are far larger than any cache.
    pub fn far(&self) -> f64 {
        self.buckets + self.item
    }

    /// All of them.
    pub fn all(&self) -> f64 {
        self.far() + self.recency
    }
}

/// Lines of so many bytes. Items lie one behind the other, so one begins at each multiple of `step` in a line equally
/// often.
fn lines(bytes: usize, step: usize) -> f64 {
    let starts = (0..LINE).step_by(step);
    let count = starts.len();
    let sum: usize = starts.map(|start| (start + bytes).div_ceil(LINE)).sum();
    sum as f64 / count as f64
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_from_where_items_begin() {
        // Items of one line each, all aligned; the same at every multiple of eight bytes.
        assert_eq!(lines(64, 64), 1.0);
        assert_eq!(lines(64, 8), 1.875);
        // 16 + 16 + 100 bytes in 136.
        assert_eq!(gcd(64, 136), 8);
        assert_eq!(lines(132, 8), 3.0);
        // 16 + 16 + 300 bytes in 336.
        assert_eq!(gcd(64, 336), 16);
        assert_eq!(lines(332, 16), 6.0);
        assert_eq!(lines(1, 8), 1.0);
    }
}
