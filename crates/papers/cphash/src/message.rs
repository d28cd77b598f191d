//! The encoding of messages and answers in words.
//!
//! ```text
//!            63 62..60 59........................................0
//!  lookup    | 1 |        hash above the partition's start       |  answered: element, or MISS
//!  allocate  | 0 |  1  | key length |        value length        |  answered: element or refusal
//!            | 1 |        hash above the partition's start       |
//!  ready     | 0 |  2  |                 element                 |  answered: cas
//!  release   | 0 |  3  |                 element                 |
//!  call      | 0 |  4  |   address of a Call of the client's     |  answered: DONE
//!  now       | 0 |  5  |                  tick                   |
//!  leave     | 0 |  6  |                                         |  answered: DONE
//! ```
//!
//! A lookup is one word, an insert's first message two (CPHash section 3.4). Each ring belongs to one partition, so a
//! hash is sent as its distance from the least hash of the partition
//! ([`partition_start`](nuthatch_base::hash::split::partition_start)): 63 bits, and none of the hash is lost.

use std::num::NonZeroU64;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::ring::{Line, Message as Sent, Word};

use super::call::Address;
use nuthatch_partition::Element;

const HASH: u64 = 1 << 63;
const KIND_SHIFT: u32 = 60;
const PAYLOAD: u64 = (1 << KIND_SHIFT) - 1;
const VALUE_LEN_BITS: u32 = 48;

const ALLOCATE: u64 = 1 << KIND_SHIFT;
const READY: u64 = 2 << KIND_SHIFT;
const RELEASE: u64 = 3 << KIND_SHIFT;
const CALL: u64 = 4 << KIND_SHIFT;
const NOW: u64 = 5 << KIND_SHIFT;
const LEAVE: u64 = 6 << KIND_SHIFT;

/// A message from a client to a partition.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartitionRequest {
    /// Find a READY element and refer to it.
    Lookup { hash: u64 },
    /// Make an element that nobody else can find, NOT READY, for the client to fill.
    Allocate {
        hash: u64,
        key_len: usize,
        value_len: usize,
    },
    /// The element is filled: it becomes its key's element, without condition, flags or expiry.
    Ready { element: Element },
    /// The client no longer refers to it. An element that is NOT READY is freed.
    Release { element: Element },
    /// Carry out the call at this address.
    Call { call: Address },
    /// The moment of all messages that follow.
    Now { now: Time },
    /// The client leaves: no message follows.
    Leave,
}

/// The answer to a lookup, an allocation or a ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A lookup hit, or an allocation succeeded: the client has a reference.
    Element(Element),
    /// A lookup hit elements of more than one key: all of them, each with a reference.
    Several(Vec<Element>),
    /// A lookup missed.
    Miss,
    /// An allocation can never succeed.
    TooLarge,
    /// An allocation does not succeed now.
    OutOfMemory,
    /// A call, or the last message, is done.
    Done,
}

/// The answer to a ready is not an [`Answer`] but a cas, with this bit set so that it is never zero.
const CAS: u64 = 1 << 63;

const NO_ELEMENT: u64 = 1 << 32;

/// The answer is the address of a list that the client takes over.
const SEVERAL: u64 = 1 << 62;

fn word(word: u64) -> Word {
    // Every kind has a bit of its own that is set, elements are not zero.
    debug_assert_ne!(word, 0);
    NonZeroU64::new(word).unwrap_or(NonZeroU64::MIN)
}

impl PartitionRequest {
    /// The hash of the message, if serving it needs a bucket.
    #[inline]
    pub fn hash(self) -> Option<u64> {
        match self {
            PartitionRequest::Lookup { hash } | PartitionRequest::Allocate { hash, .. } => {
                Some(hash)
            }
            _ => None,
        }
    }

    /// The words on the ring to a partition whose hashes begin at `start`.
    #[inline]
    pub fn encode(self, start: u64) -> Sent {
        let hash_word = |hash: u64| {
            debug_assert!(hash.wrapping_sub(start) < HASH, "a hash of this partition");
            hash.wrapping_sub(start) | HASH
        };
        let (first, second, answered) = match self {
            PartitionRequest::Lookup { hash } => (hash_word(hash), None, true),
            PartitionRequest::Allocate {
                hash,
                key_len,
                value_len,
            } => {
                let lengths = (key_len as u64) << VALUE_LEN_BITS | value_len as u64;
                (ALLOCATE | lengths, Some(word(hash_word(hash))), true)
            }
            PartitionRequest::Ready { element } => (READY | u64::from(element.line()), None, true),
            PartitionRequest::Release { element } => {
                (RELEASE | u64::from(element.line()), None, false)
            }
            PartitionRequest::Call { call } => (CALL | call.number(), None, true),
            PartitionRequest::Now { now } => (NOW | u64::from(now.0), None, false),
            PartitionRequest::Leave => (LEAVE, None, true),
        };
        Sent {
            first: word(first),
            second,
            answered,
        }
    }
}

/// The messages of a line, in order.
pub(super) struct Messages<'l> {
    line: &'l Line,
    at: usize,
    /// The least hash of the partition.
    start: u64,
}

