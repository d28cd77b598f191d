//! The sizes of items: `stats sizes`.

use std::collections::BTreeMap;
use std::io::Write;

/// The step of sizes in bytes, as in memcached.
const STEP: usize = 32;

/// The sizes of items above this are shown in steps of a 64th of the power of two below: this bounds the number of
/// lines.
const EXACT: usize = 128 << 10;

/// Items by their bytes: header, key and value.
#[derive(Debug, Default)]
pub struct ItemSizes(BTreeMap<usize, u64>);

impl ItemSizes {
    /// Counts an item of this many bytes.
    pub fn add(&mut self, bytes: usize) {
        let step = match bytes {
            0..=EXACT => STEP,
            _ => (1 << bytes.ilog2()) / 64,
        };
        *self.0.entry(bytes.next_multiple_of(step)).or_default() += 1;
    }

    /// Writes a line for each size: the most bytes, and the number of items.
    pub fn write(&self, out: &mut Vec<u8>) {
        // A write to a Vec does not fail.
        let _ = write!(out, "STAT sizes_status enabled\r\n");
        for (bytes, items) in &self.0 {
            let _ = write!(out, "STAT {bytes} {items}\r\n");
        }
        out.extend_from_slice(b"END\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_no_item_is_larger_than_its_line() {
        let mut sizes = ItemSizes::default();
        for bytes in [1, 32, 33, 64, EXACT, EXACT + 1, 1 << 30] {
            sizes.add(bytes);
        }
        let mut out = Vec::new();
        sizes.write(&mut out);
        let said = String::from_utf8(out).expect("lines are text");
        assert_eq!(
            said,
            format!(
                "STAT sizes_status enabled\r\nSTAT 32 2\r\nSTAT 64 2\r\nSTAT {EXACT} 1\r\nSTAT {} 1\r\n\
                 STAT {} 1\r\nEND\r\n",
                EXACT + EXACT / 64,
                1 << 30
            )
        );
        (0..1 << 21).for_each(|bytes| sizes.add(bytes));
        assert!(sizes.0.len() < EXACT / STEP + 64 * 20);
    }
}
