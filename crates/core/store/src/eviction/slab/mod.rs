//! Policies of size classes: which item of a class leaves.
//!
//! * [`clock`]: one hand a class (MemC3 section 4)
//! * [`lru`]: a list a class, strictly by last use (memcached before 1.5)
//!
//! A policy is a file here that implements [`Policy`], its `mod`, and its line in [`POLICIES`].

pub mod clock;
pub mod lru;

use std::collections::HashMap;
use std::fmt;

use nuthatch_engine::AuditError;

use crate::item::Header;
use crate::item::unlinked::Unlinked;
use crate::memory::arena::Address;
use crate::slab::Slab;
use crate::store::Store;

/// A policy of the slab store, as chosen before a store is made.
pub struct PolicyKind {
    /// The name that users type.
    pub name: &'static str,
    /// Words in front of each item that the policy uses for itself.
    pub words: usize,
    /// Makes the policy for so many classes, whose items have so many words of the engine in front of their headers.
    pub build: fn(classes: usize, front: usize) -> Box<dyn Policy>,
}

/// All policies of the slab store.
pub static POLICIES: &[&PolicyKind] = &[&clock::KIND, &lru::KIND];

impl PolicyKind {
    /// The policy with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICIES.iter().copied().find(|kind| kind.name == name)
    }
}

impl PartialEq for PolicyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for PolicyKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// The next item to leave, as far as the policy can tell without the lock of the item's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Where it lies.
    pub address: Address,
    /// The class whose order has it.
    pub class: usize,
}

/// The order in which the items of a class leave.
///
/// Every hit sets the store's recency bits in any case. A policy that implements more of the methods for items and hits
/// is for engines whose hits take a lock.
pub trait Policy: Send + Sync {
    /// An item came into the index. Its bucket is locked.
    fn add(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let _ = (store, address, header);
    }

    /// An item leaves the index. Its bucket is locked.
    fn remove(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let _ = (store, address, header);
    }

    /// An item was used. Its bucket is locked.
    fn hit(&self, store: &Store<Slab>, address: Address, header: &Header) {
        let _ = (store, address, header);
    }

    /// The item that is to make room for one of this class. `None` if there is none now.
    fn victim(&self, store: &Store<Slab>, class: usize) -> Option<Victim>;

    /// True if the item is still the policy's choice. The item's bucket is locked.
    fn is_still(&self, victim: &Victim) -> bool {
        let _ = victim;
        true
    }

    /// The item of a class that is next to leave, in a policy that keeps items in order: for statistics.
    fn oldest(&self, store: &Store<Slab>, class: usize) -> Option<Address> {
        let _ = (store, class);
        None
    }

    /// True if the policy has no victim to offer to the class, so that it needs a page at once.
    fn is_starving(&self, store: &Store<Slab>, class: usize) -> bool {
        let _ = (store, class);
        false
    }

    /// A victim has left for the sake of a class. The caller still owns its memory.
    fn evicted(&self, store: &Store<Slab>, class: usize, item: &Unlinked) {
        let _ = (store, class, item);
    }

    /// Recomputes the policy's state from the items in the index, with the class of each.
    fn audit(
        &self,
        store: &Store<Slab>,
        items: &HashMap<Address, usize>,
    ) -> Result<(), AuditError> {
        let _ = (store, items);
        Ok(())
    }
}
