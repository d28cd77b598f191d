//! A look at one word of another PE, without waiting for it.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, Gone};

/// In a word that is looked for: it has not landed. No mark, busy word or clock comes so far.
const UNKNOWN: u64 = u64::MAX;

/// Begins to look at a PE's word: what is there comes to `into`, where [`UNKNOWN`] is until then.
pub fn look<F: Fabric>(fabric: &F, pe: usize, at: Address, into: Address) -> Result<(), Gone> {
    // Release: what was laid down before is not laid down behind it.
    fabric.local(into, 1)[0].store(UNKNOWN, Ordering::Release);
    fabric.get_nbi(pe, at, into, 1)
}

/// The word that was looked at, once it has landed.
pub fn seen<F: Fabric>(fabric: &F, at: Address) -> Option<u64> {
    // Acquire: what is read from now on lies behind what the word tells of.
    let word = fabric.local(at, 1)[0].load(Ordering::Acquire);
    (word != UNKNOWN).then_some(word)
}
