//! Inserting and removing: the steps that an exclusive and a shared table have in common.

use std::error::Error;
use std::fmt;

use crate::buckets::{Buckets, lowest};
use crate::entry::{Content, Slot};
use crate::layout::Shape;
use crate::matching::Baseline;
use crate::policy::Policy;

/// What an insert did. It never fails, and never moves another key to another bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// An empty slot was taken.
    Filled,
    /// The key (or another with its tag and a bucket of its) was there, with this value.
    Updated {
        /// The value until now.
        old: u64,
    },
    /// All candidates were taken: a key with this value left.
    Evicted {
        /// The value of the key that left.
        value: u64,
    },
}

/// The value has more bits than an entry of this table holds. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueTooWide {
    /// The value.
    pub value: u64,
    /// The largest that fits.
    pub max: u64,
}

impl fmt::Display for ValueTooWide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, max } = self;
        write!(
            out,
            "the value {value} does not fit: entries hold values up to {max}"
        )
    }
}

impl Error for ValueTooWide {}

/// Refuses a value that would be cut off.
#[inline(always)]
pub(crate) fn check<T: Slot>(value: u64) -> Result<(), ValueTooWide> {
    let max = T::ENTRY.value_max();
    if value > max {
        return Err(ValueTooWide { value, max });
    }
    Ok(())
}

/// Inserts or updates. The caller alone may change the key's candidates.
#[inline]
pub(crate) fn insert<L: Shape, T: Slot>(
    buckets: &Buckets<L, T>,
    policy: &mut Policy,
    hash: u64,
    value: u64,
) -> Inserted {
    let (at, tag) = buckets.candidates(hash);
    let content = Content { tag, value };
    // All tags before any empty slot: a key never takes two slots.
    let same = buckets.matches::<Baseline>(at, tag);
    if same != 0 {
        let number = lowest(same);
        let old = buckets.load(at, number).value;
        buckets.store(at, number, content);
        policy.hit(buckets, at, number);
        return Inserted::Updated { old };
    }
    let empty = buckets.matches::<Baseline>(at, Content::EMPTY.tag);
    if empty != 0 {
        policy.fill(buckets, at, lowest(empty), content);
        return Inserted::Filled;
    }
    Inserted::Evicted {
        value: policy.evict(buckets, at, content).value,
    }
}

/// Empties the key's slot and returns its value. The caller alone may change its candidates.
#[inline]
pub(crate) fn remove<L: Shape, T: Slot>(buckets: &Buckets<L, T>, hash: u64) -> Option<u64> {
    let (at, tag) = buckets.candidates(hash);
    let same = buckets.matches::<Baseline>(at, tag);
    if same == 0 {
        return None;
    }
    let number = lowest(same);
    let old = buckets.load(at, number).value;
    buckets.store(at, number, Content::EMPTY);
    Some(old)
}

/// Empties those of these slots that `forget` chooses, and says how many. The caller alone may
/// change them.
pub(crate) fn forget<T: Slot>(slots: &[T], mut forget: impl FnMut(u64) -> bool) -> u64 {
    let mut forgotten = 0;
    for slot in slots {
        let content = slot.load();
        if content.tag != Content::EMPTY.tag && forget(content.value) {
            slot.store(Content::EMPTY);
            forgotten += 1;
        }
    }
    forgotten
}
