//! The hash tables that MemC3's evaluation takes apart (NSDI 2013, section 5.2): from memcached's chains to optimistic
//! cuckoo hashing, with one change at a time.
//!
//! ```text
//!  step                 index      locks           keys compared   pages
//!  chaining             chains     one             as bytes        the system's
//!  + hugepage           chains     one             as bytes        huge
//!  + int keycmp         chains     one             as integers     huge
//!  + bucket lock        chains     of buckets      as integers     huge
//!  cuckoo               cuckoo     of buckets      as integers     huge
//!  + tag                with tags  of buckets      as integers     huge
//!  + opt lock           with tags  versions        as integers     huge
//! ```
//!
//! A crate of its own, and not variants of the engines `chained` and `cuckoo-paper`: the paper measures tables of
//! pointers, where an engine also has a store, lifetimes, statistics and replies, which hide differences of nanoseconds.
//! A slot without a tag, a reader that locks its buckets and a compared byte string would be branches or types of the
//! default engine, which shares its code with `cuckoo-paper`. Here they are types of three traits ([`Locks`], [`Tags`],
//! [`Compare`]), and a step is a [`Design`] that names them.
//!
//! An index has references to items, which it does not own: [`Records`] are made before threads share them, and do not
//! change afterwards. What is looked up is found by a closure, which the index calls for each item that may be it.
//!
//! Invariants:
//! 1. An item is referred to by at most one slot or chain, of its key's buckets, under its tag.
//! 2. A slot or chain is changed only within [`Locks::change`] of its buckets, and a cuckoo index only by one thread at a
//!    time ([`Writers::exclusive`]).
//! 3. An item that is in the table is in one of its buckets whenever those are not being changed: a move stores the new
//!    slot and empties the old one in one change. Paths are followed backwards, so no item is ever without a slot.
//!
//! Between threads there is no protocol but that of [`Stripes`](nuthatch_base::sync::stripes), used as it is, and mutexes.

mod cache;
mod chains;
mod cuckoo;
mod design;
mod index;
mod locks;
mod order;
mod records;
mod search;
mod tags;

pub use cache::{Cache, ChainingClock, ChainingLru, CuckooClock, CuckooLru, KeyWords, ValueWords};
pub use chains::Chains;
pub use cuckoo::{Cuckoo, SLOTS};
pub use design::{
    BucketLocked, Chaining, Design, HugePages, IntegerKeys, OptimisticLocks, PlainCuckoo, Tagged,
    Visit, visit,
};
pub use index::{Index, Inserted, Items, Reference, Shape};
pub use locks::{BucketLocks, Locks, NoLocks, OneLock, Versions, Writers};
pub use order::{Clock, Lru, Order};
pub use records::{Bytes, Compare, Integers, KEY, Key, Records, VALUE, Value};
pub use search::{KICKS, Paths};
pub use tags::{NoTags, OneByte, Tags};
