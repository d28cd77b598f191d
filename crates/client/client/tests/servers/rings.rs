//! Rings that are taken from a server, so that it has none for others.

use std::io::{Read, Write};
use std::path::Path;

use nuthatch_direct::Direct;
use nuthatch_ring::End;

use super::running::{PATIENCE, wait_until};

/// Rings that nobody uses.
pub type Rings = Vec<End>;

/// Takes so many rings of a server, and leaves its memory.
pub fn take(shared: &Path, count: usize) -> Rings {
    (0..count).map(|_| take_one(shared)).collect()
}

fn take_one(shared: &Path) -> End {
    // Those before may not have left yet.
    let made = || Direct::connect_with_ring(shared, PATIENCE).ok();
    let (direct, mut ring) = wait_until("a ring", made);
    // A worker has it, which does not mind that the memory is left.
    ring.write_all(b"mn\r\n").unwrap();
    let answer = || ring.read(&mut [0; 8]).ok();
    assert_eq!(wait_until("an answer", answer), 4);
    drop(direct);
    ring
}
