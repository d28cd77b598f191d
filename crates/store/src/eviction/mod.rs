//! Which items leave when memory is short: the policies, and what every engine does with what they choose.
//!
//! * [`s3_fifo`]: two queues of pages and [`ghosts`], in a [log](crate::log); [`clean`]: emptying its pages;
//!   `dead`: taking out what has expired before that
//! * [`depths`]: what more memory would have given
//! * [`clock`]: one hand a class, in the slab store (MemC3 section 4)
//! * [`lru`]: a list a class, strictly by last use (memcached before 1.5)
//! * [`recency`]: the bits that tell which items were used
//! * [`reclaim`]: making room by evicting, by moving pages between classes, and by taking expired items back
//! * [`removals`]: listeners that are told of what left
//!
//! A policy of the slab store is a file here that implements [`Policy`], and one line of [`POLICIES`]. In the log items
//! leave by the page: there [`s3_fifo`] decides, and nothing else fits.

pub mod clean;
pub mod clock;
mod dead;
pub mod depths;
pub mod ghosts;
pub mod lru;
pub mod recency;
pub mod reclaim;
pub mod removals;
pub mod s3_fifo;

use std::collections::HashMap;
use std::fmt;

use nuthatch_engine::AuditError;

use crate::item::Header;
use crate::slab::Store;
use crate::slab::arena::Chunk;
use crate::slab::unlinked::Unlinked;

/// A policy of the slab store, as it is chosen before a store is made.
pub struct PolicyKind {
    /// As it is typed.
    pub name: &'static str,
    /// Words in front of each item that the policy has for itself.
    pub words: usize,
    /// The policy for so many classes, whose items have so many words of the engine's in front of their headers.
    pub build: fn(classes: usize, front: usize) -> Box<dyn Policy>,
}

/// The policies there are.
pub static POLICIES: [&PolicyKind; 2] = [&clock::KIND, &lru::KIND];

impl PolicyKind {
    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICIES.into_iter().find(|kind| kind.name == name)
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

/// An item that is to leave next, as far as the policy knows without the lock of its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Where it lies.
    pub chunk: Chunk,
    /// The class in whose order it is.
    pub class: usize,
}

/// In which order the items of a class leave.
///
/// The recency bits of the store are set by every hit in any case. A policy that is told of items and hits beyond
/// that is for engines whose hits take a lock.
pub trait Policy: Send + Sync {
    /// An item came into the index. Its bucket is locked.
    fn add(&self, store: &Store, chunk: Chunk, header: &Header) {
        let _ = (store, chunk, header);
    }

    /// An item leaves it. Its bucket is locked.
    fn remove(&self, store: &Store, chunk: Chunk, header: &Header) {
        let _ = (store, chunk, header);
    }

    /// An item was used. Its bucket is locked.
    fn hit(&self, store: &Store, chunk: Chunk, header: &Header) {
        let _ = (store, chunk, header);
    }

    /// The item that is to make room for one of this class. `None` if there is none now.
    fn victim(&self, store: &Store, class: usize) -> Option<Victim>;

    /// True if that has not changed. The item's bucket is locked.
    fn is_still(&self, victim: &Victim) -> bool {
        let _ = victim;
        true
    }

    /// The item of a class that is next to leave, in a policy that keeps items in order: for statistics.
    fn oldest(&self, store: &Store, class: usize) -> Option<Chunk> {
        let _ = (store, class);
        None
    }

    /// True if the policy has no victim to offer to the class, so that it needs a page at once.
    fn is_starving(&self, store: &Store, class: usize) -> bool {
        let _ = (store, class);
        false
    }

    /// A victim has left for the sake of a class, and its memory is still the caller's.
    fn evicted(&self, store: &Store, class: usize, item: &Unlinked) {
        let _ = (store, class, item);
    }

    /// Recomputes what the policy keeps from the items that are in the index, with the class of each.
    fn audit(&self, store: &Store, items: &HashMap<Chunk, usize>) -> Result<(), AuditError> {
        let _ = (store, items);
        Ok(())
    }
}
