//! What is under way to the servers behind this one: one reader reads a key for all, and a copy never outlives a change.
//!
//! Invariants. A *place* stands for the keys whose hashes end alike, and has a lock.
//!
//! 1. A copy is stored under its place's lock, and only if between the beginning of what found it and this moment no other change
//!    of the place was under way. (Of two changes nobody here knows which the server makes first.)
//! 2. Who changes an item removes its copy between the beginning of the change ([`Table::change`]) and its request. So while
//!    a change is under way there is no copy of its key.
//! 3. Who joins a read joins one that began while no change of the place was under way, and since which none of its key has
//!    begun.
//! 4. A read ends whatever happens ([`Lead`]'s drop), so nobody waits for ever.
//!
//! Together: once a change was answered, no reader on this machine gets a value from before it.

use std::sync::Arc;

use nuthatch_base::sync::mutex::{Condvar, Mutex};
use nuthatch_engine::Key;

/// Places, a power of two. Keys that share one keep a few copies from being stored, and nothing else.
const PLACES: usize = if cfg!(loom) { 1 } else { 4096 };

/// All that is under way. `T` is what a read finds.
#[derive(Debug)]
pub struct Table<T> {
    places: Box<[Mutex<Place<T>>]>,
}

#[derive(Debug)]
struct Place<T> {
    /// Changes under way.
    changes: u32,
    /// Changes that have begun, ever.
    begun: u64,
    /// Reads under way that others may join.
    reads: Vec<Read<T>>,
}

/// A read that others may join.
#[derive(Debug)]
struct Read<T> {
    key: Box<[u8]>,
    shared: Arc<Shared<T>>,
}

/// A read that several wait for.
#[derive(Debug)]
struct Shared<T> {
    outcome: Mutex<Outcome<T>>,
    ended: Condvar,
}

/// What became of a read.
#[derive(Debug)]
enum Outcome<T> {
    UnderWay,
    Found(T),
    /// Its reader has left without an answer.
    Left,
}

/// What a reader does that finds no copy.
#[derive(Debug)]
pub enum Role<'t, T: Clone> {
    /// It asks the server.
    Lead(Lead<'t, T>),
    /// It waits for another that does.
    Join(Join<T>),
}

/// A read that asks the server.
#[derive(Debug)]
pub struct Lead<'t, T: Clone> {
    place: &'t Mutex<Place<T>>,
    /// Changes that had begun when it did. None: one was under way, so nothing that it finds is kept or shared.
    begun: Option<u64>,
    shared: Arc<Shared<T>>,
}

/// A read that waits for another.
#[derive(Debug)]
pub struct Join<T>(Arc<Shared<T>>);

/// A change under way. It ends when it is dropped.
#[derive(Debug)]
pub struct Change<'t, T> {
    place: &'t Mutex<Place<T>>,
    /// Its number among those of its place. None: another was under way as it began, so it leaves no copy.
    number: Option<u64>,
}

/// A change of all items under way. It ends when it is dropped.
#[derive(Debug)]
pub struct ChangeOfAll<'t, T>(
    #[expect(dead_code, reason = "each ends when it is dropped")] Vec<Change<'t, T>>,
);

impl<T> Default for Table<T> {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| Mutex::new(Place::default()));
        Self {
            places: places.collect(),
        }
    }
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self {
            changes: 0,
            begun: 0,
            reads: Vec::new(),
        }
    }
}

impl<T: Clone> Table<T> {
    fn place(&self, key: &Key<'_>) -> &Mutex<Place<T>> {
        &self.places[key.hash() as usize & (PLACES - 1)]
    }

    /// Begins a read of a key that has no copy.
    pub fn read(&self, key: &Key<'_>) -> Role<'_, T> {
        let slot = self.place(key);
        let mut place = slot.lock();
        let is_quiet = place.changes == 0;
        if is_quiet && let Some(shared) = place.shared(key.bytes()) {
            return Role::Join(Join(shared));
        }
        let shared = Arc::new(Shared::default());
        if is_quiet {
            place.reads.push(Read {
                key: key.bytes().into(),
                shared: Arc::clone(&shared),
            });
        }
        Role::Lead(Lead {
            place: slot,
            begun: is_quiet.then_some(place.begun),
            shared,
        })
    }

    /// Begins a change of a key. The caller removes the copy before it sends the request (invariant 2).
    pub fn change(&self, key: &Key<'_>) -> Change<'_, T> {
        Change::begin(self.place(key), |read| *read == *key.bytes())
    }

    /// Begins a change of all keys. The caller removes all copies before it sends the request.
    pub fn change_all(&self) -> ChangeOfAll<'_, T> {
        let places = self.places.iter();
        ChangeOfAll(places.map(|place| Change::begin(place, |_| true)).collect())
    }
}

impl<T> Place<T> {
    fn shared(&self, key: &[u8]) -> Option<Arc<Shared<T>>> {
        let read = self.reads.iter().find(|read| *read.key == *key);
        read.map(|read| Arc::clone(&read.shared))
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            outcome: Mutex::new(Outcome::UnderWay),
            ended: Condvar::default(),
        }
    }
}

