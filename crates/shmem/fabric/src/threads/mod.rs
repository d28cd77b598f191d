//! A fabric whose PEs are threads of one process.
//!
//! * [`Network::free`]: threads run as they like, and words arrive at once. For benchmarks, and for a store of several
//!   PEs in one process.
//! * [`Network::lazy`]: the same, but what a non-blocking Get reads lands at `quiet` only, as OpenSHMEM allows.
//! * [`Network::seeded`]: one thread runs at a time, drawn from a seed, and the network delays, reorders and tears all
//!   that OpenSHMEM allows to be, words inside of long copies included. A PE can be stopped at any of its calls. The
//!   same seed gives the same run, as long as the threads' actions follow from what they read.

mod seeded;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::mutex::{Condvar, Mutex};

use crate::{Address, Fabric, Gone, NoMemory, Verified};
pub use seeded::{Entered, Stopped};
use seeded::{Seeded, Source, mixed};

/// Attempts of a wait that spin; longer waits sleep until a word arrives, or for a nap.
const SPINS: u32 = 64;
const NAP: Duration = Duration::from_millis(1);

/// Where a PE's threads wait for words.
#[derive(Default)]
struct Waiting {
    /// Counts words that were set or signalled.
    arrivals: AtomicU64,
    /// The count that the last attempt of a wait saw.
    seen: AtomicU64,
    asleep: AtomicUsize,
    lock: Mutex<()>,
    awake: Condvar,
}

