//! A server thread's turn with a client: the messages that have arrived, and what is loaded before they are served.
//!
//! A message needs a bucket, the element in it, and that element's neighbours in the order of use. Each of these lines
//! says where the next one is, so beyond the caches they would be waited for one after the other. But the messages that
//! follow are known: a turn takes the lines of a ring together, and loads in stages ahead of the message that it
//! serves.
//!
//! ```text
//!     served     + ahead      + 2 ahead   + 3 ahead
//!  ------|-----------|------------|-----------|--------->  messages of the turn
//!      all of it   neighbours   element     bucket
//! ```
//!
//! A turn that is shorter than a stage has each of them for all its messages at once.

use nuthatch_base::sync::ring::{Receiver, WORDS};
use nuthatch_partition::Partition;

use super::lane::prefetch;
use super::message::{Messages, PartitionRequest};

/// Lines taken from a client before the next one's turn.
const LINES: usize = 8;

/// Messages of a turn, at most.
pub(super) const MESSAGES_MAX: usize = LINES * WORDS;

/// The stages of loading.
const STAGES: usize = 3;

/// The messages of a turn.
pub(super) struct Turn {
    /// Messages between two stages; 0: nothing is loaded ahead.
    ahead: usize,
    messages: Vec<PartitionRequest>,
}

impl Turn {
    /// An empty turn, with so many messages between two stages; 0: nothing is loaded ahead.
    pub fn new(ahead: usize) -> Self {
        Self {
            ahead,
            messages: Vec::with_capacity(MESSAGES_MAX),
        }
    }

    /// Takes the messages that have arrived in place of the last turn's, and returns how many there are. `start` is the
    /// least hash of the partition.
    #[inline]
    pub fn take(&mut self, receiver: &mut impl Receiver, start: u64) -> usize {
        self.messages.clear();
        for _ in 0..LINES {
            let Some(line) = receiver.take() else {
                break;
            };
            self.messages.extend(Messages::new(&line, start));
        }
        self.messages.len()
    }

    /// Calls `serve` with each message, in order.
    #[inline]
    pub fn serve(
        &self,
        partition: &mut Partition,
        mut serve: impl FnMut(&mut Partition, PartitionRequest),
    ) {
        let ahead = self.ahead;
        if ahead == 0 {
            for &message in &self.messages {
                serve(partition, message);
            }
            return;
        }
        let at = |step: usize, stages: usize| {
            let place = step.checked_sub(stages * ahead)?;
            self.messages.get(place).copied()
        };
        for step in 0..self.messages.len() + STAGES * ahead {
            if let Some(message) = at(step, 0) {
                load_first(partition, message);
            }
            if let Some(hash) = at(step, 1).and_then(PartitionRequest::hash) {
                partition.prefetch_header(hash);
            }
            if let Some(hash) = at(step, 2).and_then(PartitionRequest::hash) {
                partition.prefetch_neighbours(hash);
            }
            if let Some(message) = at(step, STAGES) {
                serve(partition, message);
            }
        }
    }
}

/// Starts loading what a message names: a bucket, or an element. A ready's element is loaded with its key, which the
/// client has written.
#[inline]
fn load_first(partition: &Partition, message: PartitionRequest) {
    match message {
        PartitionRequest::Lookup { hash } | PartitionRequest::Allocate { hash, .. } => {
            partition.prefetch_bucket(hash);
        }
        PartitionRequest::Ready { element } => prefetch(partition.memory(), element),
        PartitionRequest::Release { element } => partition.memory().prefetch(element.line()),
        PartitionRequest::Call { .. } | PartitionRequest::Now { .. } | PartitionRequest::Leave => {}
    }
}
