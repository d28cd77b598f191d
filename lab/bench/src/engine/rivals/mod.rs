//! Tables from crates.io under the same measurement, each with its best settings, the same fast hash function, and
//! room for all items, so that none is evicted.
//!
//! Keys and values come in two forms: as arrays of a size that the compiler knows, and as byte strings of any
//! size. A table that gives a value out for as long as the caller wants it ([`QuickCache`], [`Moka`]) holds the byte
//! string in an `Arc`, so that a hit is a count and not an allocation; one that shows it under a guard or a lock
//! ([`Papaya`], [`ShardedLru`]) in a `Box`. Values are read where they are: our engine copies, no rival has to.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use crate::engine::operations::Operations;
use crate::engine::subject::{Subject, Tally, Worker};

mod lru;
mod moka;
mod papaya;
mod quick_cache;

pub use lru::ShardedLru;
pub use moka::Moka;
pub use papaya::Papaya;
pub use quick_cache::QuickCache;

/// The hash function of all of them.
type Hasher = foldhash::fast::RandomState;

/// A byte string as a key.
pub type KeyBytes = Box<[u8]>;
/// A byte string as a value of a table that gives it out.
pub type GivenBytes = Arc<[u8]>;
/// A byte string as a value of a table that shows it.
pub type ShownBytes = Box<[u8]>;

/// Room for `items` items, and a quarter more: shards do not fill evenly.
fn room_for(items: usize) -> usize {
    items + items / 4
}

/// A key as a table stores it.
pub trait KeyForm: Eq + Hash + Send + Sync + Borrow<Self::Sought> + 'static {
    /// What is looked up with, without a copy.
    type Sought: Hash + Eq + ?Sized;
    /// From a slice of the expected size.
    fn of(bytes: &[u8]) -> Self;
    /// To look up with, from a slice of the expected size.
    fn sought(bytes: &[u8]) -> &Self::Sought;
}

/// A value as a table stores it.
pub trait ValueForm: Send + Sync + 'static {
    /// From a slice of the expected size.
    fn of(bytes: &[u8]) -> Self;
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> KeyForm for [u8; N] {
    type Sought = Self;

    #[inline(always)]
    fn of(bytes: &[u8]) -> Self {
        *Self::sought(bytes)
    }

    #[inline(always)]
    fn sought(bytes: &[u8]) -> &Self {
        bytes.first_chunk().expect("the size was looked at before")
    }
}

impl<const N: usize> ValueForm for [u8; N] {
    #[inline(always)]
    fn of(bytes: &[u8]) -> Self {
        *<Self as KeyForm>::sought(bytes)
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl KeyForm for Box<[u8]> {
    type Sought = [u8];

    fn of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    #[inline(always)]
    fn sought(bytes: &[u8]) -> &[u8] {
        bytes
    }
}

impl ValueForm for Box<[u8]> {
    fn of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl ValueForm for Arc<[u8]> {
    fn of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A table that is asked one key at a time.
pub trait Table: Sync {
    /// Stores a value.
    fn set(&self, key: &[u8], value: &[u8]);
    /// Shows the key's value, if there is one.
    fn get(&self, key: &[u8], show: impl FnOnce(&[u8]));
    /// Ends the work that the table puts off.
    fn finish_pending(&self) {}
}

/// A [`Table`] under measurement.
pub struct OneByOne<T>(pub T);

impl<T: Table> Subject for OneByOne<T> {
    type Worker<'a>
        = OneByOneWorker<'a, T>
    where
        T: 'a;

    fn worker(&self) -> OneByOneWorker<'_, T> {
        OneByOneWorker(&self.0)
    }

    fn finish_pending(&self) {
        self.0.finish_pending();
    }
}

/// A thread's access to a [`Table`].
pub struct OneByOneWorker<'a, T>(&'a T);

impl<T: Table> Worker for OneByOneWorker<'_, T> {
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        let mut tally = Tally::default();
        for one in list.range(from, to) {
            tally.operations += 1;
            match one.set {
                Some(value) => self.0.set(one.key, value),
                None => {
                    tally.gets += 1;
                    let show = |value: &[u8]| tally.hit(value, one.key, one.value_size);
                    self.0.get(one.key, show);
                }
            }
        }
        tally
    }
}
