//! Models of sequences, flushes and ages (`timestamps.rs`: "order n", `ages.rs`: "ages n").

use std::sync::Arc;

use loom::thread;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_engine::{Delta, Engine, Op, Store, StoreMode, Time};
use nuthatch_store::ages::Ages;
use nuthatch_store::timestamps::{SequenceBlock, Timestamps};

use crate::world::*;

fn second(number: u32) -> Time {
    Time(16 * number)
}

/// Ages 3: a search runs while a note is added and old notes become coarser. It finds a result that was right before or
/// after. In a model there is room for four notes; when they are full, the second is dropped.
#[test]
fn a_search_believes_no_half_written_notes() {
    let ages = |seconds: std::ops::RangeInclusive<u32>| {
        let (ages, next) = (Ages::default(), AtomicU64::new(0));
        for number in seconds {
            next.store(u64::from(10 * number), Ordering::Relaxed);
            ages.note(second(number), &next);
        }
        ages
    };
    model(2, move || {
        let notes = Arc::new(ages(1..=4));
        let reader = {
            let notes = Arc::clone(&notes);
            thread::spawn(move || [25, 55].map(|sequence| notes.time_of(sequence)))
        };
        notes.note(second(5), &AtomicU64::new(50));
        let [old, new] = reader.join().unwrap();
        assert!(old == second(2) || old == second(1), "{old:?}");
        assert!(new == second(4) || new == second(5), "{new:?}");
        assert_eq!(notes.time_of(55), second(5));
        assert_eq!(notes.time_of(25), second(1));
    });
}

/// Ages 2: two threads come to a new second at the same time; the sequences that they take then belong to that second.
#[test]
fn a_second_is_noted_before_its_first_sequence_is_taken() {
    model(3, || {
        let timestamps = Arc::new(Timestamps::default());
        let mut own = SequenceBlock::default();
        let earlier = timestamps.next_sequence(&mut own, second(1), 0);
        let other = {
            let timestamps = Arc::clone(&timestamps);
            thread::spawn(move || {
                let mut own = SequenceBlock::default();
                let sequence = timestamps.next_sequence(&mut own, second(2), 0);
                assert_eq!(timestamps.stored_at(sequence), second(2));
                sequence
            })
        };
        let sequence = timestamps.next_sequence(&mut own, second(2), 0);
        assert_eq!(timestamps.stored_at(sequence), second(2));
        assert_eq!(timestamps.stored_at(earlier), second(1));
        assert_ne!(sequence, other.join().unwrap());
    });
}

/// Order 1 and 2: two threads with their own blocks of sequences store one key, and one of them flushes. After the
/// flush no item is found that was stored before it, and every item that is stored then.
#[test]
fn a_flush_during_stores_divides_them() {
    let keys = [key_in(8, [0, 1]), key_in(8, [2, 3])];
    model(1, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        let mut other = engine.handle();
        // The other thread's block is the older one.
        set(&mut other, keys[1], 1);
        set(&mut handle, keys[0], 1);
        set(&mut handle, keys[1], 2);
        let writer = thread::spawn(move || {
            set(&mut other, keys[1], 3);
            other
        });
        engine.flush(NOW, NOW);
        assert_eq!(get(&mut handle, keys[0]), None);
        // Stored during the flush: before it or after it.
        assert!(matches!(get(&mut handle, keys[1]), None | Some(3)));
        set(&mut handle, keys[0], 4);
        assert_eq!(get(&mut handle, keys[0]), Some(4));
        let mut other = writer.join().unwrap();
        set(&mut other, keys[1], 5);
        assert_eq!(get(&mut handle, keys[1]), Some(5));
        audit(&engine);
    });
}

/// Order 4: a new item that is made from one while a flush takes the latter is dead as well, whichever comes first.
fn is_not_outlived(op: Op<'static>) {
    let key = key_in(8, [0, 1]);
    model(3, move || {
        let engine = engine(8);
        let mut handle = engine.handle();
        let mut other = engine.handle();
        set_bytes(&mut handle, key, b"1");
        let maker = thread::spawn(move || drop(run(&mut other, &[(key, op)])));
        engine.flush(NOW, NOW);
        maker.join().unwrap();
        assert!(matches!(
            run(&mut handle, &[(key, Op::Get)])[0],
            Answer::Done(_)
        ));
        audit(&engine);
    });
}

#[test]
fn an_append_does_not_outlive_a_flush() {
    is_not_outlived(Op::Store(Store {
        mode: StoreMode::Append,
        ..Store::set(b"+")
    }));
}

#[test]
fn a_number_does_not_outlive_a_flush() {
    is_not_outlived(Op::Delta(Delta::up(1)));
}

#[test]
fn a_store_over_what_must_be_there_does_not_outlive_a_flush() {
    is_not_outlived(Op::Store(Store {
        mode: StoreMode::Replace,
        ..Store::set(b"2")
    }));
}

/// Order 2: a thread that has seen the bar gets no sequence below it, neither from its block nor from a new one.
#[test]
fn a_thread_that_has_seen_a_flush_stores_after_it() {
    model(3, || {
        let timestamps = Arc::new(Timestamps::default());
        let take = |timestamps: &Timestamps, own: &mut SequenceBlock| {
            let bar = timestamps.bar();
            let sequence = timestamps.next_sequence(own, NOW, 0);
            assert!(sequence >= bar, "{sequence} is below {bar}");
        };
        let flusher = {
            let timestamps = Arc::clone(&timestamps);
            thread::spawn(move || {
                timestamps.next_sequence(&mut SequenceBlock::default(), NOW, 0);
                timestamps.flush(NOW, NOW);
            })
        };
        let mut own = SequenceBlock::default();
        take(&timestamps, &mut own);
        take(&timestamps, &mut own);
        flusher.join().unwrap();
        take(&timestamps, &mut own);
    });
}