impl Waiting {
    /// Notes that a word has arrived, and wakes the threads that sleep.
    fn tell(&self) {
        // SeqCst, here and below: either the waiter sees the arrival, or this thread sees the waiter asleep.
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            let _guard = self.lock.lock();
            self.awake.notify_all();
        }
    }

    /// Sleeps unless something has arrived since the last call. (If a PE has several threads, one may miss an arrival
    /// that another has seen: then it sleeps for a nap.)
    fn sleep(&self) {
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        if self.seen.swap(arrivals, Ordering::SeqCst) != arrivals {
            return;
        }
        let guard = self.lock.lock();
        self.asleep.fetch_add(1, Ordering::SeqCst);
        if self.arrivals.load(Ordering::SeqCst) == arrivals {
            drop(self.awake.wait_for(guard, NAP));
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the PEs share.
pub struct Network {
    memories: Vec<Mapped<AtomicU64>>,
    gone: Vec<AtomicBool>,
    waiting: Vec<Waiting>,
    /// Calls of [`Fabric::barrier`] by all PEs.
    arrived: AtomicUsize,
    /// What is being broadcast.
    board: Mutex<Vec<u64>>,
    started: Instant,
    /// Non-blocking Gets land at `quiet` only.
    is_lazy: bool,
    seeded: Option<Seeded>,
}

impl Network {
    /// A network of `pes` PEs, each with room for `words` words; words cost memory when they are touched. Panics if
    /// there is no address space for them.
    pub fn free(pes: usize, words: usize) -> Arc<Self> {
        Arc::new(Self::new(pes, words, None))
    }

    /// The same, but what [`Fabric::get_nbi`] reads lands at [`Fabric::quiet`] only.
    pub fn lazy(pes: usize, words: usize) -> Arc<Self> {
        Arc::new(Self {
            is_lazy: true,
            ..Self::new(pes, words, None)
        })
    }

    /// A free one, run by a seed. It begins to run when `threads` threads have [entered](ThreadsFabric::enter); calls of
    /// threads that have not entered are carried out at once.
    pub fn seeded(pes: usize, words: usize, threads: usize, seed: u64) -> Arc<Self> {
        Arc::new(Self::new(pes, words, Some(Seeded::new(pes, threads, seed))))
    }

    fn new(pes: usize, words: usize, seeded: Option<Seeded>) -> Self {
        let memory = |_| Mapped::reserve(words).expect("address space for symmetric memory");
        Self {
            memories: (0..pes).map(memory).collect(),
            gone: (0..pes).map(|_| AtomicBool::new(false)).collect(),
            waiting: (0..pes).map(|_| Waiting::default()).collect(),
            arrived: AtomicUsize::new(0),
            board: Mutex::new(Vec::new()),
            started: Instant::now(),
            is_lazy: false,
            seeded,
        }
    }

    /// The ends of all PEs, in order.
    pub fn ends(self: &Arc<Self>) -> Vec<Arc<ThreadsFabric>> {
        let end = |pe| ThreadsFabric {
            network: Arc::clone(self),
            pe,
            allocated: AtomicUsize::new(0),
            barriers: AtomicUsize::new(0),
            asked: Mutex::default(),
        };
        (0..self.memories.len())
            .map(|pe| Arc::new(end(pe)))
            .collect()
    }

    /// Stops a PE: its threads end at their next call, by unwinding with [`Stopped`], and others' calls report that it
    /// is gone.
    pub fn stop(&self, pe: usize) {
        // SeqCst: the flag stands alone; no other read depends on it.
        self.gone[pe].store(true, Ordering::SeqCst);
    }

    /// Stops a PE at its `calls`th call from now on. Of its words under way at that moment, some arrive and some do
    /// not. Panics unless the network is seeded.
    pub fn stop_after(&self, pe: usize, calls: u64) {
        let seeded = self
            .seeded
            .as_ref()
            .expect("only a seeded network counts calls");
        seeded.stop_after(pe, calls);
    }

    /// Makes threads panic if they make more calls than this, all threads together: a run that does not end is a fault,
    /// too. Panics unless the network is seeded.
    pub fn end_after(&self, calls: u64) {
        let seeded = self.seeded.as_ref();
        seeded
            .expect("only a seeded network counts calls")
            .end_after(calls);
    }

    fn is_gone(&self, pe: usize) -> bool {
        self.gone[pe].load(Ordering::SeqCst)
    }

    fn word(&self, pe: usize, at: Address) -> &AtomicU64 {
        &self.memories[pe][at.0 as usize]
    }
}

/// A PE's end of the network.
pub struct ThreadsFabric {
    network: Arc<Network>,
    pe: usize,
    allocated: AtomicUsize,
    /// Barriers that this PE has passed.
    barriers: AtomicUsize,
    /// Of a lazy network: Gets that have not landed.
    asked: Mutex<Vec<Asked>>,
}

/// A non-blocking Get.
struct Asked {
    pe: usize,
    from: Address,
    into: Address,
    words: usize,
}

impl ThreadsFabric {
    /// Makes the calling thread the `thread`th that the seed runs, and waits for its first turn. Until the guard
    /// drops the thread must not wait for other threads but by [`Fabric::pause`]. Panics unless the network is seeded.
    pub fn enter(&self, thread: usize) -> Entered<'_> {
        let seeded = self.network.seeded.as_ref();
        seeded
            .expect("only a seeded network has turns")
            .enter(thread)
    }

    /// Gives the seed a chance to switch threads, if this thread runs by one; a thread of a stopped PE ends here.
    fn step(&self, pe: usize) -> Result<Option<&Seeded>, Gone> {
        let network = &*self.network;
        let seeded = network.seeded.as_ref().filter(|seeded| seeded.is_inside());
        if let Some(seeded) = seeded {
            seeded.step(network, self.pe);
        }
        if network.is_gone(self.pe) {
            std::panic::resume_unwind(Box::new(Stopped));
        }
        match network.is_gone(pe) {
            true => Err(Gone { pe }),
            false => Ok(seeded),
        }
    }

    /// The word of an atomic operation.
    fn atomic(&self, pe: usize, at: Address) -> Result<&AtomicU64, Gone> {
        self.step(pe)?;
        Ok(self.network.word(pe, at))
    }

    fn send(
        &self,
        pe: usize,
        to: Address,
        words: impl ExactSizeIterator<Item = u64>,
    ) -> Result<(), Gone> {
        match self.step(pe)? {
            Some(seeded) => seeded.send(self.pe, pe, to, words.map(Source::Word)),
            None => self.store(pe, to, words),
        }
        Ok(())
    }

    /// Has what a Get reads land.
    fn land(&self, asked: &Asked) {
        let source = &self.network.memories[asked.pe][asked.from.0 as usize..][..asked.words];
        for (into, word) in self.local(asked.into, asked.words).iter().zip(source) {
            // Relaxed: `quiet` orders them.
            into.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Stores words at once.
    fn store(&self, pe: usize, to: Address, words: impl ExactSizeIterator<Item = u64>) {
        let target = &self.network.memories[pe][to.0 as usize..][..words.len()];
        for (word, value) in target.iter().zip(words) {
            // Relaxed: `fence` and `quiet` order them.
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl Fabric for ThreadsFabric {
    fn pe(&self) -> usize {
        self.pe
    }

    fn pes(&self) -> usize {
        self.network.memories.len()
    }

    fn verified(&self) -> Verified {
        Verified {
            // A Put is stored by the caller's thread, and `fence` is a Release fence.
            ordered_for_loads: self.network.seeded.is_none(),
            lands_alone: !self.network.is_lazy,
        }
    }

    fn allocate(&self, words: usize) -> Result<Address, NoMemory> {
        let at = self.allocated.load(Ordering::Relaxed);
        let end = at.checked_add(words.next_multiple_of(8));
        match end.filter(|&end| end <= self.network.memories[self.pe].len()) {
            Some(end) => {
                self.allocated.store(end, Ordering::Relaxed);
                Ok(Address(at as u64))
            }
            None => Err(NoMemory {
                words,
                advice: "the network was made with less".into(),
            }),
        }
    }

    fn local(&self, at: Address, words: usize) -> &[AtomicU64] {
        &self.network.memories[self.pe][at.0 as usize..][..words]
    }

    fn direct(&self, pe: usize, at: Address, words: usize) -> Option<&[AtomicU64]> {
        // Loads and stores would bypass a seeded network's delays.
        let reachable = self.network.seeded.is_none() && !self.network.is_gone(pe);
        reachable.then(|| &self.network.memories[pe][at.0 as usize..][..words])
    }

    fn put(&self, pe: usize, to: Address, words: &[u64]) -> Result<(), Gone> {
        self.send(pe, to, words.iter().copied())
    }

    fn get(&self, pe: usize, from: Address, into: &mut [u64]) -> Result<(), Gone> {
        match self.step(pe)? {
            Some(seeded) => {
                for position in seeded.shuffled(into.len()) {
                    // Relaxed: one thread runs at a time, and the turn orders them.
                    let word = self.network.word(pe, from.plus(position));
                    for part in seeded.parts(into.len()) {
                        if part != 0 {
                            let read = word.load(Ordering::Relaxed);
                            into[position] = mixed(into[position], read, part);
                        }
                        if seeded.tears() {
                            self.step(pe)?;
                        }
                    }
                }
            }
            None => {
                let source = &self.network.memories[pe][from.0 as usize..][..into.len()];
                for (into, word) in into.iter_mut().zip(source) {
                    // Relaxed: the fence below orders them.
                    *into = word.load(Ordering::Relaxed);
                }
                // Acquire: pairs with the Release fence of a writer one of whose words was read.
                fence(Ordering::Acquire);
            }
        }
        Ok(())
    }

    fn put_nbi(&self, pe: usize, to: Address, from: Address, words: usize) -> Result<(), Gone> {
        match self.step(pe)? {
            Some(seeded) => {
                let sources = (0..words).map(|at| Source::Memory(from.plus(at)));
                seeded.send(self.pe, pe, to, sources);
            }
            None => {
                let source = self.local(from, words).iter();
                self.store(pe, to, source.map(|word| word.load(Ordering::Relaxed)));
            }
        }
        Ok(())
    }

    fn get_nbi(&self, pe: usize, from: Address, into: Address, words: usize) -> Result<(), Gone> {
        match self.step(pe)? {
            Some(seeded) => seeded.ask(self.pe, pe, from, into, words),
            None => {
                let asked = Asked {
                    pe,
                    from,
                    into,
                    words,
                };
                match self.network.is_lazy {
                    true => self.asked.lock().push(asked),
                    false => self.land(&asked),
                }
            }
        }
        Ok(())
    }

    fn compare_swap(&self, pe: usize, at: Address, expected: u64, new: u64) -> Result<u64, Gone> {
        let word = self.atomic(pe, at)?;
        // SeqCst, here and below: atomic operations across PEs promise one order of all of them.
        let swapped = word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        Ok(swapped.unwrap_or_else(|found| found))
    }

    fn fetch_add(&self, pe: usize, at: Address, by: u64) -> Result<u64, Gone> {
        Ok(self.atomic(pe, at)?.fetch_add(by, Ordering::SeqCst))
    }

    fn swap(&self, pe: usize, at: Address, new: u64) -> Result<u64, Gone> {
        Ok(self.atomic(pe, at)?.swap(new, Ordering::SeqCst))
    }

    fn fetch(&self, pe: usize, at: Address) -> Result<u64, Gone> {
        Ok(self.atomic(pe, at)?.load(Ordering::SeqCst))
    }

    fn set(&self, pe: usize, at: Address, word: u64) -> Result<(), Gone> {
        self.send(pe, at, std::iter::once(word))?;
        self.network.waiting[pe].tell();
        Ok(())
    }

    fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
        self.put_nbi(pe, to, from, 1)?;
        self.network.waiting[pe].tell();
        Ok(())
    }

    fn is_gone(&self, pe: usize) -> bool {
        self.network.is_gone(pe)
    }

    fn fence(&self) {
        let seeded = self.network.seeded.as_ref();
        if let Some(seeded) = seeded.filter(|seeded| seeded.is_inside()) {
            seeded.fence(self.pe);
        }
        // Release: pairs with the Acquire fence of a reader that sees a word sent after it.
        fence(Ordering::Release);
    }

    fn quiet(&self) -> Result<(), Gone> {
        let lost = match self.step(self.pe)? {
            Some(seeded) => seeded.quiet(&self.network, self.pe),
            None => {
                self.asked
                    .lock()
                    .drain(..)
                    .for_each(|asked| self.land(&asked));
                None
            }
        };
        fence(Ordering::SeqCst);
        lost.map_or(Ok(()), |pe| Err(Gone { pe }))
    }

    fn barrier(&self) {
        let _ = self.quiet();
        let round = self.barriers.fetch_add(1, Ordering::Relaxed) + 1;
        self.network.arrived.fetch_add(1, Ordering::SeqCst);
        let mut attempt = 0;
        while self.network.arrived.load(Ordering::SeqCst) < round * self.pes() {
            self.pause(attempt);
            attempt += 1;
        }
    }

    fn broadcast(&self, root: usize, words: &mut [u64]) {
        if self.pe == root {
            *self.network.board.lock() = words.to_vec();
        }
        self.barrier();
        words.copy_from_slice(&self.network.board.lock());
        self.barrier();
    }

    fn pause(&self, attempt: u32) {
        match self.step(self.pe) {
            Ok(Some(_)) => {}
            _ if attempt < SPINS => std::hint::spin_loop(),
            _ => self.network.waiting[self.pe].sleep(),
        }
    }

    fn doze(&self, _: Duration) {
        // Until a word arrives, or a millisecond.
        self.pause(u32::MAX);
    }

    fn nanos(&self) -> u64 {
        match &self.network.seeded {
            Some(seeded) => seeded.steps() * 100,
            None => self.network.started.elapsed().as_nanos() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Runs `work` on each PE's thread of a seeded network.
    fn run(pes: usize, seed: u64, work: impl Fn(&ThreadsFabric) + Sync) -> Arc<Network> {
        let network = Network::seeded(pes, 64, pes, seed);
        let ends = network.ends();
        thread::scope(|scope| {
            for end in &ends {
                let work = &work;
                scope.spawn(move || {
                    let _entered = end.enter(end.pe());
                    work(end);
                });
            }
        });
        network
    }

    #[test]
    fn without_a_fence_two_puts_are_seen_in_any_order() {
        let torn = (0..2000).filter(|&seed| {
            let seen = AtomicBool::new(false);
            run(2, seed, |end| match end.pe() {
                0 => {
                    end.put(1, Address(0), &[1]).unwrap();
                    end.put(1, Address(1), &[1]).unwrap();
                    end.quiet().unwrap();
                }
                _ => {
                    for turn in 0..100 {
                        let words = end.local(Address(0), 2);
                        if words[1].load(Ordering::Relaxed) == 1 {
                            let behind = words[0].load(Ordering::Relaxed) == 0;
                            seen.fetch_or(behind, Ordering::Relaxed);
                            break;
                        }
                        end.pause(turn);
                    }
                }
            });
            seen.into_inner()
        });
        assert!(torn.count() > 5);
    }

    /// True if a reader sees a word that is neither old nor new while a copy of `len` words replaces it.
    fn tears_words(len: usize) -> bool {
        (0..300).any(|seed| {
            let torn = AtomicBool::new(false);
            let note = |words: &[u64]| {
                let is_torn = |&word: &u64| word != 0 && word != u64::MAX;
                torn.fetch_or(words.iter().any(is_torn), Ordering::Relaxed);
            };
            let network = Network::seeded(2, 512, 2, seed);
            let ends = network.ends();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _entered = ends[0].enter(0);
                    ends[0].put(1, Address(0), &vec![u64::MAX; len]).unwrap();
                    ends[0].quiet().unwrap();
                });
                scope.spawn(|| {
                    let _entered = ends[1].enter(1);
                    let mut words = vec![0; len];
                    for _ in 0..4 {
                        ends[1].get(1, Address(0), &mut words).unwrap();
                        note(&words);
                    }
                });
            });
            torn.into_inner()
        })
    }

    #[test]
    fn words_are_torn_in_long_copies_only() {
        assert!(tears_words(crate::fabric::WHOLE + 1));
        assert!(!tears_words(crate::fabric::WHOLE));
    }

    #[test]
    fn a_put_without_waiting_reads_its_source_late() {
        let late = (0..200).filter(|&seed| {
            let network = run(2, seed, |end| {
                if end.pe() == 0 {
                    let source = &end.local(Address(8), 1)[0];
                    source.store(1, Ordering::Relaxed);
                    end.put_nbi(1, Address(0), Address(8), 1).unwrap();
                    // A fault of the caller: the source must stay as it is until `quiet`.
                    source.store(2, Ordering::Relaxed);
                    end.quiet().unwrap();
                }
            });
            network.word(1, Address(0)).load(Ordering::Relaxed) == 2
        });
        assert!(late.count() > 5);
    }

    #[test]
    fn a_fence_orders_puts_and_quiet_ends_them() {
        for seed in 0..300 {
            run(2, seed, |end| match end.pe() {
                0 => {
                    for round in 1..5 {
                        end.put(1, Address(0), &[round; 8]).unwrap();
                        end.fence();
                        end.set(1, Address(8), round).unwrap();
                        end.fence();
                    }
                    end.quiet().unwrap();
                    let mut words = [0; 9];
                    end.get(1, Address(0), &mut words).unwrap();
                    assert_eq!(words, [4; 9]);
                }
                _ => {
                    for turn in 0..50 {
                        let words = end.local(Address(0), 9);
                        let last = words[8].load(Ordering::Relaxed);
                        let all = words[..8]
                            .iter()
                            .all(|word| word.load(Ordering::Relaxed) >= last);
                        assert!(all, "seed {seed}");
                        end.pause(turn);
                    }
                }
            });
        }
    }

    #[test]
    fn a_seed_gives_the_same_run() {
        let history = |seed| {
            let log = Mutex::new(Vec::new());
            run(3, seed, |end| {
                for round in 0..20 {
                    let sum = end.fetch_add(0, Address(0), round).unwrap();
                    log.lock().push((end.pe(), sum));
                }
            });
            log.lock().clone()
        };
        assert_eq!(history(7), history(7));
        assert_ne!(history(7), history(8));
    }

    #[test]
    fn a_stopped_pe_ends_and_others_are_told() {
        let network = Network::seeded(2, 64, 2, 3);
        network.stop_after(0, 5);
        let ends = network.ends();
        thread::scope(|scope| {
            let stopped = scope.spawn(|| {
                let _entered = ends[0].enter(0);
                loop {
                    let _ = ends[0].fetch_add(1, Address(0), 1);
                }
            });
            let other = scope.spawn(|| {
                let _entered = ends[1].enter(1);
                while ends[1].get(0, Address(0), &mut [0]).is_ok() {}
                ends[1].put(0, Address(0), &[1])
            });
            let unwound: Result<(), _> = stopped.join();
            assert!(unwound.expect_err("it is stopped").is::<Stopped>());
            assert_eq!(other.join().unwrap(), Err(Gone { pe: 0 }));
        });
    }

    #[test]
    fn what_was_lost_with_a_pe_is_said_at_every_quiet() {
        for seed in 0..20 {
            let network = Network::seeded(3, 64, 1, seed);
            let ends = network.ends();
            let _entered = ends[0].enter(0);
            for pe in [1, 2] {
                ends[0].put(pe, Address(0), &[1; 64]).unwrap();
            }
            (1..3).for_each(|pe| network.stop(pe));
            let said: Vec<_> = (0..3).map(|_| ends[0].quiet()).collect();
            assert!(said.iter().all(Result::is_err), "seed {seed}: {said:?}");
        }
    }

    #[test]
    fn a_free_network_agrees() {
        let network = Network::free(4, 1024);
        let ends = network.ends();
        thread::scope(|scope| {
            for end in &ends {
                scope.spawn(move || {
                    let at = end.allocate(16).unwrap();
                    for _ in 0..1000 {
                        end.fetch_add(2, at, 1).unwrap();
                    }
                    let mut words = [end.pe() as u64; 2];
                    end.broadcast(3, &mut words);
                    assert_eq!(words, [3; 2]);
                    assert_eq!(end.fetch(2, at), Ok(4000));
                    assert!(end.allocate(2000).is_err());
                });
            }
        });
    }
}
