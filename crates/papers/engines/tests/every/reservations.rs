//! Reservations, which take values that arrive piece by piece, of every engine. Safe code must not be able to make one
//! that writes outside its memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nuthatch_engine::{
    AnyEngine, Audit, Engine, Handle, Key, Reply, Reservation, Store, StoreMode, Time,
};

use crate::engines::{Check, every_engine, get};

const NOW: Time = Time(16);

/// Class: arithmetic on a size that the caller passes.
#[test]
fn no_length_is_reserved_that_the_engine_cannot_hold() {
    struct Lengths;
    impl Check for Lengths {
        fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>) {
            let engine = make();
            let mut handle = engine.handle();
            let key = Key::new(b"a key", engine.hasher());
            let most = engine.item_size_max();
            let near = (0..512).map(|less| usize::MAX - less);
            let halves = [usize::MAX / 2, usize::MAX / 2 + 1, isize::MAX as usize - 64];
            let wraps = [
                1_usize << 32,
                (1 << 32) + 100,
                (1 << 48) + 100,
                (1 << 60) + 100,
            ];
            for len in near.chain(halves).chain(wraps).chain([most, most + 1]) {
                assert!(
                    matches!(handle.reserve(NOW, key, len), Err(Reply::TooLarge)),
                    "{name}: {len} bytes"
                );
            }
            // And the largest value that it holds is stored whole.
            let reserved = handle.reserve(NOW, key, most - 512).unwrap();
            assert_eq!(reserved.missing(), most - 512);
            drop(reserved);
            drop(handle);
            engine.audit().unwrap();
        }
    }
    every_engine(&Lengths);
}

#[test]
fn a_reservation_is_not_written_beyond_its_length() {
    struct Beyond;
    impl Check for Beyond {
        fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>) {
            let engine = make();
            let key = Key::new(b"a key", engine.hasher());
            let mut reserved = engine.handle().reserve(NOW, key, 10).unwrap();
            reserved.write(b"12345678");
            let more = catch_unwind(AssertUnwindSafe(|| reserved.write(b"901")));
            assert!(more.is_err(), "{name}");
            assert_eq!(reserved.missing(), 2);
        }
    }
    every_engine(&Beyond);
}

/// A reservation's memory belongs to its own engine. In another engine it would name whatever lies in the same place.
#[test]
fn a_reservation_of_another_engine_is_refused() {
    struct Foreign;
    impl Check for Foreign {
        fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>) {
            for mode in [StoreMode::Set, StoreMode::Append] {
                let (home, abroad) = (make(), make());
                let key = |engine: &AnyEngine| Key::new(b"a key", engine.hasher());
                let store = Store {
                    mode,
                    ..Store::set(b"")
                };
                let mut reserved = home.handle().reserve(NOW, key(&home), 5).unwrap();
                reserved.write(b"value");
                let mut handle = abroad.handle();
                let commit = AssertUnwindSafe(|| handle.commit(NOW, reserved, &store));
                assert!(catch_unwind(commit).is_err(), "{name}");
                drop(handle);
                assert_eq!(get(&abroad, NOW, b"a key"), None, "{name}");
                home.audit().unwrap();
                abroad.audit().unwrap();
                // A reservation that is given to its own engine is stored there.
                let mut reserved = home.handle().reserve(NOW, key(&home), 5).unwrap();
                reserved.write(b"value");
                let stored = home.handle().commit(NOW, reserved, &Store::set(b""));
                assert!(matches!(stored, Reply::Stored(_)), "{name}");
                assert_eq!(get(&home, NOW, b"a key").as_deref(), Some(&b"value"[..]));
            }
        }
    }
    every_engine(&Foreign);
}