impl<'l> Messages<'l> {
    /// The messages in a line to a partition whose hashes begin at `start`.
    pub fn new(line: &'l Line, start: u64) -> Self {
        Self { line, at: 0, start }
    }

    #[inline]
    fn word(&mut self) -> Option<u64> {
        let word = self.line.get(self.at)?;
        self.at += 1;
        Some(word.get())
    }

    #[inline]
    fn hash(&self, word: u64) -> u64 {
        (word & !HASH).wrapping_add(self.start)
    }
}

impl Iterator for Messages<'_> {
    type Item = PartitionRequest;

    #[inline]
    fn next(&mut self) -> Option<PartitionRequest> {
        let word = self.word()?;
        if word & HASH != 0 {
            let hash = self.hash(word);
            return Some(PartitionRequest::Lookup { hash });
        }
        let payload = word & PAYLOAD;
        let element = || Element::new(payload as u32);
        match word & !PAYLOAD {
            ALLOCATE => {
                let second = self.word()?;
                Some(PartitionRequest::Allocate {
                    hash: self.hash(second),
                    key_len: (payload >> VALUE_LEN_BITS) as usize,
                    value_len: (payload & ((1 << VALUE_LEN_BITS) - 1)) as usize,
                })
            }
            READY => element().map(|element| PartitionRequest::Ready { element }),
            RELEASE => element().map(|element| PartitionRequest::Release { element }),
            CALL => Address::of_number(payload).map(|call| PartitionRequest::Call { call }),
            NOW => Some(PartitionRequest::Now {
                now: Time(payload as u32),
            }),
            LEAVE => Some(PartitionRequest::Leave),
            _ => None,
        }
    }
}

impl Answer {
    /// The word on the ring.
    #[inline]
    pub fn encode(self) -> Word {
        word(match self {
            Answer::Element(element) => u64::from(element.line()),
            Answer::Several(elements) => {
                let list = Box::into_raw(Box::new(elements));
                SEVERAL | list.expose_provenance() as u64
            }
            Answer::Miss => NO_ELEMENT,
            Answer::TooLarge => 2 * NO_ELEMENT,
            Answer::OutOfMemory => 3 * NO_ELEMENT,
            Answer::Done => 4 * NO_ELEMENT,
        })
    }

    /// The answer in a word.
    #[inline]
    pub fn decode(word: Word) -> Self {
        const MISS: u64 = NO_ELEMENT;
        const TOO_LARGE: u64 = 2 * NO_ELEMENT;
        const OUT_OF_MEMORY: u64 = 3 * NO_ELEMENT;
        if word.get() & SEVERAL != 0 {
            let list = std::ptr::with_exposed_provenance_mut((word.get() & !SEVERAL) as usize);
            // SAFETY: `encode` made it from a box and gave up its ownership; an answer is decoded once.
            return Answer::Several(*unsafe { Box::from_raw(list) });
        }
        match (word.get(), Element::new(word.get() as u32)) {
            (_, Some(element)) => Answer::Element(element),
            (MISS, None) => Answer::Miss,
            (TOO_LARGE, None) => Answer::TooLarge,
            (OUT_OF_MEMORY, None) => Answer::OutOfMemory,
            _ => Answer::Done,
        }
    }
}

/// Encodes the answer to a ready: the cas, or none if there was no memory for another bucket.
#[inline]
pub(super) fn encode_cas(cas: Option<u64>) -> Word {
    word(cas.unwrap_or(0) | CAS)
}

/// The cas in the answer to a ready.
#[inline]
pub(super) fn decode_cas(word: Word) -> Option<u64> {
    let cas = word.get() & !CAS;
    (cas != 0).then_some(cas)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use nuthatch_base::hash::split;
    use nuthatch_base::sync::ring::{Array, Receiver, RingKind, Sender};

    use super::*;

    #[test]
    fn messages_survive_the_ring() {
        let element = Element::new(77).expect("not zero");
        let start = split::partition_start(2, 3);
        let sent = [
            PartitionRequest::Lookup { hash: u64::MAX - 5 },
            PartitionRequest::Allocate {
                hash: start,
                key_len: 250,
                value_len: 1 << 30,
            },
            PartitionRequest::Ready { element },
            PartitionRequest::Release { element },
            PartitionRequest::Now {
                now: Time(u32::MAX),
            },
            PartitionRequest::Leave,
        ];
        let (mut sender, mut receiver) = Array::ring();
        for message in sent {
            sender.put(message.encode(start)).expect("there is room");
        }
        sender.flush().expect("there is room");
        let line = receiver.take().expect("a line");
        let received: Vec<_> = Messages::new(&line, start).collect();
        assert_eq!(format!("{received:?}"), format!("{sent:?}"));
    }

    #[test]
    fn answers_survive_the_ring() {
        let element = Element::new(u32::MAX).expect("not zero");
        let all = [
            Answer::Element(element),
            Answer::Several(vec![element, element]),
            Answer::Miss,
            Answer::TooLarge,
            Answer::OutOfMemory,
            Answer::Done,
        ];
        for answer in all {
            assert_eq!(Answer::decode(answer.clone().encode()), answer);
        }
        assert_eq!(decode_cas(encode_cas(Some(7))), Some(7));
        assert_eq!(decode_cas(encode_cas(None)), None);
    }
}
