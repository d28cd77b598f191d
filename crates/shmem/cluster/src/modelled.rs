//! The fabric of models: PEs are loom's threads and load and store each other's memory, as over shared memory.
//!
//! A Put is stored word by word when it is called, and a Get loaded. A fence is a Release fence: so loom looks at every
//! order in which a reader may see the words that are not behind one. (That words come late over a network is for the
//! seeded network.)
//!
//! A PE's memory has no more than the areas that a model names, since loom looks through all words at every fence. What
//! lies elsewhere is left out: a Put from there, or to there, does nothing.

use std::sync::Arc;
use std::time::Duration;

use nuthatch_base::sync::shim::{self, Ordering, fence};
use nuthatch_fabric::{Address, Fabric, Gone, NoMemory, Verified, Word};

/// An area: where it begins, and how many words it has.
pub type Area = (Address, usize);

/// Protections that a model leaves out, to show that it needs them.
#[derive(Clone, Copy, Default)]
pub struct Missing {
    /// Fences do nothing.
    pub fences: bool,
    /// No PE can load another one's memory.
    pub loads: bool,
}

/// The memory of all PEs.
pub struct Memory {
    areas: Vec<Vec<(Address, Box<[Word]>)>>,
    /// A PE that is said to be gone. Its words arrive all the same: they are late.
    gone: Option<usize>,
    missing: Missing,
}

impl Memory {
    /// With these areas for each PE.
    pub fn new(areas: &[&[Area]], gone: Option<usize>, missing: Missing) -> Arc<Self> {
        let zeros = |words| (0..words).map(|_| Word::new(0)).collect();
        let zeroed = |&(at, words): &Area| (at, zeros(words));
        Arc::new(Self {
            areas: areas
                .iter()
                .map(|areas| areas.iter().map(zeroed).collect())
                .collect(),
            gone,
            missing,
        })
    }

    /// The PEs' ends.
    pub fn ends(self: &Arc<Self>) -> Vec<Arc<Modelled>> {
        let end = |pe| Modelled {
            memory: Arc::clone(self),
            pe,
        };
        (0..self.areas.len()).map(|pe| Arc::new(end(pe))).collect()
    }

    /// Words of a PE, if they lie in an area.
    fn find(&self, pe: usize, at: Address, words: usize) -> Option<&[Word]> {
        self.areas[pe].iter().find_map(|(start, area)| {
            let first = at.0.checked_sub(start.0)? as usize;
            area.get(first..first + words)
        })
    }

    fn words(&self, pe: usize, at: Address, words: usize) -> &[Word] {
        let found = self.find(pe, at, words);
        found.unwrap_or_else(|| panic!("the model leaves out {words} words at {at:?} of PE {pe}"))
    }

    fn word(&self, pe: usize, at: Address) -> &Word {
        &self.words(pe, at, 1)[0]
    }
}

/// A PE's end.
pub struct Modelled {
    memory: Arc<Memory>,
    pe: usize,
}

impl Fabric for Modelled {
    fn pe(&self) -> usize {
        self.pe
    }

    fn pes(&self) -> usize {
        self.memory.areas.len()
    }

    fn verified(&self) -> Verified {
        Verified {
            ordered_for_loads: true,
            lands_alone: true,
        }
    }

    fn allocate(&self, _: usize) -> Result<Address, NoMemory> {
        unreachable!("a model names its areas")
    }

    fn local(&self, at: Address, words: usize) -> &[Word] {
        self.memory.words(self.pe, at, words)
    }

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[Word]> {
        // Otherwise all memory can be loaded, also what is left out.
        let is_loadable = pe == self.pe || !self.memory.missing.loads;
        is_loadable.then(|| self.memory.find(pe, at, words).unwrap_or_default())
    }

    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone> {
        let there = self.memory.words(pe, to, words.len());
        for (into, &word) in there.iter().zip(words) {
            // Relaxed: `fence` orders them.
            into.store(word, Ordering::Relaxed);
        }
        Ok(())
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        let there = self.memory.words(pe, from, into.len());
        for (into, word) in into.iter_mut().zip(there) {
            // Relaxed: a Get has no order but by the fence behind it.
            *into = word.load(Ordering::Relaxed);
        }
        // Acquire: pairs with the Release fence of `fence` by a writer one of whose words was read.
        fence(Ordering::Acquire);
        Ok(())
    }

    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone> {
        let (source, there) = (
            self.memory.find(self.pe, from, words),
            self.memory.find(pe, to, words),
        );
        for (word, into) in source
            .into_iter()
            .flatten()
            .zip(there.into_iter().flatten())
        {
            // Relaxed: as in `put`.
            into.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(())
    }

    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone> {
        let mut got = vec![0; words];
        self.get(pe, from, &mut got)?;
        self.put(self.pe, into, &got)
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        let word = self.memory.word(pe, at);
        // SeqCst, here and below: atomic operations across PEs promise one order of all of them, so each is the partner of
        // all others.
        let swapped = word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        Ok(swapped.unwrap_or_else(|found| found))
    }

    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone> {
        // SeqCst: as in `compare_swap`.
        Ok(self.memory.word(pe, at).fetch_add(by, Ordering::SeqCst))
    }

    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone> {
        // SeqCst: as in `compare_swap`.
        Ok(self.memory.word(pe, at).swap(new, Ordering::SeqCst))
    }

    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone> {
        // SeqCst: as in `compare_swap`.
        Ok(self.memory.word(pe, at).load(Ordering::SeqCst))
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        self.put(pe, at, &[word])
    }

    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
        self.put_nbi(pe, to, from, 1)
    }

    fn fence(&self) {
        if !self.memory.missing.fences {
            // Release: pairs with the Acquire fence of `get`.
            fence(Ordering::Release);
        }
    }

    fn quiet(&self) -> Result<(), Gone> {
        self.fence();
        Ok(())
    }

    fn is_gone(&self, pe: usize) -> bool {
        self.memory.gone == Some(pe)
    }

    fn barrier(&self) {
        unreachable!("a model's threads join")
    }

    fn broadcast(&self, _: usize, _: &mut [u64]) {
        unreachable!("a model's PEs share their settings")
    }

    fn pause(&self, attempt: u32) {
        shim::spin(attempt);
    }

    fn doze(&self, _: Duration) {
        shim::yield_now();
    }

    fn nanos(&self) -> u64 {
        0
    }
}
