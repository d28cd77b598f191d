//! The model of the engine: the oracle's transition on a few keys, with cas values of its own.

use std::collections::BTreeMap;

use nuthatch_engine::{Item, Op, Reply, Time};

use super::step::{KEYS, OWN_CAS_MIN};
use crate::answer::Answer;
use crate::naive::transition::{Circumstances, Outcome, StoredItem, apply};

/// Whether the engine may have forgotten an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misses {
    /// Never: it has memory for all.
    Never,
    /// At any time: it is short of memory.
    Lawful,
}

/// How often an answer was about an item, and how often an item had been forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The engine had the item.
    pub kept: usize,
    /// The engine had forgotten the item.
    pub forgotten: usize,
}

/// The keys' items, as they must be.
pub struct Model {
    /// The counts of the answers.
    pub tally: Tally,
    misses: Misses,
    item_size_max: usize,
    keys: Vec<KeyModel>,
    flush_at: Option<Time>,
    last_cas: u64,
}

/// One key's item, and the cas values that the engine gave for the model's.
#[derive(Default)]
struct KeyModel {
    item: Option<StoredItem>,
    engine_cas: BTreeMap<u64, u64>,
    seen: Vec<u64>,
}

/// An engine's header may be anything up to this: an item that is less than this below the limit may be refused or not.
const HEADER_MAX: usize = 512;

impl Model {
    /// No items.
    pub fn new(misses: Misses, item_size_max: usize) -> Self {
        Self {
            tally: Tally::default(),
            misses,
            item_size_max,
            keys: (0..KEYS).map(|_| KeyModel::default()).collect(),
            flush_at: None,
            last_cas: 0,
        }
    }

    /// The cas that was seen for a key `ago` sights ago: the model's and the engine's.
    pub fn seen_cas(&self, key: usize, ago: u8) -> Option<(u64, u64)> {
        let key = &self.keys[key];
        let seen = key.seen.iter().rev().nth(ago.into())?;
        Some((*seen, key.engine_cas[seen]))
    }

    /// A flush.
    pub fn flush(&mut self, now: Time, at: Time) {
        self.advance(now);
        self.flush_at = Some(at);
        if at <= now {
            self.flush_at = None;
            self.keys.iter_mut().for_each(|key| key.item = None);
        }
    }

    /// Lets a delayed flush, and expiry, take effect.
    pub fn advance(&mut self, now: Time) {
        let flushed = self.flush_at.filter(|&at| at <= now);
        if flushed.is_some() {
            self.flush_at = None;
        }
        for key in &mut self.keys {
            let gone = |item: &StoredItem| {
                item.expiry.is_past(now) || flushed.is_some_and(|at| item.stored < at)
            };
            key.item.take_if(|item| gone(item));
        }
    }

    /// Judges an answer. The operation is in the model's own cas values.
    pub fn judge(
        &mut self,
        now: Time,
        key: usize,
        key_len: usize,
        op: &Op<'_>,
        answer: &Answer,
    ) -> Result<(), String> {
        self.advance(now);
        self.last_cas += 1;
        let model = &mut self.keys[key];
        let was_there = model.item.is_some();
        let mut expected = Vec::new();
        let mut starts = vec![model.item.clone()];
        if self.misses == Misses::Lawful {
            starts.push(None);
        }
        for start in starts {
            let is_there = start.is_some();
            for header in [0, HEADER_MAX] {
                let mut item = start.clone();
                let around = Circumstances {
                    now,
                    next_cas: self.last_cas,
                    value_max: self.item_size_max.saturating_sub(key_len + header),
                };
                let outcome = apply(&mut item, op, around);
                if model.agrees(&outcome, answer) {
                    model.item = item;
                    self.tally.kept += usize::from(is_there);
                    self.tally.forgotten += usize::from(was_there && !is_there);
                    return Ok(());
                }
                expected.push(describe(&outcome));
            }
        }
        expected.dedup();
        Err(format!(
            "answered {}; expected {}",
            brief(answer),
            expected.join(" or ")
        ))
    }

