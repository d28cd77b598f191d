//! Messages between a session and a server, in symmetric memory.
//!
//! ```text
//!  sender's PE                                   receiver's PE
//!    taken  <---------------------- set ---------  (how far it has read)
//!    staged words  ===== one Put of many ======>   words
//!                  ----- fence, set ----------->   sent
//! ```
//!
//! As in CPHash's rings, many messages travel in one transfer, and each side keeps its own position. There is one
//! shared word a direction instead of a mark in each line: the words of a Put arrive in any order, so a mark in a
//! line would not say that the line is whole.
//!
//! Positions count words and never wrap. Invariants:
//! 1. `taken <= sent <= staged <= taken + RING`: what is on its way is not staged over.
//! 2. `sent` is set behind a fence after its words were put: who reads it reads them.
//! 3. A message's first word has its length in its upper half.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, Gone};

use crate::layout::{LINE, RING};

/// The longest message, in words. So there is room for another while one is acknowledged late.
pub const MESSAGE_MAX: usize = RING / 4;

/// The first word of a message.
pub fn first_word(words: usize, rest: u32) -> u64 {
    (words as u64) << 32 | u64::from(rest)
}

/// The end that sends.
pub struct Sender {
    peer: usize,
    /// The peer's area.
    theirs: Address,
    /// Our area, where messages are staged.
    ours: Address,
    staged: u64,
    sent: u64,
}

impl Sender {
    /// To a peer's area; messages are staged in `ours`.
    pub fn new(peer: usize, theirs: Address, ours: Address) -> Self {
        Self {
            peer,
            theirs,
            ours,
            staged: 0,
            sent: 0,
        }
    }

    /// True if a message of so many words can be staged.
    #[inline]
    pub fn has_room(&self, fabric: &impl Fabric, words: usize) -> bool {
        // Acquire: pairs with the peer's `set`, which comes behind its reads of the words.
        let taken = fabric.local(self.ours, 1)[0].load(Ordering::Acquire);
        self.staged + words as u64 <= taken + RING as u64
    }

    /// Stages a message, whose first word is [`first_word`]. There must be room.
    #[inline]
    pub fn stage(&mut self, fabric: &impl Fabric, message: &[u64]) {
        debug_assert!(message.len() <= MESSAGE_MAX && self.has_room(fabric, message.len()));
        let ring = fabric.local(self.ours.plus(LINE), RING);
        for &word in message {
            // Relaxed: only this end looks at them, and the fabric when it is called.
            ring[self.staged as usize % RING].store(word, Ordering::Relaxed);
            self.staged += 1;
        }
    }

    /// Sends what is staged.
    pub fn flush(&mut self, fabric: &impl Fabric) -> Result<(), Gone> {
        if self.sent == self.staged {
            return Ok(());
        }
        while self.sent < self.staged {
            let start = self.sent as usize % RING;
            let words = ((self.staged - self.sent) as usize).min(RING - start);
            let (to, from) = (self.theirs.plus(LINE + start), self.ours.plus(LINE + start));
            fabric.put_nbi(self.peer, to, from, words)?;
            self.sent += words as u64;
        }
        fabric.fence();
        fabric.set(self.peer, self.theirs, self.sent)
    }
}

/// The end that receives.
pub struct Receiver {
    peer: usize,
    ours: Address,
    /// The peer's area, where it stages.
    theirs: Address,
    taken: u64,
    told: u64,
}

impl Receiver {
    /// From a peer, which stages in `theirs`; messages arrive in `ours`.
    pub fn new(peer: usize, ours: Address, theirs: Address) -> Self {
        Self {
            peer,
            ours,
            theirs,
            taken: 0,
            told: 0,
        }
    }

    /// True if a message has arrived.
    #[inline]
    pub fn has_message(&self, fabric: &impl Fabric) -> bool {
        // Acquire: pairs with the `set` in `flush`, which comes behind the words (invariant 2).
        fabric.local(self.ours, 1)[0].load(Ordering::Acquire) != self.taken
    }

    /// Copies the next message, if one has arrived. It stays until [`Receiver::take`].
    #[inline]
    pub fn read(&self, fabric: &impl Fabric, into: &mut Vec<u64>) -> bool {
        if !self.has_message(fabric) {
            return false;
        }
        let ring = fabric.local(self.ours.plus(LINE), RING);
        // Relaxed: ordered by the load in `has_message`.
        let word = |at: u64| ring[at as usize % RING].load(Ordering::Relaxed);
        let words = (word(self.taken) >> 32) as usize;
        assert!((1..=MESSAGE_MAX).contains(&words), "a peer sent no message");
        into.clear();
        into.extend((self.taken..self.taken + words as u64).map(word));
        true
    }

    /// Takes the message that was read, of so many words, out of the ring.
    #[inline]
    pub fn take(&mut self, words: usize) {
        self.taken += words as u64;
    }

    /// Tells the sender how far messages were taken, if that is far enough to be worth it.
    pub fn acknowledge(&mut self, fabric: &impl Fabric) -> Result<(), Gone> {
        if self.taken - self.told < RING as u64 / 4 {
            return Ok(());
        }
        self.told = self.taken;
        // The words were read before: their loads gave what the caller has acted on.
        fabric.fence();
        fabric.set(self.peer, self.theirs, self.taken)
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_fabric::threads::Network;

    use super::*;

    /// Sends numbered messages of any length through a seeded network, and takes them.
    #[test]
    fn messages_arrive_whole_and_in_order() {
        for seed in 0..10 {
            let network = Network::seeded(2, 2 * (LINE + RING), 2, seed);
            let ends = network.ends();
            let (send, receive) = (Address(0), Address((LINE + RING) as u64));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _entered = ends[0].enter(0);
                    let mut sender = Sender::new(1, receive, send);
                    for number in 0..100_u64 {
                        let words = 1 + (number * 37) as usize % (MESSAGE_MAX / 4);
                        let mut attempt = 0;
                        while !sender.has_room(&*ends[0], words) {
                            ends[0].pause(attempt);
                            attempt += 1;
                        }
                        let mut message = vec![number; words];
                        message[0] = first_word(words, number as u32);
                        sender.stage(&*ends[0], &message);
                        if number % 3 == 0 || !sender.has_room(&*ends[0], MESSAGE_MAX) {
                            sender.flush(&*ends[0]).unwrap();
                        }
                    }
                    sender.flush(&*ends[0]).unwrap();
                    ends[0].quiet().unwrap();
                });
                scope.spawn(|| {
                    let _entered = ends[1].enter(1);
                    let mut receiver = Receiver::new(0, receive, send);
                    let mut message = Vec::new();
                    for number in 0..100_u64 {
                        let mut attempt = 0;
                        while !receiver.read(&*ends[1], &mut message) {
                            ends[1].pause(attempt);
                            attempt += 1;
                        }
                        assert_eq!(message[0] as u32 as u64, number, "seed {seed}");
                        assert!(
                            message[1..].iter().all(|&word| word == number),
                            "seed {seed}"
                        );
                        receiver.take(message.len());
                        receiver.acknowledge(&*ends[1]).unwrap();
                    }
                    ends[1].quiet().unwrap();
                });
            });
        }
    }
}
