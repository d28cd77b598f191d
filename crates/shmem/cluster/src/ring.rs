//! Messages between a session and a server, in symmetric memory.
//!
//! ```text
//!  sender's PE                                   receiver's PE
//!    taken  <----------- fence, signal ---------   (how far it has read)
//!    staged words  ===== one Put of many ======>   words
//!                  ----- fence, signal -------->   sent
//! ```
//!
//! No step waits for the peer: a server sends to PEs that stand still, too, and serves the others meanwhile. So words
//! that were sent may still lie in the sender's memory, and are read when they go out. The sender overwrites nothing
//! before it has arrived. That holds for the words of messages and for the positions that are signalled.
//!
//! As in CPHash's rings, many messages travel in one transfer, and each side keeps its own position. There is one
//! shared word a direction instead of a mark in each line: the words of a Put arrive in any order, so a mark in a
//! line would not say that the line is whole.
//!
//! Positions count words and never wrap. Invariants:
//! 1. `taken <= sent <= staged <= taken + RING`: words that are on their way are not overwritten.
//! 2. `sent` is signalled behind a fence after its words were put: a reader that sees it sees them.
//! 3. A message's first word has its length in its upper half. A reader that meets words that cannot be a message, or
//!    an impossible position, reads no further ([`Broken`]): it cannot know where the next message begins.
//! 4. A position is signalled from a word that no other position on its way uses. `sent = S` uses the word S modulo
//!    RING, which the position S + RING uses next. That position is staged when S is taken. By then S has arrived,
//!    because fences keep positions in order. Each `taken` is at least a quarter of the ring above the one before it.
//!    With [`TOLD`] words used in turn, a receiver that signals T has read beyond what could be sent before the signal
//!    TOLD earlier had arrived.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, Gone};

use crate::layout::{LINE, RING};

/// Words from which a receiver signals how far it has read: the last ones of its line.
const TOLD: usize = 4;

/// How many words are read, at least, between two such signals.
const STRIDE: u64 = (RING / TOLD) as u64;

/// The longest message, in words. So there is room for another while one is acknowledged late.
pub const MESSAGE_MAX: usize = RING / 4;

/// The first word of a message.
pub fn first_word(words: usize, rest: u32) -> u64 {
    (words as u64) << 32 | u64::from(rest)
}

/// The words in a ring are not what a peer sends: a PE has written over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

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

    /// True if a message of `words` words can be staged.
    #[inline]
    pub fn has_room(&self, fabric: &impl Fabric, words: usize) -> bool {
        // Acquire: pairs with the peer's `signal`, which comes behind its reads of the words.
        let taken = fabric.local(self.ours, 1)[0].load(Ordering::Acquire);
        // Saturating: it is the peer's word.
        self.staged + words as u64 <= taken.saturating_add(RING as u64)
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
        let told = self.ours.plus(LINE + RING + self.sent as usize % RING);
        // Relaxed: the fabric reads the word when it is called. The word is free (invariant 4).
        fabric.local(told, 1)[0].store(self.sent, Ordering::Relaxed);
        fabric.fence();
        fabric.signal(self.peer, self.theirs, told)
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
    /// How many positions were signalled.
    times: usize,
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
            times: 0,
        }
    }

    /// True if a message has arrived.
    #[inline]
    pub fn has_message(&self, fabric: &impl Fabric) -> bool {
        self.arrived(fabric) != 0
    }

    /// How many words have arrived that were not taken; more than a ring has if the position is invalid.
    #[inline]
    fn arrived(&self, fabric: &impl Fabric) -> u64 {
        // Acquire: pairs with the `signal` in `flush`, which comes behind the words (invariant 2).
        let sent = fabric.local(self.ours, 1)[0].load(Ordering::Acquire);
        sent.wrapping_sub(self.taken)
    }

    /// Copies the next message, if one has arrived. It stays until [`Receiver::take`].
    #[inline]
    pub fn read(&self, fabric: &impl Fabric, into: &mut Vec<u64>) -> Result<bool, Broken> {
        let arrived = self.arrived(fabric);
        if arrived == 0 {
            return Ok(false);
        }
        let ring = fabric.local(self.ours.plus(LINE), RING);
        // Relaxed: ordered by the load in `arrived`.
        let word = |at: u64| ring[at as usize % RING].load(Ordering::Relaxed);
        let words = word(self.taken) >> 32;
        let most = arrived.min(MESSAGE_MAX as u64);
        if arrived > RING as u64 || !(1..=most).contains(&words) {
            return Err(Broken);
        }
        into.clear();
        into.extend((self.taken..self.taken + words).map(word));
        Ok(true)
    }

    /// Takes the message that was read, of `words` words, out of the ring.
    #[inline]
    pub fn take(&mut self, words: usize) {
        self.taken += words as u64;
    }

    /// Signals to the sender how far messages were taken, if that is far enough to be worth a signal.
    pub fn acknowledge(&mut self, fabric: &impl Fabric) -> Result<(), Gone> {
        if self.taken - self.told < STRIDE {
            return Ok(());
        }
        self.told = self.taken;
        let told = self.ours.plus(LINE - TOLD + self.times % TOLD);
        self.times += 1;
        // Relaxed: as in `flush`. The word is free (invariant 4).
        fabric.local(told, 1)[0].store(self.taken, Ordering::Relaxed);
        // The words were read before: their loads gave what the caller has acted on.
        fabric.fence();
        fabric.signal(self.peer, self.theirs, told)
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
            let network = Network::seeded(2, 2 * LINE + 3 * RING, 2, seed);
            let ends = network.ends();
            let (send, receive) = (Address(0), Address((LINE + 2 * RING) as u64));
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
                        while !receiver.read(&*ends[1], &mut message).unwrap() {
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

    #[test]
    fn what_is_no_message_is_not_read() {
        let ends = Network::free(2, 2 * LINE + 3 * RING).ends();
        let (send, receive) = (Address(0), Address((LINE + 2 * RING) as u64));
        let receiver = Receiver::new(0, receive, send);
        let mut message = Vec::new();
        let mut read = |sent: u64, words: usize| {
            let store = |at: Address, word| ends[1].local(at, 1)[0].store(word, Ordering::Relaxed);
            store(receive, sent);
            store(receive.plus(LINE), first_word(words, 0));
            receiver.read(&*ends[1], &mut message)
        };
        assert_eq!(read(4, 4), Ok(true));
        assert_eq!(read(RING as u64, MESSAGE_MAX), Ok(true));
        assert_eq!(read(0, 4), Ok(false));
        for (sent, words) in [
            (4, 0),
            // More than was sent, and than any message has.
            (4, 5),
            (RING as u64, MESSAGE_MAX + 1),
            // Positions that cannot be.
            (RING as u64 + 1, 4),
            (u64::MAX, 4),
        ] {
            assert_eq!(read(sent, words), Err(Broken), "{sent} {words}");
        }
    }

    #[test]
    fn a_position_that_cannot_be_is_added_to_without_overflow() {
        let ends = Network::free(2, 2 * LINE + 3 * RING).ends();
        let (send, receive) = (Address(0), Address((LINE + 2 * RING) as u64));
        let sender = Sender::new(1, receive, send);
        ends[0].local(send, 1)[0].store(u64::MAX, Ordering::Relaxed);
        assert!(sender.has_room(&*ends[0], 1));
    }
}
