//! An estimate of how often keys were requested lately: TinyLFU's count-min sketch (Einziger, Friedman, Manes, ToS'17).

/// Rows, each with a hash function of its own.
const ROWS: usize = 4;
/// Counts are of four bits.
const COUNT_MAX: u8 = 15;
/// Counters of a row for each item that the cache holds.
const COUNTERS: u64 = 4;
/// Requests for each item that the cache holds, after which all counts are halved.
const SAMPLE: u64 = 10;

/// Counters that age. (The paper's doorkeeper, a Bloom filter that keeps out keys that are requested once, is left out:
/// it saves space, of which there is enough here.)
#[derive(Clone, Debug)]
pub struct Sketch {
    /// The rows, one behind the other.
    counters: Vec<u8>,
    row_bits: u32,
    added: u64,
    sample: u64,
}

impl Sketch {
    /// A sketch for a cache of `items` items.
    pub fn new(items: u64) -> Self {
        let items = items.max(16);
        let row = (items * COUNTERS).next_power_of_two();
        Self {
            counters: vec![0; row as usize * ROWS],
            row_bits: row.trailing_zeros(),
            added: 0,
            sample: items * SAMPLE,
        }
    }

    /// Requests between two halvings.
    pub fn sample(&self) -> u64 {
        self.sample
    }

    fn places(&self, key: u32) -> [usize; ROWS] {
        // Each row takes bits of a product with a different odd number.
        const FACTORS: [u64; ROWS] = [
            0x9e37_79b9_7f4a_7c15,
            0xc2b2_ae3d_27d4_eb4f,
            0x1656_67b1_9e37_79f9,
            0x27d4_eb2f_1656_67c5,
        ];
        let mut row = 0;
        FACTORS.map(|factor| {
            let mixed = (u64::from(key) + 1).wrapping_mul(factor);
            let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            let place = (mixed >> (64 - self.row_bits)) as usize;
            row += 1;
            ((row - 1) << self.row_bits) + place
        })
    }

    /// A request for the key: the least of its counters, and those equal to it, go up.
    pub fn add(&mut self, key: u32) {
        let places = self.places(key);
        let count = self.least(&places);
        if count < COUNT_MAX {
            for place in places {
                let counter = &mut self.counters[place];
                *counter = (*counter).max(count + 1);
            }
        }
        self.added += 1;
        if self.added == self.sample {
            self.added /= 2;
            for counter in &mut self.counters {
                *counter /= 2;
            }
        }
    }

    /// About how often the key was requested, up to 15.
    pub fn count(&self, key: u32) -> u8 {
        self.least(&self.places(key))
    }

    fn least(&self, places: &[usize; ROWS]) -> u8 {
        let counts = places.map(|place| self.counters[place]);
        counts.into_iter().min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_seldom_too_high() {
        let mut sketch = Sketch::new(1000);
        for key in 0..1000 {
            for _ in 0..key % 5 {
                sketch.add(key);
            }
        }
        let over = |key: &u32| u32::from(sketch.count(*key)) > key % 5;
        assert!((0..1000).all(|key| u32::from(sketch.count(key)) >= key % 5));
        assert!((0..1000).filter(over).count() < 20);
    }

    #[test]
    fn counts_end_at_15_and_age() {
        let mut sketch = Sketch::new(16);
        for _ in 0..100 {
            sketch.add(7);
        }
        assert_eq!(sketch.count(7), 15);
        for key in 0..60 {
            sketch.add(1000 + key % 4);
        }
        assert!(sketch.count(7) <= 8);
    }
}
