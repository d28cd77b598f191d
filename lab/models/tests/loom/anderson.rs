//! Models of Anderson's lock, with which LockHash's spinlock is compared.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use nuthatch_partition::{AndersonLock, Lock};

use crate::world::model;

/// A number of which loom reports each access that another one does not come before.
type Number = UnsafeCell<u64>;

fn add(number: &Number) {
    // SAFETY: loom reports it, if another thread has access.
    number.with_mut(|number| unsafe { *number += 1 });
}

fn read(number: &Number) -> u64 {
    // SAFETY: as above.
    number.with(|number| unsafe { *number })
}

/// Anderson 1 and 3: with fewer places than threads, as many or more, one thread at a time has the value, and sees what
/// the last one wrote. (Two threads: of three, two may wait for each other's turn for ever in a model.)
#[test]
fn one_thread_at_a_time_holds_it() {
    for places in [1, 2, 4] {
        model(3, move || {
            let lock = Arc::new(AndersonLock::new(Number::new(0), places));
            let other = {
                let lock = Arc::clone(&lock);
                thread::spawn(move || (0..2).for_each(|_| add(&lock.lock())))
            };
            (0..2).for_each(|_| add(&lock.lock()));
            other.join().unwrap();
            assert_eq!(read(&lock.lock()), 4);
        });
    }
}

/// Anderson 2: who does not wait takes the lock only when it is free, and then as its one holder.
#[test]
fn who_does_not_wait_takes_no_ones_place() {
    model(3, || {
        let lock = Arc::new(AndersonLock::new(Number::new(0), 2));
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                add(&lock.lock());
                add(&lock.lock());
            })
        };
        let taken = match lock.try_lock() {
            Some(number) => {
                add(&number);
                1
            }
            None => 0,
        };
        other.join().unwrap();
        assert_eq!(read(&lock.lock()), 2 + taken);
    });
}

/// Without the lock the model reports it.
#[test]
#[should_panic(expected = "currently writing to cell")]
fn canary_a_value_that_is_touched_after_the_guard_is_gone() {
    model(2, || {
        let lock = Arc::new(AndersonLock::new(Number::new(0), 2));
        let other = {
            let lock = Arc::clone(&lock);
            // The access lasts longer than the guard.
            thread::spawn(move || {
                let access = lock.lock().get_mut();
                thread::yield_now();
                drop(access);
            })
        };
        add(&lock.lock());
        other.join().unwrap();
    });
}
