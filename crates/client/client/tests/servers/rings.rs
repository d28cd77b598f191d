//! Rings that are taken from a server, so that it has none for others.

use std::path::Path;

use nuthatch_direct::Direct;
use nuthatch_ring::End;

use super::running::{PATIENCE, wait_until};

/// Rings that nobody uses.
pub type Rings = Vec<End>;

/// Takes so many rings of a server, and leaves its memory.
pub fn take(shared: &Path, count: usize) -> Rings {
    let mut rings = Vec::new();
    let mut before = None;
    while rings.len() < count {
        // Those before the last may not have left yet.
        let made = || Direct::connect_with_ring(shared, PATIENCE).ok();
        let (direct, ring) = wait_until("a ring", made);
        rings.push(ring);
        // Whoever leaves at once takes its ring with it. When the next one is welcome, a worker has it.
        before = Some(direct);
    }
    if before.is_some() {
        wait_until("the memory", || Direct::connect(shared).ok());
    }
    rings
}
