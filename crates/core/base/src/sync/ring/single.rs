//! The single buffer (CPHash section 3.4, Figure 3 left): one message under way.
//!
//! ```text
//!  byte 0        8        16       24                                          64
//!      +--------+--------+--------+---------------------------------------------+
//!      | first  | second | answer |                                             |
//!      +--------+--------+--------+---------------------------------------------+
//!       0: none   0: none  0: none
//! ```
//!
//! The client writes its message, and the server takes it and writes the answer into the same line: two transfers of
//! one line an operation. That is fewer than with the array for a client that sends one request at a time, but
//! operations share no transfer, and the client waits meanwhile.
//!
//! Invariants:
//! 1. `first` is made nonzero by the client only and zero by the server only; `answer` the reverse.
//! 2. The client writes a message only while both are zero and no answer is missing.

use std::sync::Arc;

use super::{Counts, Full, Line, Message, Receiver, RingKind, Sender, Word};
use crate::sync::shim::{AtomicU64, Ordering};

/// The single buffer.
#[derive(Debug)]
pub struct Single;

impl RingKind for Single {
    const NAME: &'static str = "single";
    type Sender = SingleSender;
    type Receiver = SingleReceiver;

    fn ring() -> (SingleSender, SingleReceiver) {
        let buffer = Arc::new(Buffer {
            first: AtomicU64::new(0),
            second: AtomicU64::new(0),
            answer: AtomicU64::new(0),
        });
        let sender = SingleSender {
            buffer: Arc::clone(&buffer),
            staged: None,
            waiting: false,
            counts: Counts::default(),
        };
        let receiver = SingleReceiver {
            buffer,
            published: false,
        };
        (sender, receiver)
    }
}

#[repr(align(64))]
struct Buffer {
    first: AtomicU64,
    second: AtomicU64,
    answer: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Buffer>() == 64);

/// The client's end.
pub struct SingleSender {
    buffer: Arc<Buffer>,
    staged: Option<Message>,
    /// An answer is missing.
    waiting: bool,
    counts: Counts,
}

impl Sender for SingleSender {
    #[inline]
    fn put(&mut self, message: Message) -> Result<(), Full> {
        self.flush()?;
        self.staged = Some(message);
        // A message fills the buffer, so keeping it back gains nothing. If refused, it stays staged.
        let _ = self.flush();
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Full> {
        if !self.can_flush() {
            return Err(Full);
        }
        if let Some(message) = self.staged.take() {
            // Relaxed: invariant 2, the server does not look before `first` is set.
            let second = message.second.map_or(0, Word::get);
            self.buffer.second.store(second, Ordering::Relaxed);
            self.waiting = message.answered;
            self.counts.lines_sent += 1;
            self.counts.messages_sent += 1;
            // Release: pairs with the Acquire in `take`: the server sees `second`, the zero in `answer`, and the memory
            // that the words point to.
            self.buffer
                .first
                .store(message.first.get(), Ordering::Release);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Option<Word> {
        // Acquire: pairs with the Release in `answer`.
        let word = Word::new(self.buffer.answer.load(Ordering::Acquire))?;
        // Relaxed: the server writes it next after it has taken another message, whose Release
        // store comes after this.
        self.buffer.answer.store(0, Ordering::Relaxed);
        self.waiting = false;
        self.counts.lines_received += 1;
        self.counts.answers_received += 1;
        Some(word)
    }

    #[inline]
    fn has_answer(&self) -> bool {
        // Acquire: as in `receive`.
        self.buffer.answer.load(Ordering::Acquire) != 0
    }

    #[inline]
    fn has_staged(&self) -> bool {
        self.staged.is_some()
    }

    #[inline]
    fn can_flush(&self) -> bool {
        self.staged.is_none() || !self.waiting && self.is_taken()
    }

    #[inline]
    fn is_taken(&self) -> bool {
        // Acquire: pairs with the Release in `take`: the server has read `second`.
        self.buffer.first.load(Ordering::Acquire) == 0
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// The server's end.
pub struct SingleReceiver {
    buffer: Arc<Buffer>,
    published: bool,
}

impl Receiver for SingleReceiver {
    #[inline]
    fn take(&mut self) -> Option<Line> {
        // Acquire: pairs with the Release in `flush`.
        let first = Word::new(self.buffer.first.load(Ordering::Acquire))?;
        let mut line = Line::default();
        line.push(first);
        // Relaxed: ordered by the load of `first`.
        if let Some(second) = Word::new(self.buffer.second.load(Ordering::Relaxed)) {
            line.push(second);
        }
        // Release: pairs with the Acquire in `is_taken`.
        self.buffer.first.store(0, Ordering::Release);
        Some(line)
    }

    #[inline]
    fn has_line(&self) -> bool {
        // Acquire: as in `take`.
        self.buffer.first.load(Ordering::Acquire) != 0
    }

    #[inline]
    fn answer(&mut self, word: Word) {
        // Release: pairs with the Acquire in `receive`: the client sees the memory that the word points to.
        self.buffer.answer.store(word.get(), Ordering::Release);
        self.published = true;
    }

    #[inline]
    fn publish(&mut self) -> bool {
        std::mem::take(&mut self.published)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_message_at_a_time() {
        let (mut sender, mut receiver) = Single::ring();
        let message = |number, answered| Message {
            first: Word::new(number).unwrap(),
            second: Word::new(number - 1),
            answered,
        };
        sender.put(message(1, true)).unwrap();
        // A second message is staged, a third is refused.
        sender.put(message(2, false)).unwrap();
        assert_eq!(sender.put(message(3, true)), Err(Full));
        assert_eq!(receiver.take().unwrap().len(), 1);
        assert_eq!(receiver.take(), None);
        assert!(!sender.can_flush(), "the answer is missing");
        receiver.answer(Word::new(77).unwrap());
        assert!(receiver.publish());
        assert!(!receiver.publish());
        assert_eq!(sender.receive(), Word::new(77));
        assert_eq!(sender.receive(), None);
        sender.flush().unwrap();
        let line = receiver.take().unwrap();
        assert_eq!(line.words().map(Word::get).collect::<Vec<_>>(), [2, 1]);
        // It needed no answer: the next may follow at once.
        assert!(sender.is_taken());
        assert_eq!(sender.put(message(3, true)), Ok(()));
        assert!(receiver.has_line());
    }
}
