//! A clock that has used up its ticks stands still, and its last moment is like any other.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_engine::{
    AnyEngine, Audit, Engine, Expiry, Handle, Item, Key, Op, Replies, Reply, Request, Store, Time,
};

use crate::engines::{Check, every_engine, get};

/// A receiver that drops all replies.
struct Ignored;

impl<V> Replies<V> for Ignored {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
        panic!("nothing is read");
    }
    fn commit(&mut self, _: usize) {}
    fn retract(&mut self, _: usize) {}
    fn large(&mut self, _: usize, _: &Item, _: V) {}
    fn done(&mut self, _: usize, reply: Reply) {
        assert!(matches!(reply, Reply::Stored(_)));
    }
}

fn set(engine: &Arc<AnyEngine>, now: Time, key: &[u8], expiry: Expiry) {
    let store = Store {
        expiry,
        ..Store::set(b"value")
    };
    let request = Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Store(store),
    };
    engine.handle().execute(now, &[request], &mut Ignored);
}

#[test]
fn nothing_is_flushed_that_nobody_flushed() {
    struct Still;
    impl Check for Still {
        fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>) {
            // The last moment of a clock, and the last one that a `Time` can hold.
            for now in [Time::LAST, Time(u32::MAX)] {
                let engine = make();
                set(&engine, now, b"a", Expiry::Never);
                for turn in 0..3 {
                    engine.handle().maintain(now, 1000);
                    let found = get(&engine, now, b"a");
                    assert_eq!(found.as_deref(), Some(&b"value"[..]), "{name}, {turn}");
                }
                assert_eq!(engine.stats().expired, 0, "{name}");
                // A flush at that moment takes effect, and only once.
                engine.flush(now, now);
                assert_eq!(get(&engine, now, b"a"), None, "{name}");
                set(&engine, now, b"b", Expiry::Never);
                assert!(get(&engine, now, b"b").is_some(), "{name}");
                engine.audit().unwrap();
            }
        }
    }
    every_engine(&Still);
}

/// A delayed flush and an expiry fall due at the last moment at the latest, or not at all.
#[test]
fn what_would_come_later_never_does() {
    struct Later;
    impl Check for Later {
        fn of(&self, name: &str, make: &dyn Fn() -> Arc<AnyEngine>) {
            let engine = make();
            let before = Time(Time::LAST.0 - 16);
            let beyond = before.after(Duration::from_secs(10));
            set(&engine, before, b"a", Expiry::At(Time::LAST));
            set(&engine, before, b"b", Expiry::At(beyond));
            engine.flush(before, beyond);
            assert!(get(&engine, before, b"a").is_some(), "{name}");
            assert!(get(&engine, Time::LAST, b"a").is_none(), "{name}");
            assert!(get(&engine, Time::LAST, b"b").is_some(), "{name}");
            // And a flush that falls due takes effect.
            engine.flush(before, Time::LAST);
            assert!(get(&engine, before, b"b").is_some(), "{name}");
            assert!(get(&engine, Time::LAST, b"b").is_none(), "{name}");
            set(
                &engine,
                Time::LAST,
                b"c",
                Expiry::At(Time::LAST.after(Duration::from_secs(1))),
            );
            assert!(get(&engine, Time::LAST, b"c").is_some(), "{name}");
        }
    }
    every_engine(&Later);
}
