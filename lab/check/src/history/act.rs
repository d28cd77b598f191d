//! The operations on a key, their answers, and the sequential specification, which says which answers are lawful.

use std::fmt;

use nuthatch_engine::{
    Condition, Delta, Expiry, Item, Leave, Op, Read, Removal, Reply, Store, StoreMode, Time,
};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::answer::Answer;
use crate::naive::transition::{Circumstances, Outcome, StoredItem, apply};
use crate::values::bytes;

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
    /// Get the value, and win the right to refresh it if it is stale.
    Win,
    /// Give the item another end.
    Touch(Expiry),
    /// The same, and get the value.
    GetAndTouch(Expiry),
    /// Create an empty item, or look at the one that is there.
    Vivify,
    /// Store in one of the modes.
    Store(StoreMode, Text, Expiry),
    /// Append to the item, or store where there is none.
    AppendOrStore(Text, Expiry),
    /// Store on the condition that the item has the cas that this thread saw last.
    Cas(Text, u64),
    /// The same, but an item of a younger cas is replaced by a stale one.
    CasOrStale(Text, u64),
    /// Delete.
    Delete,
    /// Delete on the condition of a cas.
    DeleteCas(u64),
    /// Leave the item stale, with this cas.
    Invalidate(u64),
    /// Leave the item without its value, with this cas.
    Empty(u64),
    /// Count up.
    Up(u8),
    /// Count up, or store the number where there is none.
    UpOrStore(u8, Expiry),
    /// Count down.
    Down(u8),
    /// Flush all keys at a moment.
    Flush(Time),
}

/// The part of an item's metadata by which a history is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Its cas.
    pub cas: u64,
    /// Its end.
    pub expiry: Expiry,
    /// Some client should refresh it.
    pub stale: bool,
    /// This request won the right to refresh it.
    pub won: bool,
    /// Another request had won it before.
    pub won_before: bool,
}

/// The part of an answer by which a history is judged. Every change has a new cas, which only the engine chooses: so
/// the cas of a changed item is taken from the answer, and the cas of others is checked. (An operation whose answer has
/// no cas brings its own.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A value, and its item.
    Value(Vec<u8>, Traits),
    /// An item without its value, of this length.
    Item(usize, Traits),
    /// The item is new, with this length and cas.
    New(usize, u64),
    /// A number, and the new cas.
    Number(u64, u64),
    /// Anything else.
    Plain(Reply),
    /// Nothing: it is done.
    Nothing,
}

impl Traits {
    fn of(item: &Item) -> Self {
        Self {
            cas: item.cas,
            expiry: item.expiry,
            stale: item.stale,
            won: item.won,
            won_before: item.won_before,
        }
    }
}

