//! CLOCK (MemC3 section 4): one recency bit an item, one hand a class.
//!
//! A hit sets the item's bit, and only writes when it is clear. The hand clears set bits as it
//! passes and stops at the first clear one. Where *not* to use it: one-pass scans of more items
//! than fit push everything else out.

use super::{Policy, PolicyKind, Victim};
use crate::slab::Slab;
use crate::store::Store;

/// CLOCK, as it is chosen.
pub static KIND: PolicyKind = PolicyKind {
    name: "clock",
    words: 0,
    build: |_, _| Box::new(Clock),
};

/// CLOCK as a policy: its only state is the store's recency bits and the classes' hands.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Policy for Clock {
    fn victim(&self, store: &Store<Slab>, class: usize) -> Option<Victim> {
        let address = store.victim(class)?;
        Some(Victim { address, class })
    }
}
