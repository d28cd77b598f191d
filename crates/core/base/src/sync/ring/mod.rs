//! Message rings between one client and one server thread (CPHash section 3.4, Figure 3).
//!
//! A message is one word or two; a word is never zero. The engine defines the meaning of the words. The ring is only
//! told whether the server will answer, and an answer is one word. Messages arrive in the order in which they were put,
//! and so do the answers.
//!
//! Both designs of Figure 3 exist, behind the same two traits:
//!
//! * [`mod@array`]: an array of buffers. Eight words make a message line of 64 bytes: eight
//!   lookups, or four inserts. Several lines may be under way in each direction. This is the
//!   paper's choice.
//! * [`single`]: one buffer for a pair of threads. One message is under way; its answer comes back
//!   in the same cache line.
//!
//! Neither side of a ring ever waits: a message that cannot be sent is refused ([`Full`]), and a thread that has to
//! wait does so at an [`Event`](crate::sync::wait::Event).

pub mod array;
mod line;
pub mod single;

use std::num::NonZeroU64;

pub use array::Array;
pub use line::{Line, WORDS};
pub use single::Single;

/// A word of a message or an answer. Zero marks an empty place.
pub type Word = NonZeroU64;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The first word.
    pub first: Word,
    /// The second one, if the message has two. Both travel in the same line.
    pub second: Option<Word>,
    /// The server answers it, with one word. (The server sees that from the first word.)
    pub answered: bool,
}

impl Message {
    fn words(&self) -> usize {
        1 + usize::from(self.second.is_some())
    }
}

/// Nothing more can be sent before the server has taken a line or the client an answer. The message
/// that was refused was not staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The counts of one end of a ring, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Message lines sent.
    pub lines_sent: u64,
    /// Messages in them.
    pub messages_sent: u64,
    /// Lines of answers received.
    pub lines_received: u64,
    /// Answers in them.
    pub answers_received: u64,
}

/// A layout of messages in shared memory.
pub trait RingKind: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// The client's end.
    type Sender: Sender;
    /// The server's end.
    type Receiver: Receiver;

    /// An empty ring.
    fn ring() -> (Self::Sender, Self::Receiver);
}

/// The client's end of a ring.
pub trait Sender: Send {
    /// Stages a message behind those that are staged already. A line that is full, or has no room
    /// for the message, is sent.
    fn put(&mut self, message: Message) -> Result<(), Full>;

    /// Sends the staged messages, even if they fill no line.
    fn flush(&mut self) -> Result<(), Full>;

    /// The next answer, in the order of the messages, if it has arrived.
    fn receive(&mut self) -> Option<Word>;

    /// True if [`Sender::receive`] would return something.
    fn has_answer(&self) -> bool;

    /// True if a message is staged.
    fn has_staged(&self) -> bool;

    /// True if no message is staged, or the staged ones could be sent now.
    fn can_flush(&self) -> bool;

    /// True if every message that was sent has been taken by the server. Staged ones do not count.
    fn is_taken(&self) -> bool;

    /// The counts of this ring.
    fn counts(&self) -> Counts;
}

/// The server's end of a ring.
pub trait Receiver: Send {
    /// The next line of messages, if one has arrived.
    fn take(&mut self) -> Option<Line>;

    /// True if [`Receiver::take`] would return a line.
    fn has_line(&self) -> bool;

    /// Stages the answer to the next message that needs one.
    fn answer(&mut self, word: Word);

    /// Sends the staged answers. True if there were any since the last call, sent now or before: then the caller wakes
    /// the client if it sleeps.
    fn publish(&mut self) -> bool;
}
