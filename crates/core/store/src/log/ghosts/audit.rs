//! The audit of the ghosts. Nothing else may run meanwhile.

use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::AuditError;

use super::{BITS, FINGERPRINT_BITS, Ghosts, LANES, low_bits};
use crate::memory::arena::WORD;

/// Words beyond the table that may hold a ghost: a thread that writes one while the table shrinks leaves it behind.
const LEFT_BEHIND: usize = 16;

/// Words beyond the table that are looked at: far more may be reserved.
const BEYOND: usize = 1 << 20;

impl Ghosts {
    /// Checks that the bytes in use are those of the table's buckets, that ghosts lie in these alone and have a
    /// fingerprint each, and that there are none before one is inserted. (Their number cannot be compared with that of
    /// the inserted ones: two threads may count two ghosts as one.)
    pub fn audit(&self) -> Result<(), AuditError> {
        let used = self.bytes() / WORD;
        if used > self.words.len() {
            let reserved = self.words.len();
            return Err(format!("ghosts: {used} words in use, {reserved} reserved").into());
        }
        let (table, beyond) = self.words.split_at(used);
        // Relaxed: nothing else runs.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let mut ghosts = 0;
        for (at, word) in table.iter().map(load).enumerate() {
            for lane in (0..LANES).map(|lane| word >> (lane * BITS) & low_bits(BITS)) {
                ghosts += u64::from(lane != 0);
                if lane != 0 && lane & low_bits(FINGERPRINT_BITS) == 0 {
                    return Err(format!("ghosts: {lane:#x} in word {at} has no fingerprint").into());
                }
            }
        }
        let left = beyond.iter().take(BEYOND);
        let left = left.filter(|word| load(word) != 0).count();
        if left > LEFT_BEHIND {
            return Err(format!("ghosts: {left} words beyond the {used} in use hold some").into());
        }
        let inserted = self.inserted();
        if inserted == 0 && ghosts + left as u64 > 0 {
            return Err(format!("ghosts: {ghosts}, of which none was inserted").into());
        }
        if inserted > 0 && used == 0 {
            return Err(format!("ghosts: {inserted} inserted, without a table").into());
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A table that half of the reserved room is used for, with ghosts.
    fn ghosts() -> Ghosts {
        let ghosts = Ghosts::reserve(1 << 12).unwrap();
        ghosts.audit().unwrap();
        ghosts.begin(1 << 11);
        ghosts.audit().unwrap();
        (0..1000).for_each(|number| ghosts.insert(u64::MAX / 1000 * number));
        ghosts.audit().unwrap();
        ghosts
    }

    #[test]
    fn a_table_that_shrank_and_grew_passes() {
        let ghosts = ghosts();
        for bytes in [1 << 9, 1 << 12, 1 << 10] {
            ghosts.shrink(bytes);
            ghosts.begin(bytes);
            ghosts.audit().unwrap();
        }
    }

    #[test]
    fn broken_tables_are_seen() {
        let said = |ghosts: &Ghosts| ghosts.audit().unwrap_err().to_string();
        let larger = ghosts();
        larger.buckets.fetch_add(1000, Ordering::Relaxed);
        assert!(said(&larger).contains("reserved"));
        let smaller = ghosts();
        // As a shrinking that clears nothing.
        smaller.buckets.store(10, Ordering::Relaxed);
        assert!(said(&smaller).contains("beyond"));
        let lane = ghosts();
        lane.words[3].store(1 << FINGERPRINT_BITS, Ordering::Relaxed);
        assert!(said(&lane).contains("fingerprint"));
        let uncounted = ghosts();
        uncounted.inserted.store(0, Ordering::Relaxed);
        assert!(said(&uncounted).contains("none was inserted"));
        let lost = ghosts();
        lost.shrink(0);
        assert!(said(&lost).contains("without a table"));
    }
}
