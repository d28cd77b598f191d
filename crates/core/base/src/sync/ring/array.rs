//! The array of buffers (CPHash section 3.4): a ring with several message lines under way in each direction.
//!
//! ```text
//!  client                                shared                            server
//!
//!  staged line  -- full, or flushed -->  messages: 8 lines   ---------->  reads a line, frees it
//!  next slot, owed                       answers:  8 lines   <----------  staged answers
//! ```
//!
//! There is no shared read or write index: each side remembers its own position in both arrays, and
//! word 0 of a line tells whether it is full (see [`line`](super::Line)). A line of messages and
//! the line of their answers are all that moves between the cores.
//!
//! Invariants:
//! 1. Lines are filled and taken in ring order, so messages and answers keep theirs.
//! 2. A line of answers is sent when it is full, or when the server ends its turn, and it may end its turn after any
//!    line of messages: so `n` message lines cause at most `n` answer lines.
//! 3. The client keeps at most [`ANSWER_LINES`] message lines with missing answers under way. So by invariant 2 the
//!    slots for the server's next answers are free, and the server does not check: the client freed them before it
//!    published the message lines that are answered there.
//!    client freed it happened before the client published the message line that is answered there.

use std::sync::Arc;

use super::line::{SharedLine, WORDS};
use super::{Counts, Full, Line, Message, Receiver, RingKind, Sender, Word};

/// Message lines of a ring. (The paper's code has 4; the paper reports that more are better.)
pub const MESSAGE_LINES: usize = if cfg!(loom) { 2 } else { 8 };

/// Answer lines of a ring: the paper's 64 words.
pub const ANSWER_LINES: usize = if cfg!(loom) { 2 } else { 8 };

/// The array of buffers.
#[derive(Debug)]
pub struct Array;

impl RingKind for Array {
    const NAME: &'static str = "array";
    type Sender = ArraySender;
    type Receiver = ArrayReceiver;

    fn ring() -> (ArraySender, ArrayReceiver) {
        let lines = Arc::new(Lines {
            messages: std::array::from_fn(|_| SharedLine::free()),
            answers: std::array::from_fn(|_| SharedLine::free()),
        });
        let sender = ArraySender {
            lines: Arc::clone(&lines),
            staged: Line::default(),
            staged_messages: 0,
            staged_answers: 0,
            next_message: 0,
            owed: [0; ANSWER_LINES],
            oldest: 0,
            lines_owed: 0,
            next_answer: 0,
            received: Line::default(),
            handed_out: 0,
            counts: Counts::default(),
        };
        let receiver = ArrayReceiver {
            lines,
            next_message: 0,
            staged: Line::default(),
            next_answer: 0,
            published: false,
        };
        (sender, receiver)
    }
}

struct Lines {
    messages: [SharedLine; MESSAGE_LINES],
    answers: [SharedLine; ANSWER_LINES],
}

/// The client's end.
pub struct ArraySender {
    lines: Arc<Lines>,
    staged: Line,
    staged_messages: usize,
    /// How many of the staged messages will be answered.
    staged_answers: u8,
    next_message: usize,
    /// For each message line under way, the number of missing answers, oldest line first (invariant 3).
    owed: [u8; ANSWER_LINES],
    oldest: usize,
    lines_owed: usize,
    next_answer: usize,
    received: Line,
    handed_out: usize,
    counts: Counts,
}

impl ArraySender {
    /// Notes the arrival of `answers` answers, for the oldest lines.
    #[inline]
    fn acknowledge(&mut self, mut answers: usize) {
        while answers > 0 {
            debug_assert!(self.lines_owed > 0, "an answer that nobody waits for");
            let owed = &mut self.owed[self.oldest];
            let paid = answers.min(usize::from(*owed));
            *owed -= paid as u8;
            answers -= paid;
            if *owed == 0 {
                self.oldest = (self.oldest + 1) % ANSWER_LINES;
                self.lines_owed -= 1;
            }
        }
    }
}

