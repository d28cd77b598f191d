//! Models of large values that are read in place.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_base::sync::stripes::Stripes;
use nuthatch_chained::{clock, lru};
use nuthatch_engine::{Engine, Op, Reply, Value};
use nuthatch_store::log::Queue;
use nuthatch_store::log::pages::Pages;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::pins::Pins;

use crate::chained;
use crate::world::*;

/// Over the models' copy limit, and in two pieces.
const LARGE: [u8; 200] = [7; 200];

/// Over the models' copy limit, in one chunk.
const SINGLE: [u8; 33] = [7; 33];

/// Store 1 and 2: a reader pins a value under the lock while another thread takes it out of the index. The last of them
/// frees it, once: the audit finds every chunk free or linked, and none twice. The models begin at different moments:
/// before the pin, with the reader or the writer first, and between pin and unpin.
fn the_last_one_frees(value: &'static [u8]) {
    let key = key_in(8, [0, 1]);
    let read = move |handle: &mut OurHandle| {
        let answer = run(handle, &[(key, Op::Get)]).remove(0);
        assert!(matches!(
            answer,
            Answer::Large(_) | Answer::Done(Reply::Miss)
        ));
        answer
    };
    for (preemptions, begin) in [(2, Begin::Write), (2, Begin::Read), (3, Begin::Pinned)] {
        model(preemptions, move || {
            let engine = engine(8);
            let mut handle = engine.handle();
            set_bytes(&mut handle, key, value);
            let mut other = engine.handle();
            match begin {
                Begin::Write => {
                    let reader = thread::spawn(move || drop(read(&mut other)));
                    assert!(delete(&mut handle, key));
                    reader.join().unwrap();
                }
                Begin::Read => {
                    let writer = thread::spawn(move || assert!(delete(&mut other, key)));
                    drop(read(&mut handle));
                    writer.join().unwrap();
                }
                Begin::Pinned => {
                    let answer = read(&mut handle);
                    let writer = thread::spawn(move || assert!(delete(&mut other, key)));
                    drop(answer);
                    writer.join().unwrap();
                }
            }
            audit(&engine);
            assert_eq!(used_chunks(&engine), 0);
        });
    }
}

/// The moment at which a model of a pinned value begins.
#[derive(Clone, Copy)]
enum Begin {
    Write,
    Read,
    Pinned,
}

fn used_chunks(engine: &Arc<impl Engine>) -> usize {
    engine
        .stats()
        .classes
        .iter()
        .map(|class| class.used_chunks)
        .sum()
}

#[test]
fn a_chunk_is_freed_once() {
    the_last_one_frees(&SINGLE);
}

#[test]
fn pieces_are_freed_once() {
    the_last_one_frees(&LARGE);
}

/// Store 2: the memory is full, and a store evicts a value while its reader unpins it. Its chunk is freed once: if both
/// threads freed it, two items would get it. The value has been used, so all others are evicted before it, `rounds`
/// times.
fn an_evicted_value_goes_to_one<E: Engine>(
    rounds: u64,
    make: impl Fn() -> Arc<E> + Send + Sync + 'static,
) {
    /// Two to a page, so that few stores fill the memory.
    const VALUE: [u8; 60] = [7; 60];
    model(2, move || {
        let engine = make();
        let mut handle = engine.handle();
        let mut keys = 0..;
        let mut store = |handle: &mut E::Handle| set_bytes(handle, keys.next().unwrap(), &VALUE);
        while engine.stats().evictions == 0 {
            store(&mut handle);
        }
        let items = engine.stats().items;
        // The newest item is pinned.
        let held = run(&mut handle, &[(items, Op::Get)]).remove(0);
        assert!(matches!(held, Answer::Large(_)));
        for _ in 0..rounds * (items - 1) {
            store(&mut handle);
        }
        let reader = thread::spawn(move || drop(held));
        store(&mut handle);
        reader.join().unwrap();
        assert!(matches!(
            run(&mut handle, &[(items, Op::Get)])[0],
            Answer::Done(Reply::Miss)
        ));
        audit(&engine);
        assert_eq!(used_chunks(&engine) as u64, engine.stats().items);
    });
}

/// The hand passes over a used value once.
const CLOCK: u64 = 2;

#[test]
fn an_evicted_value_goes_to_one_cuckoo() {
    an_evicted_value_goes_to_one(CLOCK, || engine(64));
}

#[test]
fn an_evicted_value_goes_to_one_chained() {
    an_evicted_value_goes_to_one(1, || chained::engine(&lru::KIND));
    an_evicted_value_goes_to_one(CLOCK, || chained::engine(&clock::KIND));
}

