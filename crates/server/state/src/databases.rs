//! The databases of Redis' clients: which namespace of keys each has.
//!
//! Database n begins with the first namespace that is made for it. SWAPDB exchanges two namespaces; FLUSHDB gives a
//! database a new, empty one, and what was in the old one is *left*: no client reaches it any more, and the maintenance
//! thread removes it. So neither looks at any item. Where nothing but database 0 is used, its flush is the engine's, and
//! its keys stay bare. memcached's clients use database 0.
//!
//! A request gets its database's namespace when it is parsed. If another worker changes that before the request is
//! carried out, it is carried out in the namespace that was its database's when it arrived.
//!
//! Invariants:
//! 1. No two databases have the same home (the database that a namespace was made for at first), so none has another's
//!    namespace.
//! 2. If an item may be in a database's namespace, its home is marked as used, or the namespace is the bare one. So a
//!    FLUSHDB of an unused one has nothing to do.
//! 3. A namespace that a FLUSHDB, or a flush of all items, takes from its database is never a database's again, not even
//!    the bare one. So what is left does not come back. Only a SWAPDB gives a database a namespace that another had.
//! 4. An item that no database has is removed by a sweep that is still to begin or under way.
//!
//! These need no model of their interleavings, since there are few:
//! * Changes do not meet: each holds `generation` from its first look to its last store. So 1 and 3 are about one thread,
//!   whose tests are below. A request reads one word meanwhile, that of before or of behind the change. Who reads all of
//!   them ([`Databases::mapping`]) holds `generation` too: halfway through a SWAPDB one of the two namespaces has no
//!   database, and a sweep would take its items for left ones.
//! * A sweep asks which namespaces have no database when it has met their items. What it met was stored in a namespace
//!   that had one before. So if it has none now, the item is a left one (3).
//! * FLUSHDB, and SWAPDB, happen while their worker has the engine to itself (all workers' locks): a request was carried
//!   out before, or will be carried out behind the change. One that was before was marked before (2), and its item is found
//!   by the sweep (4). One that is behind either read the namespace behind the change, so its mark is not the one that the
//!   change took away; or it began before the change, and goes to a namespace that has no database. Its iteration
//!   knows `emptied` from before it read a namespace, finds another number at its end, and asks for another sweep, which
//!   begins behind the store (4). It sees the new number: it took a lock that the change had held. A value that arrives
//!   in several iterations asks whether its namespace has a database when it is stored.
//! * A flush of all items does not have the engine to itself. An item from before the engine's own flush is dead. One that
//!   is stored between that and the change of the namespaces goes with those from before, since its request was under way
//!   during the flush, and the sweep that the change asks for removes it. It gives no database another's namespace:
//!   a request that another worker has read and not carried out yet would be carried out in the wrong database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_engine::namespace::{DATABASES, Mapping, Namespace};
use nuthatch_engine::sharing::Sharing;

/// The databases of a server.
pub struct Databases {
    /// By database. Written with Release, read with Acquire: who reads a namespace sees that its home was unmarked before
    /// (invariant 2).
    namespaces: [AtomicU32; DATABASES],
    /// Homes of which a request was made, a bit each. Relaxed: ordered by the accesses to `namespaces`.
    used: AtomicU32,
    /// The last generation. Held during a change.
    generation: Mutex<u32>,
    /// How often each database was swapped. Written with Release behind the namespaces, read with Acquire before them.
    swaps: [AtomicU32; DATABASES],
    /// How often a namespace was taken from its database.
    emptied: AtomicU32,
    /// Who reads the engine's memory in other processes is told of database 0.
    readers: Option<Arc<dyn Sharing>>,
    /// How often items were left, and how often the last sweep of such items knew of.
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

impl Databases {
    /// Those of a server whose memory may be shared.
    pub fn new(readers: Option<Arc<dyn Sharing>>) -> Self {
        Self {
            readers,
            namespaces: Mapping::default().0.map(|its| AtomicU32::new(its.number())),
            used: AtomicU32::new(0),
            generation: Mutex::new(0),
            swaps: Default::default(),
            emptied: AtomicU32::new(0),
            left: AtomicU32::new(0),
            swept: AtomicU32::new(0),
        }
    }

    /// The namespace of a database.
    #[inline]
    pub fn namespace(&self, database: usize) -> Namespace {
        // Acquire: pairs with the Release in `set`.
        Namespace::numbered(self.namespaces[database].load(Ordering::Acquire))
    }

    /// The database that has a namespace, or that has had it until a moment ago, if there is one.
    pub fn database_of(&self, namespace: Namespace) -> Option<usize> {
        (0..DATABASES).find(|database| self.namespace(*database) == namespace)
    }

