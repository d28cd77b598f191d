//! The steps from memcached's table to MemC3's, in the paper's order.

use crate::chains::Chains;
use crate::cuckoo::Cuckoo;
use crate::index::Index;
use crate::locks::{BucketLocks, NoLocks, OneLock, Versions};
use crate::records::{Bytes, Compare, Integers};
use crate::tags::{NoTags, OneByte};

/// A step.
pub trait Design {
    /// The paper's name for it.
    const NAME: &'static str;
    /// Index and items lie on huge pages.
    const HUGE_PAGES: bool;
    /// How keys are compared.
    type Compare: Compare;
    /// The index with its locks.
    type Shared: Index + Sync;
    /// The index without locks, for one thread.
    type Alone: Index;
    /// It differs from the step before in its locks alone, so that without them both are the same.
    const IS_LOCKS: bool = false;
}

/// Memcached's table.
pub struct Chaining;

impl Design for Chaining {
    const NAME: &'static str = "chaining";
    const HUGE_PAGES: bool = false;
    type Compare = Bytes;
    type Shared = Chains<OneLock>;
    type Alone = Chains<NoLocks>;
}

/// The same on huge pages.
pub struct HugePages;

impl Design for HugePages {
    const NAME: &'static str = "+ hugepage";
    const HUGE_PAGES: bool = true;
    type Compare = Bytes;
    type Shared = Chains<OneLock>;
    type Alone = Chains<NoLocks>;
}

/// Keys are compared as integers.
pub struct IntegerKeys;

impl Design for IntegerKeys {
    const NAME: &'static str = "+ int keycmp";
    const HUGE_PAGES: bool = true;
    type Compare = Integers;
    type Shared = Chains<OneLock>;
    type Alone = Chains<NoLocks>;
}

/// Buckets have locks of their own.
pub struct BucketLocked;

impl Design for BucketLocked {
    const NAME: &'static str = "+ bucket lock";
    const HUGE_PAGES: bool = true;
    type Compare = Integers;
    type Shared = Chains<BucketLocks>;
    type Alone = Chains<NoLocks>;
    const IS_LOCKS: bool = true;
}

/// Cuckoo hashing in place of chains.
pub struct PlainCuckoo;

impl Design for PlainCuckoo {
    const NAME: &'static str = "cuckoo";
    const HUGE_PAGES: bool = true;
    type Compare = Integers;
    type Shared = Cuckoo<NoTags, BucketLocks>;
    type Alone = Cuckoo<NoTags, NoLocks>;
}

/// Slots have tags.
pub struct Tagged;

impl Design for Tagged {
    const NAME: &'static str = "+ tag";
    const HUGE_PAGES: bool = true;
    type Compare = Integers;
    type Shared = Cuckoo<OneByte, BucketLocks>;
    type Alone = Cuckoo<OneByte, NoLocks>;
}

/// Readers compare versions and take no lock: MemC3's table.
pub struct OptimisticLocks;

impl Design for OptimisticLocks {
    const NAME: &'static str = "+ opt lock";
    const HUGE_PAGES: bool = true;
    type Compare = Integers;
    type Shared = Cuckoo<OneByte, Versions>;
    type Alone = Cuckoo<OneByte, NoLocks>;
    const IS_LOCKS: bool = true;
}

/// Work on each step.
pub trait Visit {
    /// Work on one.
    fn design<D: Design>(&mut self);
}

/// Visits all steps in the paper's order.
pub fn visit(visit: &mut impl Visit) {
    visit.design::<Chaining>();
    visit.design::<HugePages>();
    visit.design::<IntegerKeys>();
    visit.design::<BucketLocked>();
    visit.design::<PlainCuckoo>();
    visit.design::<Tagged>();
    visit.design::<OptimisticLocks>();
}
