//! The seeded network: a seed schedules the threads, and draws when each word arrives.
//!
//! Invariants:
//! 1. Of the threads that have entered, only the one that has the turn runs.
//! 2. A word that was sent before a fence arrives before any that the same PE sends to the same PE after it.
//! 3. When `quiet` returns, none of the PE's words is under way.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use nuthatch_base::sync::mutex::{Condvar, Mutex, MutexGuard};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::Network;
use crate::Address;
use crate::fabric::WHOLE;

thread_local! {
    /// This thread's number among those that the seed runs.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The panic payload of a thread whose PE was stopped.
pub struct Stopped;

/// How likely it is, in 256ths, that a word which arrives may be one of a PE that is gone.
const LATE: u32 = 2;

/// The source of a word that is sent.
#[derive(Clone, Copy)]
pub enum Source {
    /// It was read when the call returned.
    Word(u64),
    /// It lies in the sender's memory, and is read when it arrives.
    Memory(Address),
}

/// A word under way, or a part of it.
struct Write {
    to: Address,
    source: Source,
    /// The bits of it that are under way.
    part: u64,
}

/// Words under way to one PE that no fence orders.
struct Group {
    fences: u64,
    words: Vec<Write>,
}

/// A word that is to be read, or a part of it.
struct Read {
    pe: usize,
    from: Address,
    into: Address,
    part: u64,
}

/// The network's state of a PE.
#[derive(Default)]
struct Sender {
    /// The words under way to each PE, grouped by fences.
    writes: Vec<VecDeque<Group>>,
    reads: Vec<Read>,
    /// Words in all writes and reads.
    under_way: usize,
    fences: u64,
    /// A PE with which words of this one were lost.
    lost: Option<usize>,
    calls: u64,
    stop_at: Option<u64>,
}

struct State {
    draw: SmallRng,
    senders: Vec<Sender>,
    /// Threads that run.
    inside: Vec<bool>,
    /// Threads that are still to enter before the run begins.
    missing: usize,
    turn: Option<usize>,
    steps: u64,
    /// Steps after which a run is taken for one without an end.
    steps_max: u64,
}

pub(super) struct Seeded {
    state: Mutex<State>,
    /// Where each thread waits for its turn.
    turns: Vec<Condvar>,
    /// How likely it is, in 256ths, that a turn ends at a call; that a word arrives in a turn; that a Get is torn
    /// between two words.
    switches: u32,
    arrivals: u32,
    tears: u32,
}

/// Replaces a part of a word by the same part of another.
pub(super) fn mixed(old: u64, new: u64, part: u64) -> u64 {
    old & !part | new & part
}

/// The parts in which a word of a copy of `words` words travels: one part, or in a long copy now and then two, cut
/// between any two bytes.
fn parts(draw: &mut SmallRng, words: usize) -> [u64; 2] {
    match words > WHOLE && chance(draw, 32) {
        true => {
            let low = (1 << (8 * draw.random_range(1..8))) - 1;
            [low, !low]
        }
        false => [u64::MAX, 0],
    }
}

/// Ends a thread's part in the seed's run when it drops.
pub struct Entered<'n>(&'n Seeded);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        THREAD.set(None);
        self.0.leave();
    }
}

fn chance(draw: &mut SmallRng, of_256: u32) -> bool {
    draw.random_range(0..256) < of_256
}

impl Seeded {
    pub fn new(pes: usize, threads: usize, seed: u64) -> Self {
        let mut draw = SmallRng::seed_from_u64(seed);
        Self {
            switches: draw.random_range(16..240),
            arrivals: draw.random_range(4..250),
            tears: draw.random_range(8..128),
            turns: (0..threads).map(|_| Condvar::default()).collect(),
            state: Mutex::new(State {
                draw,
                senders: (0..pes)
                    .map(|_| Sender {
                        writes: (0..pes).map(|_| VecDeque::new()).collect(),
                        ..Sender::default()
                    })
                    .collect(),
                inside: vec![false; threads],
                missing: threads,
                turn: None,
                steps: 0,
                steps_max: u64::MAX,
            }),
        }
    }

    pub fn is_inside(&self) -> bool {
        THREAD.get().is_some()
    }