impl<T> Shared<T> {
    /// The first outcome stays.
    fn end(&self, outcome: Outcome<T>) {
        let mut present = self.outcome.lock();
        if let Outcome::UnderWay = *present {
            *present = outcome;
            self.ended.notify_all();
        }
    }
}

impl<T: Clone> Lead<'_, T> {
    /// Ends the read with what it found, and tells those who have joined it. `keep` stores the copy; it is called if that may
    /// stay, under a lock (invariant 1).
    pub fn end(mut self, found: T, keep: impl FnOnce()) {
        if let Some(begun) = self.begun.take() {
            let mut place = self.place.lock();
            self.leave(&mut place);
            if place.changes == 0 && begun == place.begun {
                keep();
            }
        }
        self.shared.end(Outcome::Found(found));
    }

    /// Nobody joins it from here on.
    fn leave(&self, place: &mut Place<T>) {
        place
            .reads
            .retain(|read| !Arc::ptr_eq(&read.shared, &self.shared));
    }
}

impl<T: Clone> Drop for Lead<'_, T> {
    /// Invariant 4. After [`Lead::end`] this finds nothing to do.
    fn drop(&mut self) {
        if self.begun.is_some() {
            self.leave(&mut self.place.lock());
        }
        self.shared.end(Outcome::Left);
    }
}

impl<T: Clone> Join<T> {
    /// Waits for what the other finds. None: it has left without an answer. The caller has ended all reads of its own that others
    /// may have joined: otherwise two could wait for each other.
    pub fn wait(&self) -> Option<T> {
        let mut outcome = self.0.outcome.lock();
        loop {
            match &*outcome {
                Outcome::UnderWay => outcome = self.0.ended.wait(outcome),
                Outcome::Found(found) => return Some(found.clone()),
                Outcome::Left => return None,
            }
        }
    }
}

impl<'t, T> Change<'t, T> {
    /// Begins one, of these keys. Nobody joins a read of them that began before.
    fn begin(slot: &'t Mutex<Place<T>>, changes: impl Fn(&[u8]) -> bool) -> Self {
        let mut place = slot.lock();
        place.reads.retain(|read| !changes(&read.key));
        place.changes += 1;
        place.begun += 1;
        Self {
            place: slot,
            number: (place.changes == 1).then_some(place.begun),
        }
    }

    /// Ends the change. `keep` stores what it has left on the server; it is called if that may stay, under a lock (invariant 1).
    pub fn end(self, keep: impl FnOnce()) {
        let place = self.place.lock();
        // No other has begun since.
        if self.number == Some(place.begun) {
            keep();
        }
    }
}

impl<T> Drop for Change<'_, T> {
    fn drop(&mut self) {
        self.place.lock().changes -= 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use nuthatch_base::hash::KeyHasher;

    use super::*;

    fn lead<'t>(table: &'t Table<u32>, key: &Key<'_>) -> Lead<'t, u32> {
        match table.read(key) {
            Role::Lead(lead) => lead,
            Role::Join(_) => panic!("joined"),
        }
    }

    /// Whether what the read finds is kept.
    fn is_kept(lead: Lead<'_, u32>) -> bool {
        let mut kept = false;
        lead.end(1, || kept = true);
        kept
    }

    fn with_key(body: impl Fn(&Table<u32>, &Key<'_>)) {
        let hasher = KeyHasher::seeded(1);
        body(&Table::default(), &Key::new(b"k", &hasher));
    }

    #[test]
    fn readers_of_a_key_join_the_first_until_it_ends() {
        with_key(|table, key| {
            let first = lead(table, key);
            let Role::Join(second) = table.read(key) else {
                panic!("leads")
            };
            first.end(7, || {});
            assert_eq!(second.wait(), Some(7));
            let third = lead(table, key);
            let Role::Join(fourth) = table.read(key) else {
                panic!("leads")
            };
            drop(third);
            assert_eq!(fourth.wait(), None);
        });
    }

    #[test]
    fn what_was_read_beside_a_change_is_neither_kept_nor_shared() {
        with_key(|table, key| {
            assert!(is_kept(lead(table, key)));
            let before = lead(table, key);
            let change = table.change(key);
            let beside = lead(table, key);
            let also = lead(table, key);
            assert!(!is_kept(before) && !is_kept(beside));
            change.end(|| {});
            assert!(!is_kept(also));
            assert!(is_kept(lead(table, key)));
        });
    }

    #[test]
    fn of_two_changes_at_a_time_none_leaves_a_copy() {
        with_key(|table, key| {
            let kept = |change: Change<'_, u32>| {
                let mut kept = false;
                change.end(|| kept = true);
                kept
            };
            assert!(kept(table.change(key)));
            let (first, second) = (table.change(key), table.change(key));
            assert!(!kept(second) && !kept(first));
            let (first, second) = (table.change(key), table.change(key));
            assert!(!kept(first) && !kept(second));
            let before = lead(table, key);
            drop(table.change_all());
            assert!(!is_kept(before));
        });
    }
}
