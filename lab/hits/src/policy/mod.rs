//! Eviction policies, simulated exactly: each request hits or misses, and a miss stores its item.
//!
//! A policy counts charges against a capacity: bytes (the value's size and an overhead) or items (1 each). The charge
//! of an item is that of the request that stored it. An item larger than the capacity is never stored.
//!
//! Keys are numbers without gaps, so that a policy keeps its state of a key in arrays.

mod arc;
mod clock;
mod costs;
mod fifo;
mod gdsf;
mod heap;
mod library;
mod lirs;
mod log;
mod lru;
mod name;
mod one_queue;
mod optimum;
mod queue;
mod s3fifo;
mod sampled;
mod sieve;
mod sketch;
mod slab;
mod slru;
mod twoq;
mod wtinylfu;

pub use name::{PolicyName, names};
pub use optimum::Future;

/// A cache without values.
pub trait Policy: Send {
    /// A request for a key, whose item takes `charge`, at least 1. True if the cache held it; otherwise it may hold it
    /// now.
    fn request(&mut self, key: u32, charge: u32) -> bool;

    /// An item is stored that nobody has asked for: to most policies a use like any other.
    fn write(&mut self, key: u32, charge: u32) {
        self.request(key, charge);
    }

    /// What all items held take together: never more than the capacity.
    fn used(&self) -> u64;

    /// True if the cache holds the key's item.
    fn holds(&self, key: u32) -> bool;

    /// What a simulated store of real items moved.
    fn movement(&self) -> Option<Movement> {
        None
    }
}

/// What a store holds, and what was copied to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Movement {
    /// Items held.
    pub items: u64,
    /// Bytes of all items that were ever stored.
    pub stored: u64,
    /// Bytes that were copied from one place to another.
    pub moved: u64,
}

impl Movement {
    /// Bytes moved for each byte stored, in words.
    pub fn moved_by_stored(self) -> String {
        format!("{:.2}", self.moved as f64 / self.stored.max(1) as f64)
    }
}

/// What a policy is built for.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// What all items may take together, at least 1.
    pub capacity: u64,
    /// Different keys of the trace.
    pub keys: usize,
    /// About how many items the capacity holds.
    pub items: u64,
    /// The future requests of the trace, if the policy needs them.
    pub future: Option<&'a Future>,
}

impl Room<'_> {
    /// A share of the capacity, at least 1, rounded; without bound for an infinite share.
    fn share(&self, share: f64) -> u64 {
        share_of(self.capacity, share)
    }
}

/// The same of any capacity.
fn share_of(capacity: u64, share: f64) -> u64 {
    match share {
        0.0 => 0,
        _ => ((capacity as f64 * share).round() as u64).max(1),
    }
}

#[cfg(test)]
mod tests;
