//! Models of what is under way ([`nuthatch_upstream::coherence`]): readers and writers of one key, and a server that carries their
//! requests out at any moment between their beginning and their end.

#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};
use loom::sync::{Arc, Mutex};
use loom::thread;
use nuthatch_base::hash::KeyHasher;
use nuthatch_engine::Key;
use nuthatch_upstream::coherence::{Role, Table};

/// A key, its item on the server, its copy, and the last change that was answered.
struct World {
    table: Table<u32>,
    server: AtomicU32,
    copy: Mutex<Option<u32>>,
    told: AtomicU32,
    hasher: KeyHasher,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            table: Table::default(),
            server: AtomicU32::new(0),
            copy: Mutex::new(None),
            told: AtomicU32::new(0),
            hasher: KeyHasher::seeded(1),
        })
    }

    fn key(&self) -> Key<'_> {
        Key::new(b"k", &self.hasher)
    }

    /// Reads as a handle does. None: the one that this has joined has left.
    fn read(&self) -> Option<u32> {
        if let Some(copy) = *self.copy.lock().unwrap() {
            return Some(copy);
        }
        match self.table.read(&self.key()) {
            Role::Join(join) => join.wait(),
            Role::Lead(lead) => {
                let found = self.server.load(SeqCst);
                lead.end(found, || *self.copy.lock().unwrap() = Some(found));
                Some(found)
            }
        }
    }

    /// Reads, and what it finds is no older than what was told before.
    fn read_and_check(&self) {
        let least = self.told.load(SeqCst);
        if let Some(found) = self.read() {
            assert!(found >= least, "{found} after {least}");
        }
    }

    /// Adds 1, as a handle changes an item. With `knows` what it has left may stay as a copy.
    fn change(&self, knows: bool) {
        let change = self.table.change(&self.key());
        *self.copy.lock().unwrap() = None;
        let now = self.server.fetch_add(1, SeqCst) + 1;
        match knows {
            true => change.end(|| *self.copy.lock().unwrap() = Some(now)),
            false => drop(change),
        }
        self.told.fetch_max(now, SeqCst);
    }
}

fn run(threads: [fn(&World); 2], own: fn(&World)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(3);
    model.check(move || {
        let world = World::new();
        let running = threads.map(|body| {
            let world = Arc::clone(&world);
            thread::spawn(move || body(&world))
        });
        own(&world);
        for thread in running {
            thread.join().unwrap();
        }
        // The copy that stayed, if one did, is what the server has.
        let copy = *world.copy.lock().unwrap();
        assert!(copy.is_none_or(|copy| copy == world.server.load(SeqCst)));
        world.read_and_check();
    });
}

#[test]
fn readers_beside_a_change() {
    run(
        [World::read_and_check, |world| world.change(true)],
        |world| {
            world.read_and_check();
            world.read_and_check();
        },
    );
}

#[test]
fn two_changes_and_a_reader() {
    run(
        [|world| world.change(true), |world| world.change(true)],
        World::read_and_check,
    );
}

#[test]
fn changes_of_unknown_outcome() {
    run(
        [|world| world.change(false), |world| world.change(true)],
        World::read_and_check,
    );
}

#[test]
fn a_reader_that_leaves_wakes_who_has_joined() {
    let leave = |world: &World| {
        if let Role::Lead(lead) = world.table.read(&world.key()) {
            drop(lead);
        }
    };
    run([leave, World::read_and_check], World::read_and_check);
}
