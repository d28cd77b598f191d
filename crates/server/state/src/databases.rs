//! The databases of Redis' clients: which namespace of keys each has.
//!
//! Database n begins with the first namespace that is made for it. SWAPDB exchanges two namespaces; FLUSHDB gives a
//! database a new, empty one, and what was in the old one is *left*: no client reaches it any more, and the maintenance
//! thread removes it. So neither looks at any item. Where nothing but database 0 is used, its flush is the engine's, and
//! its keys stay bare. memcached's clients use database 0.
//!
//! Invariants:
//! 1. No two databases have the same home (the database that a namespace was made for at first), so none has another's
//!    namespace.
//! 2. If an item may be in a database's namespace, its home is marked as used, or the namespace is the bare one. So a
//!    FLUSHDB of an unused one has nothing to do.

use std::sync::atomic::{AtomicU32, Ordering};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_engine::namespace::{DATABASES, Mapping, Namespace};

/// The databases of a server.
///
/// A request gets its database's namespace when it is parsed. If another worker changes that before the request is
/// carried out, it is carried out in the namespace that was its database's when it arrived.
pub struct Databases {
    /// By database. Written with Release, read with Acquire: who reads a namespace sees that its home was unmarked before
    /// (invariant 2).
    namespaces: [AtomicU32; DATABASES],
    /// Homes of which a request was made, a bit each. Relaxed: ordered by the accesses to `namespaces`.
    used: AtomicU32,
    /// The last generation. Held during a change.
    generation: Mutex<u32>,
    /// How often items were left, and how often the last sweep of such items knew of. Relaxed: only that the maintenance
    /// thread sees a change at last.
    left: AtomicU32,
    swept: AtomicU32,
}

/// What a FLUSHDB has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// Nothing more.
    Done,
    /// A flush of all items: no other database has any.
    ByFlush,
    /// There is no generation left.
    NoGeneration,
}

impl Default for Databases {
    fn default() -> Self {
        Self {
            namespaces: Mapping::default().0.map(|its| AtomicU32::new(its.number())),
            used: AtomicU32::new(0),
            generation: Mutex::new(0),
            left: AtomicU32::new(0),
            swept: AtomicU32::new(0),
        }
    }
}

impl Databases {
    /// The namespace of a database.
    #[inline]
    pub fn namespace(&self, database: usize) -> Namespace {
        // Acquire: pairs with the Release in `set`.
        Namespace::numbered(self.namespaces[database].load(Ordering::Acquire))
    }

    /// The namespaces of all.
    pub fn mapping(&self) -> Mapping {
        Mapping(std::array::from_fn(|database| self.namespace(database)))
    }

