//! How a job ends: a PE that is to end tells every PE, and no PE exits before all are ready.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, Gone, NoMemory};

/// A word of each PE: set once the job is to end.
pub struct Ending<F: Fabric> {
    fabric: Arc<F>,
    word: Address,
}

impl<F: Fabric> Ending<F> {
    /// Words of symmetric memory that it takes: a line, so that nothing else is written beside it.
    pub const WORDS: usize = 8;

    /// Collective.
    pub fn new(fabric: Arc<F>) -> Result<Self, NoMemory> {
        let word = fabric.allocate(Self::WORDS)?;
        Ok(Self { fabric, word })
    }

    /// Tells all PEs that the job is to end.
    pub fn request(&self) {
        let own = self.fabric.pe();
        // Release: earlier writes lie before the request.
        self.fabric.local(self.word, 1)[0].store(1, Ordering::Release);
        for pe in (0..self.fabric.pes()).filter(|&pe| pe != own) {
            // A PE that is gone has ended. One that stands still keeps no other from being told.
            let _ = self.fabric.signal(pe, self.word, self.word);
        }
        // The signals must be on their way before this PE waits.
        let _: Result<(), Gone> = self.fabric.quiet();
    }

    /// True once any PE has requested the end.
    pub fn is_requested(&self) -> bool {
        // Acquire: pairs with the Release in `request`.
        self.fabric.local(self.word, 1)[0].load(Ordering::Acquire) != 0
    }
}
