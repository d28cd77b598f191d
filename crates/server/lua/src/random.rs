//! `math.random`: C's `lrand48`, whose numbers Redis' scripts get in the same order each time.

use std::cell::Cell;

/// The state of the generator: 48 bits.
#[derive(Debug, Default)]
pub struct Random(Cell<u64>);

impl Random {
    /// As in a program that has not called `srand48`.
    pub fn reset(&self) {
        self.0.set(0x1234_ABCD_330E);
    }

    /// As `srand48` does.
    pub fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | 0x330E);
    }

    /// The next number, from 0 to 1.
    pub fn draw(&self) -> f64 {
        let next = self.0.get().wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & ((1 << 48) - 1);
        self.0.set(next);
        let drawn = next >> 17;
        (drawn % i32::MAX as u64) as f64 / f64::from(i32::MAX)
    }
}