    /// Judges a walk: how often each key was met, with which item and value.
    pub fn judge_walk(
        &mut self,
        now: Time,
        copy_max: usize,
        met: &[(usize, Item, Vec<u8>)],
    ) -> Result<(), String> {
        self.advance(now);
        for (index, model) in self.keys.iter_mut().enumerate() {
            let mut mine = met.iter().filter(|(key, ..)| *key == index);
            let Some((_, item, value)) = mine.next() else {
                if model.item.is_some() && self.misses == Misses::Never {
                    return Err(format!("key {index} was not visited"));
                }
                continue;
            };
            if mine.next().is_some() {
                return Err(format!("key {index} was visited twice"));
            }
            let Some(expected) = &model.item else {
                return Err(format!("key {index} was visited and has no item"));
            };
            let bytes: &[u8] = match expected.value.len() <= copy_max {
                true => &expected.value,
                false => b"",
            };
            let bytes_agree = value == bytes;
            let described = expected.describe(now);
            if !bytes_agree || !model.same_item(&described, item) {
                return Err(format!(
                    "key {index} was visited as {item:?}, is {described:?}"
                ));
            }
        }
        Ok(())
    }
}

impl KeyModel {
    fn agrees(&mut self, outcome: &Outcome, answer: &Answer) -> bool {
        match (outcome, answer) {
            (Outcome::Value(expected, value), Answer::Value(item, bytes)) => {
                **value == **bytes && self.same_item(expected, item)
            }
            (Outcome::Done(expected), Answer::Done(reply)) => match (expected, reply) {
                (Reply::Found(expected), Reply::Found(item)) => self.same_item(expected, item),
                (Reply::Stored(expected), Reply::Stored(item)) => self.same_item(expected, item),
                (Reply::Number(expected, item), Reply::Number(number, found))
                | (Reply::Created(expected, item), Reply::Created(number, found)) => {
                    expected == number && self.same_item(item, found)
                }
                _ => expected == reply,
            },
            _ => false,
        }
    }

    /// Compares all but the hints (idle time, fetched), which an engine need not keep exactly, and learns the cas.
    fn same_item(&mut self, expected: &Item, item: &Item) -> bool {
        let alike = Item {
            cas: item.cas,
            idle: item.idle,
            fetched: item.fetched,
            ..*expected
        };
        alike == *item && self.same_cas(expected.cas, item.cas)
    }

    /// An engine has cas values of its own: they must rise as the model's do, and one the model has
    /// seen before must be the same again.
    fn same_cas(&mut self, model: u64, engine: u64) -> bool {
        if model >= OWN_CAS_MIN {
            if engine == model {
                self.note(model, engine);
            }
            return engine == model;
        }
        let below = self.engine_cas.range(..model).next_back();
        let rises = below.is_none_or(|(_, &below)| below < engine);
        let above = self.engine_cas.range(model + 1..).next();
        let falls = above.is_none_or(|(_, &above)| engine < above);
        let known = self.engine_cas.get(&model);
        let agrees = known.is_none_or(|&known| known == engine) && rises && falls;
        if agrees {
            self.note(model, engine);
        }
        agrees
    }

    fn note(&mut self, model: u64, engine: u64) {
        self.engine_cas.insert(model, engine);
        if self.seen.last() != Some(&model) {
            self.seen.push(model);
        }
    }
}

/// An outcome in few words.
fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Value(item, value) => brief(&Answer::Value(*item, value.to_vec())),
        Outcome::Done(reply) => format!("{reply:?}"),
    }
}

/// An answer in few words: a value by its length and first bytes.
fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Value(item, value) => {
            let start = String::from_utf8_lossy(&value[..value.len().min(24)]);
            format!("{} bytes {start:?} of {item:?}", value.len())
        }
        Answer::Done(reply) => format!("{reply:?}"),
    }
}