    /// The namespaces of all, at one moment.
    pub fn mapping(&self) -> Mapping {
        self.mapping_of(&self.generation.lock())
    }

    fn mapping_of(&self, _: &MutexGuard<'_, u32>) -> Mapping {
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

    /// True if nothing was stored in a database, or looked for, since it was emptied: a FLUSHDB of it would change nothing.
    /// Of the bare namespace this is not known.
    pub fn is_unused(&self, database: usize) -> bool {
        let _changing = self.generation.lock();
        self.has_no_use(self.namespace(database))
    }

    fn has_no_use(&self, namespace: Namespace) -> bool {
        let is_marked = self.used.load(Ordering::Relaxed) >> namespace.home() & 1 == 1;
        namespace != Namespace::BARE && !is_marked
    }

    /// SWAPDB. The caller has the engine to itself.
    pub fn swap(&self, one: usize, other: usize) {
        let changing = self.generation.lock();
        let (left, right) = (self.namespace(one), self.namespace(other));
        self.set(&changing, one, right);
        self.set(&changing, other, left);
        for database in [one, other] {
            // Release: pairs with the Acquire in `swaps`.
            self.swaps[database].fetch_add(1, Ordering::Release);
        }
    }

    /// How often a database was swapped. The namespace that it has behind this may be of a later swap, not of an earlier one.
    pub fn swaps(&self, database: usize) -> u32 {
        // Acquire: pairs with the Release in `swap`.
        self.swaps[database].load(Ordering::Acquire)
    }

    /// FLUSHDB, but for the flush that the caller may have to make. The caller has the engine to itself: a request that
    /// was noted later is carried out later, behind that flush.
    pub fn empty(&self, database: usize) -> Emptied {
        let mut generation = self.generation.lock();
        let namespace = self.namespace(database);
        if namespace == Namespace::BARE && self.used.load(Ordering::Relaxed) == 0 {
            return Emptied::ByFlush;
        }
        if self.has_no_use(namespace) {
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
        self.note_emptied(&generation);
        Emptied::Done
    }

    /// All items have just been flushed. Each database keeps its home, and a used one gets its next generation: so it
    /// counts as unused, and a request that was noted before may still be carried out in the last one.
    pub fn all_emptied(&self) {
        let mut generation = self.generation.lock();
        let used = self.used.load(Ordering::Relaxed);
        let before = self.mapping_of(&generation);
        for (database, namespace) in before.0.into_iter().enumerate() {
            let home = namespace.home();
            let is_used = namespace != Namespace::BARE && used >> home & 1 == 1;
            // Without another generation it keeps its namespace and its mark.
            if is_used && *generation < Namespace::GENERATION_MAX {
                *generation += 1;
                self.used.fetch_and(!(1 << home), Ordering::Relaxed);
                self.set(&generation, database, Namespace::of(home, *generation));
            }
        }
        // Where nothing but the bare namespace was used, nothing has changed.
        if before != self.mapping_of(&generation) {
            self.note_emptied(&generation);
        }
    }

    fn note_emptied(&self, _: &MutexGuard<'_, u32>) {
        // Release: pairs with the Acquire in `emptied`.
        self.emptied.fetch_add(1, Ordering::Release);
        self.note_left();
    }

    fn note_left(&self) {
        // Release: pairs with the Acquire in `left_to_sweep`: the sweep knows the change of the namespaces.
        self.left.fetch_add(1, Ordering::Release);
    }

    /// How often a namespace was taken from its database: to be asked before the namespace of a request is, and given to
    /// [`Self::note_end`] behind it.
    #[inline]
    pub fn emptied(&self) -> u32 {
        // Acquire: pairs with the Release in `note_emptied`.
        self.emptied.load(Ordering::Acquire)
    }

    /// Notes that an item was stored whose key got its namespace in an earlier iteration of its worker (invariant 4).
    pub fn note_stored(&self, namespace: Namespace) {
        if self.mapping().database_of(namespace).is_none() {
            self.note_left();
        }
    }

    /// Notes the end of requests before which [`Self::emptied`] was this: they may have left items (invariant 4).
    #[inline]
    pub fn note_end(&self, emptied_before: u32) {
        if self.emptied() != emptied_before {
            self.note_left();
        }
    }

    fn set(&self, _: &MutexGuard<'_, u32>, database: usize, namespace: Namespace) {
        // Release: pairs with the Acquire in `namespace`.
        self.namespaces[database].store(namespace.number(), Ordering::Release);
        if let (0, Some(readers)) = (database, &self.readers) {
            readers.set_namespace(namespace);
        }
    }

    /// If there may be items that no database has: what to give to [`Self::note_swept`] when a sweep has removed them.
    pub fn left_to_sweep(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `note_left`.
        let left = self.left.load(Ordering::Acquire);
        // Relaxed: the maintenance thread alone writes it; for others it is a statistic.
        (left != self.swept.load(Ordering::Relaxed)).then_some(left)
    }

    /// Notes that a sweep has removed what was left before it began.
    pub fn note_swept(&self, left: u32) {
        self.swept.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn one_database_is_flushed_by_the_engine_and_keeps_bare_keys() {
        let databases = Databases::new(None);
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
        let databases = Databases::new(None);
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
    fn a_swap_exchanges_and_a_second_one_undoes_it() {
        let databases = Databases::new(None);
        let before = databases.mapping();
        databases.swap(0, 5);
        assert_eq!(databases.namespace(0), before.0[5]);
        assert_eq!(databases.namespace(5), before.0[0]);
        assert!(!databases.is_one());
        databases.swap(5, 0);
        assert_eq!(databases.mapping(), before);
        assert!(databases.is_one());
    }

    /// Another worker may still carry out requests in the namespaces from before.
    #[test]
    fn a_flush_of_all_gives_no_database_the_namespace_of_another() {
        for generation in [0, Namespace::GENERATION_MAX] {
            let databases = Databases::new(None);
            *databases.generation.lock() = generation;
            databases.swap(0, 5);
            databases.swap(3, 4);
            for database in [0, 3, 5] {
                databases.note_use(databases.namespace(database));
            }
            let before = databases.mapping();
            databases.all_emptied();
            let after = databases.mapping();
            for (database, namespace) in after.0.into_iter().enumerate() {
                assert_eq!(namespace.home(), before.0[database].home());
                let had = before.database_of(namespace);
                assert!(had.is_none_or(|it| it == database), "{database}");
            }
            assert_eq!(databases.namespace(5), Namespace::BARE);
            assert!(!databases.is_one());
        }
    }

    #[test]
    fn the_bare_namespace_does_not_come_back_to_a_database_that_was_emptied_beside_others() {
        let databases = Databases::new(None);
        databases.note_use(databases.namespace(1));
        assert_eq!(databases.empty(0), Emptied::Done);
        databases.all_emptied();
        sweep(&databases);
        assert_eq!(databases.mapping().database_of(Namespace::BARE), None);
        assert!(!databases.is_one());
    }

    #[test]
    fn a_database_is_unused_until_a_request_is_made_of_it() {
        let databases = Databases::new(None);
        assert!(!databases.is_unused(0) && databases.is_unused(2));
        databases.note_use(databases.namespace(2));
        assert!(!databases.is_unused(2));
        assert_eq!(databases.empty(2), Emptied::Done);
        assert!(databases.is_unused(2));
        databases.swap(0, 2);
        assert!(databases.is_unused(0) && !databases.is_unused(2));
    }

    /// Sweeps all that is left now.
    fn sweep(databases: &Databases) {
        while let Some(left) = databases.left_to_sweep() {
            databases.note_swept(left);
        }
    }

    #[test]
    fn what_is_stored_behind_a_flush_is_swept_too() {
        let databases = Databases::new(None);
        let flushes: [&dyn Fn(); 2] = [&|| assert_eq!(databases.empty(2), Emptied::Done), &|| {
            databases.all_emptied()
        }];
        for flush in flushes {
            let (began, namespace) = (databases.emptied(), databases.namespace(2));
            databases.note_use(namespace);
            flush();
            sweep(&databases);
            // Requests of an iteration that began before, and a value that did.
            databases.note_end(began);
            assert!(databases.left_to_sweep().is_some());
            sweep(&databases);
            databases.note_stored(namespace);
            assert!(databases.left_to_sweep().is_some());
            sweep(&databases);
            // What began behind it.
            databases.note_end(databases.emptied());
            databases.note_stored(databases.namespace(2));
            assert_eq!(databases.left_to_sweep(), None);
        }
    }

    #[test]
    fn a_flush_of_database_0_alone_and_a_swap_leave_nothing() {
        let databases = Databases::new(None);
        let began = databases.emptied();
        databases.all_emptied();
        databases.swap(0, 1);
        databases.note_end(began);
        assert_eq!(databases.left_to_sweep(), None);
    }

    /// A sweep that met a SWAPDB halfway would remove the items of a database.
    #[test]
    fn every_mapping_has_all_namespaces() {
        let databases = Databases::new(None);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..20_000).for_each(|turn| databases.swap(turn % 16, turn / 16 % 16));
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                let homes = databases.mapping().0.map(Namespace::home);
                assert_eq!(homes.iter().fold(0, |all, home| all | 1 << home), u16::MAX);
            }
        });
    }

    #[test]
    fn what_is_left_is_to_be_swept_once() {
        let databases = Databases::new(None);
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