impl Sender for ArraySender {
    #[inline]
    fn put(&mut self, message: Message) -> Result<(), Full> {
        if self.staged.room() < message.words() {
            self.flush()?;
        }
        self.staged.push(message.first);
        if let Some(second) = message.second {
            self.staged.push(second);
        }
        self.staged_messages += 1;
        self.staged_answers += u8::from(message.answered);
        if self.staged.room() == 0 {
            // If refused, the line stays staged until a later call tries again.
            let _ = self.flush();
        }
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Full> {
        if self.staged.is_empty() {
            return Ok(());
        }
        if !self.can_flush() {
            return Err(Full);
        }
        self.lines.messages[self.next_message].publish(&self.staged);
        self.next_message = (self.next_message + 1) % MESSAGE_LINES;
        if self.staged_answers > 0 {
            let newest = (self.oldest + self.lines_owed) % ANSWER_LINES;
            self.owed[newest] = self.staged_answers;
            self.lines_owed += 1;
        }
        self.counts.lines_sent += 1;
        self.counts.messages_sent += self.staged_messages as u64;
        self.staged.clear();
        (self.staged_messages, self.staged_answers) = (0, 0);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Option<Word> {
        if self.handed_out == self.received.len() {
            self.received = self.lines.answers[self.next_answer].take()?;
            self.next_answer = (self.next_answer + 1) % ANSWER_LINES;
            self.handed_out = 0;
            self.acknowledge(self.received.len());
            self.counts.lines_received += 1;
            self.counts.answers_received += self.received.len() as u64;
        }
        let word = self.received.get(self.handed_out);
        self.handed_out += 1;
        word
    }

    #[inline]
    fn has_answer(&self) -> bool {
        self.handed_out < self.received.len() || !self.lines.answers[self.next_answer].is_free()
    }

    #[inline]
    fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    #[inline]
    fn can_flush(&self) -> bool {
        let owing = self.staged_answers > 0 && self.lines_owed == ANSWER_LINES;
        self.staged.is_empty() || !owing && self.lines.messages[self.next_message].is_free()
    }

    fn is_taken(&self) -> bool {
        self.lines.messages.iter().all(SharedLine::is_free)
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// The server's end.
pub struct ArrayReceiver {
    lines: Arc<Lines>,
    next_message: usize,
    staged: Line,
    next_answer: usize,
    published: bool,
}

impl ArrayReceiver {
    #[inline]
    fn send(&mut self) {
        // Invariant 3: the slot is free, and a check would cost a cache miss.
        self.lines.answers[self.next_answer].publish(&self.staged);
        self.next_answer = (self.next_answer + 1) % ANSWER_LINES;
        self.staged.clear();
        self.published = true;
    }
}

impl Receiver for ArrayReceiver {
    #[inline]
    fn take(&mut self) -> Option<Line> {
        let line = self.lines.messages[self.next_message].take()?;
        self.next_message = (self.next_message + 1) % MESSAGE_LINES;
        Some(line)
    }

    #[inline]
    fn has_line(&self) -> bool {
        !self.lines.messages[self.next_message].is_free()
    }

    #[inline]
    fn answer(&mut self, word: Word) {
        // Sent only when full, or when the server asks for it: invariant 2.
        self.staged.push(word);
        if self.staged.len() == WORDS {
            self.send();
        }
    }

    #[inline]
    fn publish(&mut self) -> bool {
        if !self.staged.is_empty() {
            self.send();
        }
        std::mem::take(&mut self.published)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn word(number: u64) -> Word {
        Word::new(number).expect("not zero")
    }

    fn lookup(number: u64) -> Message {
        Message {
            first: word(number),
            second: None,
            answered: true,
        }
    }

    fn insert(number: u64) -> Message {
        Message {
            second: Some(word(1000)),
            ..lookup(number)
        }
    }

    /// Takes one line and answers each of its words.
    fn serve(receiver: &mut ArrayReceiver) -> usize {
        let Some(line) = receiver.take() else {
            return 0;
        };
        line.words().for_each(|word| receiver.answer(word));
        receiver.publish();
        line.len()
    }

    #[test]
    fn eight_lookups_or_four_inserts_make_a_line() {
        let (mut sender, mut receiver) = Array::ring();
        (1..=7).for_each(|number| sender.put(lookup(number)).unwrap());
        assert_eq!(receiver.take(), None);
        sender.put(lookup(8)).unwrap();
        let words: Vec<_> = receiver.take().unwrap().words().map(Word::get).collect();
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 8]);
        (1..=4).for_each(|number| sender.put(insert(number)).unwrap());
        let words: Vec<_> = receiver.take().unwrap().words().map(Word::get).collect();
        assert_eq!(words, [1, 1000, 2, 1000, 3, 1000, 4, 1000]);
        assert_eq!(receiver.take(), None);
        let counts = sender.counts();
        assert_eq!((counts.lines_sent, counts.messages_sent), (2, 12));
    }

    #[test]
    fn a_message_never_straddles_two_lines() {
        let (mut sender, mut receiver) = Array::ring();
        (1..=7).for_each(|number| sender.put(lookup(number)).unwrap());
        sender.put(insert(8)).unwrap();
        assert_eq!(receiver.take().unwrap().len(), 7);
        assert_eq!(receiver.take(), None);
        sender.flush().unwrap();
        assert_eq!(receiver.take().unwrap().len(), 2);
    }

    #[test]
    fn a_short_line_shows_nothing_of_the_one_before() {
        let (mut sender, mut receiver) = Array::ring();
        for _ in 0..MESSAGE_LINES {
            (1..=8).for_each(|number| sender.put(lookup(number)).unwrap());
            assert_eq!(serve(&mut receiver), 8);
            (0..8).for_each(|_| assert!(sender.receive().is_some()));
        }
        sender.put(lookup(9)).unwrap();
        sender.flush().unwrap();
        assert_eq!(receiver.take().unwrap().len(), 1);
    }

    #[test]
    fn no_more_lines_wait_for_answers_than_the_answers_have_room() {
        let (mut sender, mut receiver) = Array::ring();
        let mut sent = 0;
        while sender.put(lookup(sent + 1)).is_ok() {
            sent += 1;
            let _ = sender.flush();
            // Taken at once, so that the ring does not run out of room for messages.
            serve(&mut receiver);
        }
        // The last line is staged and could not be sent.
        assert_eq!(sent, ANSWER_LINES as u64 + WORDS as u64);
        assert!(!sender.can_flush());
        assert_eq!(sender.receive(), Some(word(1)));
        assert!(sender.can_flush());
        assert_eq!(sender.flush(), Ok(()));
    }

    #[test]
    fn a_full_ring_refuses_and_loses_nothing() {
        let (mut sender, mut receiver) = Array::ring();
        let quiet = |number| Message {
            answered: false,
            ..lookup(number)
        };
        let mut sent = 0;
        while sender.put(quiet(sent + 1)).is_ok() {
            sent += 1;
        }
        assert_eq!(sent as usize, (MESSAGE_LINES + 1) * WORDS);
        assert!(!sender.is_taken());
        let mut taken = 0;
        while let Some(line) = receiver.take() {
            for word in line.words() {
                taken += 1;
                assert_eq!(word.get(), taken);
            }
            let _ = sender.flush();
        }
        assert_eq!(taken, sent);
        assert!(sender.is_taken());
    }
}