    pub fn enter(&self, thread: usize) -> Entered<'_> {
        THREAD.set(Some(thread));
        let mut state = self.state.lock();
        assert!(!state.inside[thread], "each thread enters once");
        state.inside[thread] = true;
        state.missing -= 1;
        match state.missing {
            0 => self.pass_on(state, Some(thread)),
            _ => drop(self.wait(state, thread)),
        }
        Entered(self)
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        if let Some(thread) = state.turn.take() {
            state.inside[thread] = false;
        }
        self.pass_on(state, None);
    }

    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: usize,
    ) -> MutexGuard<'a, State> {
        while state.turn != Some(thread) {
            state = self.turns[thread].wait(state);
        }
        state
    }

    /// Draws the thread that has the next turn, and waits until it is `thread`'s turn again. A wake is a system call
    /// even if no thread sleeps, so a thread that is awake is not woken, and none is woken while the lock is held, for
    /// which it would sleep again.
    fn pass_on(&self, mut state: MutexGuard<'_, State>, thread: Option<usize>) {
        let inside: Vec<usize> = (0..state.inside.len())
            .filter(|&thread| state.inside[thread])
            .collect();
        if inside.is_empty() {
            state.turn = None;
            return;
        }
        let next = inside[state.draw.random_range(0..inside.len())];
        state.turn = Some(next);
        drop(state);
        if thread != Some(next) {
            self.turns[next].notify_one();
            if let Some(thread) = thread {
                drop(self.wait(self.state.lock(), thread));
            }
        }
    }

    /// One call of a PE: words arrive, and other threads may have their turn.
    pub fn step(&self, network: &Network, pe: usize) {
        let Some(thread) = THREAD.get() else { return };
        let mut state = self.state.lock();
        state.steps += 1;
        assert!(state.steps <= state.steps_max, "the run has no end");
        state.senders[pe].calls += 1;
        while chance(&mut state.draw, self.arrivals) && state.deliver_any(network) {}
        if state.senders[pe].stop_at == Some(state.senders[pe].calls) {
            state.lose_some(pe);
            network.stop(pe);
        }
        if chance(&mut state.draw, self.switches) {
            self.pass_on(state, Some(thread));
        }
    }

    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    pub fn end_after(&self, steps: u64) {
        self.state.lock().steps_max = steps;
    }

    pub fn stop_after(&self, pe: usize, calls: u64) {
        let sender = &mut self.state.lock().senders[pe];
        sender.stop_at = Some(sender.calls + calls);
    }

    /// True if a Get is torn here.
    pub fn tears(&self) -> bool {
        chance(&mut self.state.lock().draw, self.tears)
    }

    /// The parts in which a Get of `words` words reads one.
    pub fn parts(&self, words: usize) -> [u64; 2] {
        parts(&mut self.state.lock().draw, words)
    }

    /// The order in which the words of a Get are read.
    pub fn shuffled(&self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        order.shuffle(&mut self.state.lock().draw);
        order
    }

    pub fn send(
        &self,
        from: usize,
        pe: usize,
        to: Address,
        words: impl ExactSizeIterator<Item = Source>,
    ) {
        let State { senders, draw, .. } = &mut *self.state.lock();
        let sender = &mut senders[from];
        let fences = sender.fences;
        let groups = &mut sender.writes[pe];
        if groups.back().is_none_or(|group| group.fences != fences) {
            groups.push_back(Group {
                fences,
                words: Vec::new(),
            });
        }
        if let Some(group) = groups.back_mut() {
            let (before, len) = (group.words.len(), words.len());
            for (position, source) in words.enumerate() {
                let to = to.plus(position);
                let parts = parts(draw, len).into_iter().filter(|&part| part != 0);
                let writes = parts.map(|part| Write { to, source, part });
                group.words.extend(writes);
            }
            sender.under_way += group.words.len() - before;
        }
    }

    pub fn ask(&self, by: usize, pe: usize, from: Address, into: Address, words: usize) {
        let State { senders, draw, .. } = &mut *self.state.lock();
        let sender = &mut senders[by];
        let before = sender.reads.len();
        for position in 0..words {
            let parts = parts(draw, words).into_iter().filter(|&part| part != 0);
            sender.reads.extend(parts.map(|part| Read {
                pe,
                from: from.plus(position),
                into: into.plus(position),
                part,
            }));
        }
        sender.under_way += sender.reads.len() - before;
    }

    pub fn fence(&self, pe: usize) {
        self.state.lock().senders[pe].fences += 1;
    }

    /// Delivers all of a PE's words, with turns of other threads in between. Returns a PE with which something was
    /// lost.
    pub fn quiet(&self, network: &Network, pe: usize) -> Option<usize> {
        loop {
            let mut state = self.state.lock();
            if state.senders[pe].under_way == 0 {
                return state.senders[pe].lost;
            }
            state.deliver_of(network, pe);
            let pass = chance(&mut state.draw, self.tears);
            drop(state);
            if pass {
                self.step(network, pe);
                if network.is_gone(pe) {
                    return None;
                }
            }
        }
    }
}