    /// Notes that a request is made in a namespace, before it is carried out.
    #[inline]
    pub fn note_use(&self, namespace: Namespace) {
        let bit = 1 << namespace.home();
        if namespace != Namespace::BARE && self.used.load(Ordering::Relaxed) & bit == 0 {
            self.used.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Notes that items of the databases with these bits were loaded.
    pub fn note_loaded(&self, databases: u32) {
        self.used.fetch_or(databases & !1, Ordering::Relaxed);
    }

    /// True if all items are in the bare namespace, and database 0 has that.
    pub fn is_one(&self) -> bool {
        self.used.load(Ordering::Relaxed) == 0
            && self.left_to_sweep().is_none()
            && self.namespace(0) == Namespace::BARE
    }

    /// SWAPDB. The caller has the engine to itself.
    pub fn swap(&self, one: usize, other: usize) {
        let changing = self.generation.lock();
        let (left, right) = (self.namespace(one), self.namespace(other));
        self.set(&changing, one, right);
        self.set(&changing, other, left);
    }

    /// FLUSHDB, but for the flush that the caller may have to make. The caller has the engine to itself: a request that
    /// was noted later is carried out later, behind that flush.
    pub fn empty(&self, database: usize) -> Emptied {
        let mut generation = self.generation.lock();
        let namespace = self.namespace(database);
        let used = self.used.load(Ordering::Relaxed);
        let is_bare = namespace == Namespace::BARE;
        if is_bare && used == 0 {
            return Emptied::ByFlush;
        }
        if !is_bare && used >> namespace.home() & 1 == 0 {
            return Emptied::Done;
        }
        if *generation == Namespace::GENERATION_MAX {
            return Emptied::NoGeneration;
        }
        *generation += 1;
        let home = namespace.home();
        let next = Namespace::of(home, *generation);
        self.used.fetch_and(!(1 << home), Ordering::Relaxed);
        self.set(&generation, database, next);
        self.left.fetch_add(1, Ordering::Relaxed);
        Emptied::Done
    }

    /// All items have just been flushed. Each database is at home again.
    pub fn all_emptied(&self) {
        let mut generation = self.generation.lock();
        let used = self.used.load(Ordering::Relaxed);
        let before = self.mapping();
        for home in 0..DATABASES {
            let last = before.0.iter().find(|its| its.home() == home);
            let is_used = used >> home & 1 == 1;
            let next = if home == 0 {
                Namespace::BARE
            } else if is_used && *generation < Namespace::GENERATION_MAX {
                *generation += 1;
                Namespace::of(home, *generation)
            } else {
                // Without another generation it stays marked: a request that was noted may still be carried out.
                self.set(&generation, home, last.copied().unwrap_or_default());
                continue;
            };
            self.used.fetch_and(!(1 << home), Ordering::Relaxed);
            self.set(&generation, home, next);
        }
    }

    fn set(&self, _: &MutexGuard<'_, u32>, database: usize, namespace: Namespace) {
        // Release: pairs with the Acquire in `namespace`.
        self.namespaces[database].store(namespace.number(), Ordering::Release);
    }

    /// If there may be items that no database has: what to give to [`Self::note_swept`] when a sweep has removed them.
    pub fn left_to_sweep(&self) -> Option<u32> {
        let left = self.left.load(Ordering::Relaxed);
        (left != self.swept.load(Ordering::Relaxed)).then_some(left)
    }

    /// Notes that a sweep has removed what was left before it began.
    pub fn note_swept(&self, left: u32) {
        self.swept.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_database_is_flushed_by_the_engine_and_keeps_bare_keys() {
        let databases = Databases::default();
        databases.note_use(databases.namespace(0));
        assert_eq!(databases.empty(0), Emptied::ByFlush);
        // Nothing was in it.
        assert_eq!(databases.empty(3), Emptied::Done);
        databases.all_emptied();
        assert!(databases.is_one());
        assert_eq!(databases.mapping(), Mapping::default());
    }

    #[test]
    fn an_emptied_database_has_a_namespace_that_was_never_used() {
        let databases = Databases::default();
        let mut seen = std::collections::HashSet::new();
        for turn in 0..1000 {
            for database in [0, 1, 15] {
                let namespace = databases.namespace(database);
                databases.note_use(namespace);
                assert!(seen.insert(namespace) || namespace == Namespace::BARE);
            }
            databases.swap(turn % DATABASES, (turn * 7) % DATABASES);
            let homes = databases.mapping().0.map(Namespace::home);
            assert_eq!(homes.iter().fold(0, |all, home| all | 1 << home), u16::MAX);
            match turn % 3 {
                0 => databases.all_emptied(),
                _ => {
                    for database in 0..DATABASES {
                        assert_eq!(databases.empty(database), Emptied::Done, "{turn}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_swap_exchanges_and_a_flush_of_all_undoes_it() {
        let databases = Databases::default();
        let before = databases.mapping();
        databases.swap(0, 5);
        assert_eq!(databases.namespace(0), before.0[5]);
        assert_eq!(databases.namespace(5), before.0[0]);
        assert!(!databases.is_one());
        databases.all_emptied();
        assert_eq!(databases.mapping(), before);
    }

    #[test]
    fn what_is_left_is_to_be_swept_once() {
        let databases = Databases::default();
        databases.note_use(databases.namespace(2));
        assert_eq!(databases.empty(2), Emptied::Done);
        let left = databases.left_to_sweep().unwrap();
        databases.note_use(databases.namespace(2));
        assert_eq!(databases.empty(2), Emptied::Done);
        databases.note_swept(left);
        let later = databases.left_to_sweep().unwrap();
        databases.note_swept(later);
        assert_eq!(databases.left_to_sweep(), None);
    }
}
