//! Inserting and removing: the steps that exclusive and shared tables have in common.

use std::error::Error;
use std::fmt;

use crate::buckets::{Buckets, lowest};
use crate::entry::{Content, Slot};
use crate::layout::{Candidates, Shape};
use crate::lookup::{Found, Lookups};
use crate::matching::Baseline;
use crate::policy::Policy;

/// What an insert did. It never fails, and never moves another key to another bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// An empty slot was taken.
    Filled,
    /// The key, or another one with the same tag in its candidates, was in the table with this value.
    Updated {
        /// The value until now.
        old: u64,
    },
    /// All candidates were taken: a key with this value was evicted.
    Evicted {
        /// The value of the evicted key.
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

/// An error for a value that does not fit.
#[inline(always)]
pub(crate) fn check<T: Slot>(value: u64) -> Result<(), ValueTooWide> {
    let max = T::ENTRY.value_max();
    if value > max {
        return Err(ValueTooWide { value, max });
    }
    Ok(())
}

/// Inserts or updates a key. The caller has exclusive write access to its candidates.
///
/// Keys of neighbouring buckets may have the same tag, so several candidates may match, and a later one may be an old
/// entry of this key. All matches but the first are removed: otherwise a lookup could return an old value of the key
/// after the first entry is removed.
#[inline]
pub(crate) fn insert<L: Shape, T: Slot>(
    buckets: &Buckets<L, T>,
    policy: &mut Policy,
    hash: u64,
    value: u64,
    dropped: impl FnMut(u64),
) -> Inserted {
    let (at, tag) = buckets.candidates(hash);
    let content = Content { tag, value };
    // Compare all tags before taking an empty slot: a key never has two slots.
    let same = buckets.matches::<Baseline>(at, tag);
    if same != 0 {
        let number = lowest(same);
        let old = buckets.load(at, number).value;
        buckets.store(at, number, content);
        clear(buckets, at, same & (same - 1), dropped);
        let found = Found {
            hit: true,
            value,
            slot: at.slot::<L>(number),
        };
        policy.on_hits(buckets, &Lookups::one::<L>(&hash, &found));
        return Inserted::Updated { old };
    }
    let free = buckets.matches::<Baseline>(at, Content::EMPTY.tag);
    if free != 0 {
        policy.fill(buckets, at, lowest(free), content);
        return Inserted::Filled;
    }
    Inserted::Evicted {
        value: policy.evict(buckets, at, content).value,
    }
}

/// Clears the key's slot, and those of other entries with its tag, and passes their values on, first
/// the one that a lookup would have returned. The caller has exclusive write access to the candidates.
#[inline]
pub(crate) fn remove<L: Shape, T: Slot>(
    buckets: &Buckets<L, T>,
    hash: u64,
    removed: impl FnMut(u64),
) {
    let (at, tag) = buckets.candidates(hash);
    let same = buckets.matches::<Baseline>(at, tag);
    clear(buckets, at, same, removed);
}

/// Clears these candidates and passes their values on, in order.
#[inline(always)]
fn clear<L: Shape, T: Slot>(
    buckets: &Buckets<L, T>,
    at: Candidates,
    mut numbers: u32,
    mut removed: impl FnMut(u64),
) {
    while numbers != 0 {
        let number = lowest(numbers);
        removed(buckets.load(at, number).value);
        buckets.store(at, number, Content::EMPTY);
        numbers &= numbers - 1;
    }
}

/// Clears the slots for whose value `forget` returns true; returns how many. The caller has exclusive
/// write access to them.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::entry::{Tag16, Tag32};
    use crate::eviction::Eviction;
    use crate::layout::{Blp2x4, Blp2x8, CuckooLite, EightWay, FourWay, Layout, Window};
    use crate::lookup::{LookupOne, ReadOnlyAccess};
    use crate::matching::{Checked, Vector, dispatch};

    fn contents<L: Shape, T: Slot>(buckets: &Buckets<L, T>) -> Vec<Content> {
        buckets.slots().iter().map(Slot::load).collect()
    }

    fn sorted(contents: &[Content]) -> Vec<(u64, u64)> {
        let taken = contents.iter().filter(|content| content.tag != 0);
        let mut all: Vec<_> = taken.map(|content| (content.tag, content.value)).collect();
        all.sort_unstable();
        all
    }

    /// Random inserts and removals into eight buckets; after each, what it changed must be what the
    /// crate's invariants and the outcome allow.
    fn changes_keep_the_invariants<L: Shape, T: Slot>(eviction: Eviction) {
        let buckets = Buckets::<L, T>::reserve(8).unwrap();
        let mut policy = Policy::new::<L>(eviction, 1, buckets.slots().len());
        let mut random = SmallRng::seed_from_u64(1);
        for value in 1..3000 {
            // Few tags, so that neighbours share some.
            let hash = random.random::<u64>() & 0x000f_0003_0000_0007;
            let (at, tag) = buckets.candidates(hash);
            let before = contents(&buckets);
            let mut expected = sorted(&before);
            let mut take = |tag: u64, value: u64| {
                let place = expected.iter().position(|one| *one == (tag, value));
                expected.remove(place.expect("what was removed was there"));
            };
            if random.random_ratio(1, 10) {
                remove(&buckets, hash, |old| take(tag, old));
            } else {
                let mut dropped = Vec::new();
                let push = |value| dropped.push(value);
                let inserted = insert(&buckets, &mut policy, hash, value, push);
                dropped.into_iter().for_each(|value| take(tag, value));
                match inserted {
                    Inserted::Filled => {}
                    Inserted::Updated { old } => take(tag, old),
                    Inserted::Evicted { value } => {
                        let victim = before.iter().find(|one| one.value == value);
                        take(victim.expect("what was removed was there").tag, value);
                    }
                }
                expected.push((tag, value));
                expected.sort_unstable();
            }
            // No other entry was removed, added or changed.
            let after = contents(&buckets);
            assert_eq!(sorted(&after), expected, "{} {eviction}", L::LAYOUT);
            // Invariant 2: stores are in one bucket of the key's; slots may be cleared elsewhere.
            let changed: Vec<usize> = (0..after.len())
                .filter(|&slot| after[slot] != before[slot] && after[slot] != Content::EMPTY)
                .collect();
            let candidates: Vec<usize> = (0..L::CANDIDATES).map(|n| at.slot::<L>(n)).collect();
            assert!(changed.iter().all(|slot| candidates.contains(slot)));
            let bucket = |slot: &usize| slot / L::SLOTS;
            assert!(
                changed
                    .iter()
                    .all(|slot| bucket(slot) == bucket(&changed[0]))
            );
            // Invariant 1: the key has one entry if it was inserted, none if it was removed.
            let same = candidates.iter().filter(|&&slot| after[slot].tag == tag);
            let inserted = after.iter().any(|one| one.value == value);
            assert_eq!(same.count(), usize::from(inserted));
            let found = dispatch(
                Checked::new(Vector::detect()),
                LookupOne {
                    buckets: &buckets,
                    access: ReadOnlyAccess,
                    hash,
                },
            );
            assert_eq!(found, inserted.then_some(value));
        }
    }

    fn all_evictions<L: Shape>() {
        for eviction in Eviction::ALL {
            if eviction.suits(L::LAYOUT) {
                changes_keep_the_invariants::<L, Tag16>(eviction);
                changes_keep_the_invariants::<L, Tag32>(eviction);
            }
        }
    }

    #[test]
    fn changes_of_every_table_keep_the_invariants() {
        all_evictions::<FourWay>();
        all_evictions::<EightWay>();
        all_evictions::<CuckooLite>();
        all_evictions::<Window>();
        all_evictions::<Blp2x4>();
        all_evictions::<Blp2x8>();
        assert_eq!(Layout::ALL.len(), 6, "a layout is not tested");
    }
}