impl Observed {
    /// The part of an answer that can be judged.
    pub fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Value(item, value) => Observed::Value(value.clone(), Traits::of(item)),
            Answer::Done(reply) => Self::of_reply(reply),
        }
    }

    fn of_reply(reply: &Reply) -> Self {
        match reply {
            Reply::Found(item) => Observed::Item(item.value_len, Traits::of(item)),
            Reply::Stored(item) => Observed::New(item.value_len, item.cas),
            Reply::Number(number, item) | Reply::Created(number, item) => {
                Observed::Number(*number, item.cas)
            }
            reply => Observed::Plain(*reply),
        }
    }

    /// The cas that the operation gave the item, if it changed it.
    fn new_cas(&self) -> u64 {
        match self {
            Observed::New(_, cas) | Observed::Number(_, cas) => *cas,
            Observed::Item(_, traits) if traits.won => traits.cas,
            _ => 0,
        }
    }

    /// In few words: a long value by its length and its first byte.
    pub fn brief(&self) -> String {
        match self {
            Observed::Value(value, traits) if value.len() > 24 => {
                let (len, first) = (value.len(), char::from(value[0]));
                format!("a value of {len} bytes from {first:?} on, {traits:?}")
            }
            Observed::Value(value, traits) => {
                format!("value {:?}, {traits:?}", String::from_utf8_lossy(value))
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

/// Half of all items never end; the others do within two seconds.
fn end(random: &mut SmallRng, now: Time) -> Expiry {
    match random.random_range(0..64) {
        ticks @ 1..33 => Expiry::At(Time(now.0 + ticks)),
        _ => Expiry::Never,
    }
}

impl Act {
    /// A random act at a moment. An act that demands a cas demands `cas`, and one that brings a cas brings `new_cas`.
    pub(super) fn random(random: &mut SmallRng, now: Time, cas: u64, new_cas: u64) -> Self {
        let text = Text::random(random);
        let short = Text { len: 1, ..text };
        let number = text.digit - b'0';
        let end = end(random, now);
        match random.random_range(0..26) {
            0..5 => Act::Get,
            5 => Act::Look,
            6 => Act::Win,
            7 => Act::Touch(end),
            8 => Act::GetAndTouch(end),
            9 => Act::Vivify,
            10..13 => Act::Store(StoreMode::Set, text, end),
            13 => Act::Store(StoreMode::Add, text, end),
            14 => Act::Store(StoreMode::Replace, text, end),
            15 => Act::Store(StoreMode::Append, short, end),
            16 => Act::Store(StoreMode::Prepend, short, end),
            17 => Act::AppendOrStore(short, end),
            18 => Act::Cas(text, cas),
            19 => Act::CasOrStale(text, cas),
            20 => Act::Delete,
            21 => Act::DeleteCas(cas),
            22 => Act::Invalidate(new_cas),
            23 => match number {
                0..5 => Act::Empty(new_cas),
                _ => Act::UpOrStore(number, end),
            },
            24 => Act::Up(number),
            _ => Act::Down(number),
        }
    }

    /// The value that it brings.
    pub(super) fn value(&self) -> Vec<u8> {
        match self {
            Act::Store(_, text, _)
            | Act::AppendOrStore(text, _)
            | Act::Cas(text, _)
            | Act::CasOrStale(text, _) => text.bytes(),
            _ => Vec::new(),
        }
    }

    /// The operation, with the value that it brings. A flush is none.
    pub(super) fn op<'a>(&self, value: &'a [u8]) -> Op<'a> {
        if let Some(read) = self.read() {
            return Op::Read(read);
        }
        if let Some(removal) = self.removal() {
            return Op::Remove(removal);
        }
        let set = Store::set(value);
        let up = |by: u8| Delta::up(by.into());
        match *self {
            Act::Store(mode, _, expiry) => Op::Store(Store {
                mode,
                expiry,
                ..set
            }),
            Act::AppendOrStore(_, expiry) => Op::Store(Store {
                mode: StoreMode::Append,
                vivify: Some(expiry),
                ..set
            }),
            Act::Cas(_, cas) => Op::Store(Store {
                condition: Condition::Cas(cas),
                ..set
            }),
            Act::CasOrStale(_, cas) => Op::Store(Store {
                condition: Condition::CasOrStale(cas),
                ..set
            }),
            Act::Up(by) => Op::Delta(up(by)),
            Act::UpOrStore(by, expiry) => Op::Delta(Delta {
                vivify: Some((by.into(), expiry)),
                ..up(by)
            }),
            Act::Down(by) => Op::Delta(Delta {
                down: true,
                ..up(by)
            }),
            _ => Op::Get,
        }
    }

    fn read(&self) -> Option<Read> {
        let look = Read {
            value: false,
            ..Read::default()
        };
        Some(match *self {
            Act::Look => look,
            Act::Win => Read {
                may_win: true,
                ..Read::default()
            },
            Act::Touch(expiry) => Read {
                touch: Some(expiry),
                ..look
            },
            Act::GetAndTouch(expiry) => Read {
                touch: Some(expiry),
                ..Read::default()
            },
            Act::Vivify => Read {
                vivify: Some(Expiry::Never),
                may_win: true,
                ..look
            },
            _ => return None,
        })
    }

    fn removal(&self) -> Option<Removal> {
        let (condition, leave) = match *self {
            Act::Delete => (Condition::None, Leave::Nothing),
            Act::DeleteCas(cas) => (Condition::Cas(cas), Leave::Nothing),
            Act::Invalidate(cas) => {
                let (expiry, new_cas) = (None, Some(cas));
                (Condition::None, Leave::Stale { expiry, new_cas })
            }
            Act::Empty(cas) => {
                let leave = Leave::Empty {
                    stale: false,
                    expiry: None,
                    new_cas: Some(cas),
                };
                (Condition::None, leave)
            }
            _ => return None,
        };
        Some(Removal { condition, leave })
    }

    /// True if it succeeds whatever it finds, and leaves the same whatever it found.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self, Act::Store(StoreMode::Set, ..))
    }

    /// True if an act with this answer has changed nothing.
    pub(super) fn changed_nothing(&self, told: &Observed) -> bool {
        let touches = matches!(self, Act::Touch(_) | Act::GetAndTouch(_));
        match told {
            Observed::Value(_, traits) | Observed::Item(_, traits) => !touches && !traits.won,
            Observed::Plain(reply) => *reply != Reply::Removed,
            Observed::New(..) | Observed::Number(..) | Observed::Nothing => false,
        }
    }
}

/// The sequential specification: one key's item, and when everything is to be flushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Register {
    item: Option<StoredItem>,
    flush_at: Option<Time>,
}

impl Register {
    /// The item after an operation with this answer; `None` if this state cannot give this answer.
    pub(super) fn after(&self, now: Time, act: &Act, told: &Observed) -> Option<Self> {
        let mut after = self.flushed_by(now).unwrap_or_else(|| self.clone());
        if let Act::Flush(at) = *act {
            return Some(match at <= now {
                true => Self::default(),
                false => Self {
                    flush_at: Some(at),
                    ..after
                },
            });
        }
        let around = Circumstances {
            now,
            next_cas: told.new_cas(),
            value_max: usize::MAX,
        };
        // An item expires for each thread by that thread's moment: one that began before the expiry may hit the item
        // though another thread has missed it.
        let ended = after.item.clone();
        let ended = ended.filter(|item| item.expiry.is_past(now));
        let value = act.value();
        let agrees = match apply(&mut after.item, &act.op(&value), around) {
            Outcome::Value(item, value) => {
                matches!(told, Observed::Value(found, traits) if *traits == Traits::of(&item) && **found == *value)
            }
            Outcome::Done(reply) => Observed::of_reply(&reply) == *told,
        };
        after.item = after.item.or(ended);
        if let Some(item) = &mut after.item {
            // No answer contains these fields.
            item.fetched = false;
            (item.stored, item.accessed) = (Time(0), Time(0));
        }
        agrees.then_some(after)
    }

    /// The state after the delayed flush, if one is due by this moment.
    pub(super) fn flushed_by(&self, moment: Time) -> Option<Self> {
        self.flush_at
            .is_some_and(|at| at <= moment)
            .then(Self::default)
    }

    /// The same without its item.
    pub(super) fn forgotten(&self) -> Self {
        Self {
            item: None,
            ..self.clone()
        }
    }

    /// True if there is no item.
    pub(super) fn is_empty(&self) -> bool {
        self.item.is_none()
    }
}
