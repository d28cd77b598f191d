//! What a thread does to a key, what it is told, and what may be told: the sequential specification.

use std::fmt;

use nuthatch_engine::{Condition, Delta, Op, Read, Removal, Reply, Store, StoreMode, Time};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::answer::Answer;
use crate::naive::transition::{Circumstances, Outcome, StoredItem, apply};
use crate::values::bytes;

/// The moment at which all histories happen.
pub(super) const NOW: Time = Time(1000);

/// A value: a digit, or bytes that begin with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Which digit.
    pub digit: u8,
    /// How many bytes.
    pub len: usize,
}

/// One operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Get the value.
    Get,
    /// Look at the item without its value.
    Look,
    /// Store in one of the modes.
    Store(StoreMode, Text),
    /// Store on the condition that the item has the cas that this thread saw last.
    Cas(Text, u64),
    /// Delete.
    Delete,
    /// Delete on the condition of a cas.
    DeleteCas(u64),
    /// Count up.
    Up(u8),
    /// Create an empty item, or look at the one that is there.
    Vivify,
}

/// What was answered, as far as a history can be judged by it: every change has a new cas, which
/// only the engine chooses, so the cas of a changed item is told and that of others is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A value, and its cas.
    Value(Vec<u8>, u64),
    /// An item without its value: length, cas, whether this request won it.
    Item(usize, u64, bool),
    /// The item is new, with this length and cas.
    New(usize, u64),
    /// A number, and the new cas.
    Number(u64, u64),
    /// Anything else.
    Plain(Reply),
}

impl Observed {
    /// The part of an answer that can be judged.
    pub fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Value(item, value) => Observed::Value(value.clone(), item.cas),
            Answer::Done(reply) => Self::of_reply(reply),
        }
    }

    fn of_reply(reply: &Reply) -> Self {
        match reply {
            Reply::Found(item) => Observed::Item(item.value_len, item.cas, item.won),
            Reply::Stored(item) => Observed::New(item.value_len, item.cas),
            Reply::Number(number, item) => Observed::Number(*number, item.cas),
            reply => Observed::Plain(*reply),
        }
    }

    /// True if no operation that is told this has changed anything.
    pub fn changed_nothing(&self) -> bool {
        match self {
            Observed::Value(..) => true,
            Observed::Item(_, _, won) => !won,
            Observed::Plain(reply) => *reply != Reply::Removed,
            Observed::New(..) | Observed::Number(..) => false,
        }
    }

    /// The cas that the operation gave the item, if it changed it.
    fn new_cas(&self) -> u64 {
        match self {
            Observed::New(_, cas) | Observed::Number(_, cas) | Observed::Item(_, cas, true) => *cas,
            _ => 0,
        }
    }

    /// In few words: a long value by its length and its first byte.
    pub fn brief(&self) -> String {
        match self {
            Observed::Value(value, cas) if value.len() > 24 => {
                let (len, first) = (value.len(), char::from(value[0]));
                format!("a value of {len} bytes from {first:?} on, cas {cas}")
            }
            Observed::Value(value, cas) => {
                format!("value {:?}, cas {cas}", String::from_utf8_lossy(value))
            }
            told => format!("{told:?}"),
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = char::from(self.digit);
        match self.len {
            1 => write!(f, "{digit:?}"),
            len => write!(f, "{len} bytes from {digit:?} on"),
        }
    }
}

impl Text {
    /// Most values are short; some are long enough to be copied in several strides, or not at all.
    fn random(random: &mut SmallRng) -> Self {
        let len = match random.random_range(0..20) {
            0 => 20_000,
            1 | 2 => 3000,
            3 | 4 => 200,
            _ => 1,
        };
        let digit = random.random_range(b'0'..=b'9');
        Text { digit, len }
    }

    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        bytes(usize::from(self.digit), self.len)
    }
}

impl Act {
    /// A random act; what demands a cas demands `cas`.
    pub(super) fn random(random: &mut SmallRng, cas: u64) -> Self {
        let text = Text::random(random);
        let short = Text { len: 1, ..text };
        match random.random_range(0..16) {
            0..4 => Act::Get,
            4 => Act::Look,
            5..7 => Act::Store(StoreMode::Set, text),
            7 => Act::Store(StoreMode::Add, text),
            8 => Act::Store(StoreMode::Replace, text),
            9 => Act::Store(StoreMode::Append, short),
            10 => Act::Store(StoreMode::Prepend, short),
            11 => Act::Cas(text, cas),
            12 => Act::Delete,
            13 => Act::DeleteCas(cas),
            14 => Act::Up(text.digit - b'0'),
            _ => Act::Vivify,
        }
    }

    /// The value that it brings.
    pub(super) fn value(&self) -> Vec<u8> {
        match self {
            Act::Store(_, text) | Act::Cas(text, _) => text.bytes(),
            _ => Vec::new(),
        }
    }

    /// The operation, with the value that it brings.
    pub(super) fn op<'a>(&self, value: &'a [u8]) -> Op<'a> {
        let look = Read {
            value: false,
            ..Read::default()
        };
        match *self {
            Act::Get => Op::Get,
            Act::Look => Op::Read(look),
            Act::Store(mode, _) => Op::Store(Store {
                mode,
                ..Store::set(value)
            }),
            Act::Cas(_, cas) => Op::Store(Store {
                condition: Condition::Cas(cas),
                ..Store::set(value)
            }),
            Act::Delete => Op::Remove(Removal::default()),
            Act::DeleteCas(cas) => Op::Remove(Removal {
                condition: Condition::Cas(cas),
                ..Removal::default()
            }),
            Act::Up(by) => Op::Delta(Delta::up(by.into())),
            Act::Vivify => Op::Read(Read {
                vivify: Some(nuthatch_engine::Expiry::Never),
                may_win: true,
                ..look
            }),
        }
    }

    /// True if it succeeds whatever it finds, and leaves the same whatever it found.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self, Act::Store(StoreMode::Set, _))
    }
}

/// The sequential specification: one key's item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Register(Option<StoredItem>);

impl Register {
    /// The item after an operation that was told this; `None` if it cannot be told this here.
    pub(super) fn after(&self, act: &Act, told: &Observed) -> Option<Self> {
        let around = Circumstances {
            now: NOW,
            next_cas: told.new_cas(),
            value_max: usize::MAX,
        };
        let mut item = self.0.clone();
        let value = act.value();
        let agrees = match apply(&mut item, &act.op(&value), around) {
            Outcome::Value(item, value) => {
                matches!(told, Observed::Value(found, cas) if *cas == item.cas && **found == *value)
            }
            Outcome::Done(reply) => Observed::of_reply(&reply) == *told,
        };
        if let Some(item) = &mut item {
            // No answer tells it.
            item.fetched = false;
        }
        agrees.then_some(Self(item))
    }

    /// True if there is no item.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
