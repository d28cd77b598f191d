//! A poll: a Get of one word of another PE, without waiting for that PE where the library allows it.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, Gone};

/// In the word in which a poll lands: the Get has not landed. No number, busy word or clock reaches this value.
const UNKNOWN: u64 = u64::MAX;

/// Begins to get a PE's word. Its value lands in `into`, which has [`UNKNOWN`] until then.
pub fn begin_poll<F: Fabric>(
    fabric: &F,
    pe: usize,
    at: Address,
    into: Address,
) -> Result<(), Gone> {
    let landing = &fabric.local(into, 1)[0];
    if fabric.verified().lands_alone {
        // Release: earlier stores do not move behind this one.
        landing.store(UNKNOWN, Ordering::Release);
        return fabric.get_nbi(pe, at, into, 1);
    }
    // Without a `quiet`, which waits for all PEs, the word might never land. This waits for one.
    let mut word = [UNKNOWN];
    fabric.get(pe, at, &mut word)?;
    // Release: as above.
    landing.store(word[0], Ordering::Release);
    Ok(())
}

/// The word that was polled, once it has landed.
pub fn polled<F: Fabric>(fabric: &F, at: Address) -> Option<u64> {
    // Acquire: what is read from now on is read after the events that the word tells of.
    let word = fabric.local(at, 1)[0].load(Ordering::Acquire);
    (word != UNKNOWN).then_some(word)
}
