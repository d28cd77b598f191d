//! Models of runs: parts of a page in which one thread appends without the stream's lock (`log/runs.rs`, "runs n").

use std::sync::Arc;

use loom::thread;
use nuthatch_engine::{Cursor, Expiry};
use nuthatch_store::fault::{self, Fault};
use nuthatch_store::item::fresh::Fresh;
use nuthatch_store::item::{Header, Shape};
use nuthatch_store::log::{Log, Need, Plan, Purpose, Stream};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::store::Placement;

use crate::moves::{LogStore, fields, log_store};
use crate::world::*;

/// What cleans the oldest page, whatever is in it.
const ROOM: Plan = Plan {
    need: Need::Room,
    evicts: true,
};

/// How the owner of a record ends it.
#[derive(Clone, Copy)]
enum End {
    /// It refers to it.
    Links,
    /// It gives it back.
    Frees,
}

/// Cuts a record off the thread's run, writes it and ends it. `None` if the page has been closed.
fn cut(store: &LogStore, number: usize, end: End) -> Option<Address> {
    let shape = Shape::new(8, 8, false, store.cut());
    let (address, run) = store.log().cut(store, number, &shape)?;
    // A walk that looked for a header in the middle of the record would find an item there.
    for at in 2..4 {
        store.arena.store(address, at, 8 | 8 << 8);
    }
    Header::new(&shape, &fields(1)).store(&store.arena, address);
    let fresh = Fresh {
        address,
        shape,
        uses: 0,
        run: Some(run),
    };
    match end {
        End::Links => Log::note_linked(store, &fresh, Expiry::Never),
        End::Frees => store.discard(fresh),
    }
    Some(address)
}

/// A store whose next threads cut runs: one has appended a record of four words, which is a gap.
fn shared_store(fault: Option<Fault>) -> Arc<LogStore> {
    fault::choose(fault);
    let store = log_store();
    let log = store.log();
    let shape = Shape::new(8, 8, false, store.cut());
    assert!(log.cut(&store, 0, &shape).is_none(), "it is alone");
    let first = log.append(&store, Stream::New, 32, None, Purpose::New);
    store.free_private(first.unwrap().address);
    store
}

/// Two records of a run, one after the other, beside another thread. Returns how many there was room for, and what the other
/// thread returned.
fn beside_a_run<T: 'static>(
    store: &Arc<LogStore>,
    end: End,
    other: impl FnOnce(&LogStore) -> T + 'static,
) -> (usize, T) {
    let thread = {
        let store = Arc::clone(store);
        thread::spawn(move || other(&store))
    };
    let records = (0..2).map_while(|_| cut(store, 1, end)).count();
    (records, thread.join().unwrap())
}

/// Runs 3, log 1: a walk meets records where they begin, whatever is cut off a run meanwhile.
fn walk_beside_a_run(fault: Option<Fault>) {
    model(3, move || {
        let store = shared_store(fault);
        beside_a_run(&store, End::Frees, |store| {
            let begins = |address: Address| {
                assert!([4, 8].contains(&(address.0 % 32)), "not a record's begin");
            };
            store.log().walk(store, Cursor::default(), 8, begins);
        });
        store.log().audit(&store).unwrap();
    });
}

#[test]
fn a_walk_beside_a_run_meets_whole_records() {
    walk_beside_a_run(None);
}

#[test]
#[should_panic(expected = "not a record's begin")]
fn canary_a_walk_beside_a_run_without_its_fence() {
    walk_beside_a_run(Some(Fault::CutsWithoutFence));
}

/// Runs 1, log 3: a page is cleaned only when no record of a run in it is private, and the rest of the run belongs to
/// nobody by then. All records are freed, so such a page is empty.
fn clean_beside_a_run(fault: Option<Fault>) {
    model(3, move || {
        let store = shared_store(fault);
        beside_a_run(&store, End::Frees, |store| {
            let log = store.log();
            log.close_open();
            if let Ok(mut work) = log.start_cleaning(store, &ROOM) {
                let cleaning = work.take().unwrap();
                assert!(log.finish_cleaning(store, &cleaning), "it is not empty");
            }
        });
        store.log().audit(&store).unwrap();
    });
}

#[test]
fn a_page_with_a_run_is_not_cleaned() {
    clean_beside_a_run(None);
}

#[test]
#[should_panic(expected = "private records, which are nobody's")]
fn canary_a_run_that_is_closed_while_its_record_is_private() {
    clean_beside_a_run(Some(Fault::ClosesTheBusy));
}

/// Runs 1: who cleans a page meets all records that were cut off a run in it. One that it did not meet would be lost with
/// the page.
fn meet_the_records_of_a_run(fault: Option<Fault>) {
    model(3, move || {
        let store = shared_store(fault);
        let (records, met) = beside_a_run(&store, End::Links, |store| {
            let log = store.log();
            log.close_open();
            let mut work = log.start_cleaning(store, &ROOM).ok()?;
            let page = work.take().unwrap().page;
            let mut met = 0;
            log.records(store, page, 1, 0, 8, |_, header| {
                met += usize::from(header.is_item());
            });
            Some(met)
        });
        if let Some(met) = met {
            assert_eq!(met, records, "a record is lost");
        }
    });
}

#[test]
fn a_cleaning_meets_the_records_of_a_run() {
    meet_the_records_of_a_run(None);
}

#[test]
#[should_panic(expected = "a record is lost")]
fn canary_a_record_is_settled_before_it_is_seen() {
    meet_the_records_of_a_run(Some(Fault::SettlesUnpublished));
}

/// Runs 2: threads that share a run get records of their own, one at a time.
fn share_a_run(fault: Option<Fault>) {
    model(3, move || {
        let store = shared_store(fault);
        let thread = {
            let store = Arc::clone(&store);
            thread::spawn(move || cut(&store, 2, End::Links))
        };
        let own = cut(&store, 1, End::Links);
        let other = thread.join().unwrap();
        assert!(own.is_none() || own != other, "given out twice");
        store.log().audit(&store).unwrap();
    });
}

#[test]
fn two_threads_share_a_run() {
    share_a_run(None);
}

#[test]
#[should_panic(expected = "runs 2: a record is settled twice")]
fn canary_two_records_of_a_run_are_private() {
    share_a_run(Some(Fault::CutsBesideAnother));
}