/// Store 1: a value that is replaced while it is pinned keeps its chunk and its bytes until it is unpinned, although
/// the writer stores other items at once.
#[test]
fn a_replaced_value_stays_until_it_is_unpinned() {
    let (key, other) = (key_in(8, [0, 1]), key_in(8, [2, 3]));
    let read = move |handle: &mut OurHandle| match run(handle, &[(key, Op::Get)]).remove(0) {
        Answer::Large(value) => {
            let bytes = value.chunk(0);
            assert!(bytes == [7; 33] || bytes == [8; 33], "{bytes:?}");
        }
        _ => panic!("a miss of a key that is always there"),
    };
    let write = move |handle: &mut OurHandle| {
        set_bytes(handle, key, &[8; 33]);
        set_bytes(handle, other, &[9; 33]);
    };
    for begin in [Begin::Write, Begin::Read] {
        model(2, move || {
            let engine = engine(8);
            let mut handle = engine.handle();
            set_bytes(&mut handle, key, &SINGLE);
            let mut beside = engine.handle();
            if matches!(begin, Begin::Read) {
                let writer = thread::spawn(move || write(&mut beside));
                read(&mut handle);
                writer.join().unwrap();
            } else {
                let reader = thread::spawn(move || read(&mut beside));
                write(&mut handle);
                reader.join().unwrap();
            }
            audit(&engine);
            assert_eq!(used_chunks(&engine), 2);
        });
    }
}

/// The protocol of `slab/pins.rs` with the bytes in the model: a pinned item is not overwritten before it is unpinned,
/// and exactly one side gets the right to free it. Readers' loads are not atomic, so loom requires that something
/// orders them before the next owner's writes, not only the order in which it ran them.
#[test]
fn pinned_bytes_stay_and_one_of_three_frees() {
    model(1, || {
        struct World {
            stripes: Stripes,
            slot: AtomicU64,
            pins: Pins<()>,
            bytes: UnsafeCell<u64>,
            freed: AtomicU64,
        }
        // SAFETY: the cell panics if two threads' accesses are not ordered.
        unsafe impl Sync for World {}
        impl World {
            fn free(&self) {
                self.freed.fetch_add(1, Ordering::Relaxed);
                // The next owner.
                // SAFETY: loom has just checked that no other access is concurrent.
                self.bytes.with_mut(|bytes| unsafe { *bytes = 9 });
            }
        }
        const CHUNK: Address = Address(0);
        let world = Arc::new(World {
            stripes: Stripes::new(2),
            slot: AtomicU64::new(1),
            pins: Pins::default(),
            bytes: UnsafeCell::new(0),
            freed: AtomicU64::new(0),
        });
        let read = |world: &World| {
            let guard = world.stripes.lock(world.stripes.pair(0, 1));
            let linked = world.slot.load(Ordering::Relaxed) == 1;
            if linked {
                world.pins.pin(CHUNK);
            }
            // It has changed nothing: the versions stay as they were.
            guard.release_unmodified();
            if linked {
                // SAFETY: loom has just checked that no thread writes.
                assert_eq!(world.bytes.with(|bytes| unsafe { *bytes }), 0);
                if world.pins.unpin(CHUNK, || ()).is_some() {
                    world.free();
                }
            }
        };
        let readers = [Arc::clone(&world), Arc::clone(&world)]
            .map(|world| thread::spawn(move || read(&world)));
        let guard = world.stripes.lock(world.stripes.pair(0, 1));
        world.slot.store(0, Ordering::Relaxed);
        drop(guard);
        if world.pins.release(CHUNK, ()).is_some() {
            world.free();
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(world.freed.load(Ordering::Relaxed), 1);
        assert!(world.pins.is_idle());
    });
}

/// The hint of `log/pages.rs`: a cleaning leaves a page because of a pin, and the reader drops the pin meanwhile. The
/// page is not passed over after that. As soon as nobody holds the item any more, it may be moved, and what lay there
/// overwritten: the reader has found the item's pages by then.
#[test]
fn a_page_is_tried_again_when_its_reader_has_finished() {
    model(3, || {
        const CHUNK: Address = Address(0);
        let world = Arc::new((
            Pins::<()>::default(),
            Pages::reserve(1).unwrap(),
            // The page, as the item's table gives it.
            UnsafeCell::new(0),
        ));
        let (pins, pages, table) = &*world;
        pages.open(0, 1, Queue::Probation, 0);
        pages.append(0, 4, 4);
        pages.link(0);
        pins.pin(CHUNK);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let (pins, pages, table) = &*world;
                let last = || {
                    // SAFETY: loom has just checked that no thread writes.
                    pages.note_unpinned(table.with(|page| unsafe { *page }));
                };
                assert!(pins.unpin(CHUNK, last).is_none());
            })
        };
        pages.note_tried(0);
        if pins.is_pinned(CHUNK) {
            pages.note_stuck(0, pages.held(0));
        } else {
            // SAFETY: loom has just checked that no other thread has the cell.
            table.with_mut(|page| unsafe { *page = 1 });
        }
        reader.join().unwrap();
        assert!(!pages.is_stuck(0));
    });
}