impl State {
    /// Delivers a word of any PE. False if none arrives now. Words of a PE that is gone are seldom among those that
    /// arrive: others have the time to find out that it is gone.
    fn deliver_any(&mut self, network: &Network) -> bool {
        let late = chance(&mut self.draw, LATE);
        let busy: Vec<usize> = (0..self.senders.len())
            .filter(|&pe| self.senders[pe].under_way > 0 && (late || !network.is_gone(pe)))
            .collect();
        if busy.is_empty() {
            return false;
        }
        let pe = busy[self.draw.random_range(0..busy.len())];
        self.deliver_of(network, pe);
        true
    }

    /// Delivers one of a PE's words, which there must be.
    fn deliver_of(&mut self, network: &Network, by: usize) {
        let sender = &self.senders[by];
        let drawn = self.draw.random_range(0..sender.under_way);
        if drawn < sender.reads.len() {
            return self.deliver_read(network, by, drawn);
        }
        let targets: Vec<usize> = (0..sender.writes.len())
            .filter(|&pe| !sender.writes[pe].is_empty())
            .collect();
        let pe = targets[self.draw.random_range(0..targets.len())];
        self.deliver_write(network, by, pe);
    }

    fn deliver_read(&mut self, network: &Network, by: usize, position: usize) {
        let sender = &mut self.senders[by];
        let Read {
            pe,
            from,
            into,
            part,
        } = sender.reads.swap_remove(position);
        sender.under_way -= 1;
        match network.is_gone(pe) {
            true => sender.lost = Some(pe),
            false => {
                // Relaxed, here and below: one thread runs at a time, and the turn orders them.
                let word = network.word(pe, from).load(Ordering::Relaxed);
                let into = network.word(by, into);
                let old = into.load(Ordering::Relaxed);
                into.store(mixed(old, word, part), Ordering::Relaxed);
            }
        }
    }

    /// Delivers any of the words to a PE that no fence holds back (invariant 2). There must be some.
    fn deliver_write(&mut self, network: &Network, by: usize, pe: usize) {
        let sender = &mut self.senders[by];
        let Some(group) = sender.writes[pe].front_mut() else {
            return;
        };
        let position = self.draw.random_range(0..group.words.len());
        let Write { to, source, part } = group.words.swap_remove(position);
        if group.words.is_empty() {
            sender.writes[pe].pop_front();
        }
        sender.under_way -= 1;
        match network.is_gone(pe) {
            true => sender.lost = Some(pe),
            false => {
                let word = match source {
                    Source::Word(word) => word,
                    // Relaxed, as above.
                    Source::Memory(from) => network.word(by, from).load(Ordering::Relaxed),
                };
                let into = network.word(pe, to);
                let old = into.load(Ordering::Relaxed);
                into.store(mixed(old, word, part), Ordering::Relaxed);
            }
        }
    }

    /// Of the words that a stopping PE has under way to each PE, those up to a drawn fence arrive later, and some of
    /// those up to the next one (invariant 2); all others are lost.
    fn lose_some(&mut self, pe: usize) {
        let (draw, sender) = (&mut self.draw, &mut self.senders[pe]);
        sender.reads.clear();
        for groups in &mut sender.writes {
            let whole = draw.random_range(0..=groups.len());
            groups.truncate(whole + 1);
            if let Some(group) = groups.get_mut(whole) {
                group.words.retain(|_| chance(draw, 128));
            }
            groups.retain(|group| !group.words.is_empty());
        }
        let words = sender
            .writes
            .iter()
            .flatten()
            .map(|group| group.words.len());
        sender.under_way = words.sum();
    }
}
