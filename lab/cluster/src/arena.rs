//! An arena: a fabric whose memory is handed out again. A check needs many stores, and a fabric never takes memory
//! back.
//!
//! The memory is not zeroed: the store does not rely on that, and zeroing hundreds of megabytes for each case would
//! take most of the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuthatch_fabric::{Address, Fabric, NoMemory, forward_fabric};

/// Memory of a fabric, and the fabric's operations on it.
pub struct Arena<F: Fabric> {
    fabric: Arc<F>,
    start: Address,
    words: usize,
    taken: AtomicUsize,
}

impl<F: Fabric> Arena<F> {
    /// An arena of `words` words of a fabric. Collective.
    pub fn new(fabric: Arc<F>, words: usize) -> Result<Self, NoMemory> {
        Ok(Self {
            start: fabric.allocate(words)?,
            fabric,
            words,
            taken: AtomicUsize::new(0),
        })
    }

    fn below(&self) -> &F {
        &self.fabric
    }

    /// Frees all of it. Collective: no PE uses what was allocated any more.
    pub fn reset(&self) {
        self.fabric.barrier();
        // Relaxed: a barrier follows in `allocate`.
        self.taken.store(0, Ordering::Relaxed);
    }
}

impl<F: Fabric> Fabric for Arena<F> {
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

    forward_fabric!(pe pes verified local direct put get put_nbi get_nbi compare_swap fetch_add swap fetch set);
    forward_fabric!(signal is_gone);
    forward_fabric!(fence quiet barrier broadcast pause doze nanos);
}
