//! A fabric whose memory is handed out again: a check wants many stores, and a fabric never takes memory back.
//!
//! It is not zero: the store does not count on that, and zeroing hundreds of megabytes for each case would take
//! most of the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_fabric::{Address, Fabric, Gone, NoMemory};

/// Memory of a fabric, and the fabric's operations on it.
pub struct Arena<F: Fabric> {
    fabric: Arc<F>,
    start: Address,
    words: usize,
    taken: AtomicUsize,
}

impl<F: Fabric> Arena<F> {
    /// So many words of a fabric. Collective.
    pub fn new(fabric: Arc<F>, words: usize) -> Result<Self, NoMemory> {
        Ok(Self {
            start: fabric.allocate(words)?,
            fabric,
            words,
            taken: AtomicUsize::new(0),
        })
    }

    /// All of it is free. Collective: nobody uses what was allocated any more.
    pub fn reset(&self) {
        self.fabric.barrier();
        // Relaxed: a barrier follows in `allocate`.
        self.taken.store(0, Ordering::Relaxed);
    }
}

impl<F: Fabric> Fabric for Arena<F> {
    fn pe(&self) -> usize {
        self.fabric.pe()
    }

    fn pes(&self) -> usize {
        self.fabric.pes()
    }

    fn allocate(&self, words: usize) -> Result<Address, NoMemory> {
        // Relaxed: allocations are collective, so they come one after the other.
        let taken = self.taken.load(Ordering::Relaxed);
        if words > self.words - taken {
            let advice = "the arena is to be larger".to_owned();
            return Err(NoMemory { words, advice });
        }
        self.taken.store(taken + words, Ordering::Relaxed);
        let at = self.start.plus(taken);
        self.fabric.barrier();
        Ok(at)
    }

    fn local(&self, at: Address, words: usize) -> &[AtomicU64] {
        self.fabric.local(at, words)
    }

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[AtomicU64]> {
        self.fabric.direct(pe, at, words)
    }

    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone> {
        self.fabric.put(pe, to, words)
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        self.fabric.get(pe, from, into)
    }

    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone> {
        self.fabric.put_nbi(pe, to, from, words)
    }

    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone> {
        self.fabric.get_nbi(pe, from, into, words)
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        self.fabric.compare_swap(pe, at, expected, new)
    }

    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone> {
        self.fabric.fetch_add(pe, at, by)
    }

    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone> {
        self.fabric.swap(pe, at, new)
    }

    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone> {
        self.fabric.fetch(pe, at)
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        self.fabric.set(pe, at, word)
    }

    fn fence(&self) {
        self.fabric.fence();
    }

    fn quiet(&self) -> Result<(), Gone> {
        self.fabric.quiet()
    }

    fn barrier(&self) {
        self.fabric.barrier();
    }

    fn broadcast(&self, root: usize, words: &mut [u64]) {
        self.fabric.broadcast(root, words);
    }

    fn pause(&self, turn: u32) {
        self.fabric.pause(turn);
    }

    fn doze(&self, longest: Duration) {
        self.fabric.doze(longest);
    }

    fn nanos(&self) -> u64 {
        self.fabric.nanos()
    }
}
