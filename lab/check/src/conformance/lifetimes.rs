//! Cases of expiry and flush.

use nuthatch_engine::{
    Condition, Delta, Engine, Expiry, Handle, Read, Removal, Reply, Store, StoreMode, Time,
};

use super::Case;
use super::client::Client;
use crate::answer::Answer;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("expiry_is_exact_to_the_tick", exact),
        Case::new("expiry_dead_on_arrival", dead_on_arrival),
        Case::new("expiry_is_a_miss_for_every_operation", miss_for_all),
        Case::new("expiry_frees_memory_without_being_asked", swept),
        Case::new("flush_now", flush_now),
        Case::new("flush_delayed", flush_delayed),
        Case::new("flush_later_call_replaces_a_delayed_one", flush_replaced),
        Case::new("flush_of_a_past_moment_is_now", flush_past),
    ]
}

fn expiring(value: &[u8], at: u32) -> Store<'_> {
    Store {
        expiry: Expiry::At(Time(at)),
        ..Store::set(value)
    }
}

fn exact(client: &mut Client) {
    client.must_store(b"key", expiring(b"value", 200));
    for tick in [101, 150, 199] {
        client.now = Time(tick);
        assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]), "{tick}");
    }
    client.now = Time(200);
    assert_eq!(client.get(b"key"), None);
    client.now = Time(201);
    assert_eq!(client.get(b"key"), None);
    // The last moment that a `Time` can hold.
    client.must_store(b"last", expiring(b"value", u32::MAX));
    client.now = Time(u32::MAX - 1);
    assert!(client.get(b"last").is_some());
}

fn dead_on_arrival(client: &mut Client) {
    for at in [100, 99, 1, 0] {
        client.set(b"key", b"old");
        client.must_store(b"key", expiring(b"value", at));
        assert_eq!(client.get(b"key"), None, "stored at 100 to die at {at}");
        client.must_store(b"new", expiring(b"value", at));
        assert_eq!(client.get(b"new"), None);
    }
    let vivify = Read {
        vivify: Some(Expiry::At(Time(0))),
        ..Read::default()
    };
    let answer = client.read(b"ghost", vivify);
    assert!(matches!(answer, Answer::Value(item, _) if item.won));
    assert_eq!(client.get(b"ghost"), None);
}

fn miss_for_all(client: &mut Client) {
    let die = |client: &mut Client| {
        let at = client.now.0 + 1;
        let cas = client.must_store(b"key", expiring(b"5", at)).cas;
        client.now = Time(at);
        cas
    };
    die(client);
    let touch = Read {
        touch: Some(Expiry::Never),
        ..Read::default()
    };
    assert_eq!(client.read(b"key", touch), Answer::Done(Reply::Miss));
    assert_eq!(client.get(b"key"), None, "a touch revives nobody");
    die(client);
    assert_eq!(client.delta(b"key", Delta::up(1)), Reply::NotFound);
    die(client);
    assert_eq!(client.remove(b"key", Removal::default()), Reply::NotFound);
    for mode in [StoreMode::Replace, StoreMode::Append, StoreMode::Prepend] {
        die(client);
        let store = Store {
            mode,
            ..Store::set(b"x")
        };
        assert_eq!(client.store(b"key", store), Reply::NotStored);
    }
    let cas = die(client);
    let store = Store {
        condition: Condition::Cas(cas),
        ..Store::set(b"x")
    };
    assert_eq!(client.store(b"key", store), Reply::NotFound);
    die(client);
    let add = Store {
        mode: StoreMode::Add,
        ..Store::set(b"added")
    };
    client.must_store(b"key", add);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"added"[..]));
    die(client);
    let vivify = Read {
        vivify: Some(Expiry::Never),
        ..Read::default()
    };
    assert!(client.meta(b"key", vivify).won);
    die(client);
    let vivify = Delta {
        vivify: Some((1, Expiry::Never)),
        ..Delta::up(1)
    };
    assert_eq!(client.number(b"key", vivify), 1);
}

fn swept(client: &mut Client) {
    const DYING: usize = 2000;
    const CALLS: usize = 100_000;
    for number in 0..DYING {
        let key = format!("dying {number}");
        client.must_store(key.as_bytes(), expiring(&[b'd'; 100], 200));
        let key = format!("living {number}");
        client.set(key.as_bytes(), &[b'l'; 100]);
    }
    assert_eq!(client.engine.stats().items, 2 * DYING as u64);
    client.now = Time(200);
    // The sweep is bounded in what it does a second, so seconds have to pass.
    let mut seconds = 0;
    while client.engine.stats().items > DYING as u64 {
        let has_more = |_: &usize| client.handle.maintain(client.now, 1000);
        let calls = (0..CALLS).take_while(has_more).count();
        client.wait(1);
        seconds += 1;
        assert!(
            calls < CALLS && seconds < 100_000,
            "the sweep never comes to an end"
        );
    }
    let stats = client.engine.stats();
    assert_eq!((stats.items, stats.expired), (DYING as u64, DYING as u64));
    assert_eq!(
        (stats.expired_unfetched, stats.evictions),
        (DYING as u64, 0)
    );
    for number in 0..DYING {
        assert!(client.get(format!("living {number}").as_bytes()).is_some());
        assert!(client.get(format!("dying {number}").as_bytes()).is_none());
    }
}

fn flush_now(client: &mut Client) {
    for number in 0..1000 {
        client.set(format!("key {number}").as_bytes(), b"value");
    }
    client.engine.flush(client.now, client.now);
    for number in 0..1000 {
        assert_eq!(client.get(format!("key {number}").as_bytes()), None);
    }
    // An item stored after the flush lives, even in the same tick.
    client.set(b"key 1", b"new");
    assert_eq!(client.get(b"key 1").as_deref(), Some(&b"new"[..]));
    let append = Store {
        mode: StoreMode::Append,
        ..Store::set(b"x")
    };
    assert_eq!(client.store(b"key 2", append), Reply::NotStored);
    client.wait(100);
    assert_eq!(client.get(b"key 1").as_deref(), Some(&b"new"[..]));
}

fn flush_delayed(client: &mut Client) {
    client.set(b"before", b"value");
    client.engine.flush(client.now, Time(200));
    client.set(b"after", b"value");
    client.now = Time(199);
    client.set(b"late", b"value");
    for key in [&b"before"[..], b"after", b"late"] {
        assert!(client.get(key).is_some(), "{key:?} has a tick to live");
    }
    client.now = Time(200);
    for key in [&b"before"[..], b"after", b"late"] {
        assert_eq!(client.get(key), None, "{key:?} is stored before 200");
    }
    client.set(b"key", b"value");
    client.now = Time(300);
    assert!(client.get(b"key").is_some(), "stored at 200, not before");
}

fn flush_replaced(client: &mut Client) {
    client.set(b"key", b"value");
    client.engine.flush(client.now, Time(200));
    client.engine.flush(client.now, Time(300));
    client.now = Time(250);
    assert!(client.get(b"key").is_some());
    client.now = Time(300);
    assert_eq!(client.get(b"key"), None);

    client.engine.flush(client.now, Time(400));
    client.engine.flush(client.now, client.now);
    client.set(b"key", b"value");
    client.now = Time(400);
    assert!(
        client.get(b"key").is_some(),
        "the flush of 400 was replaced"
    );

    // A flush that is due has happened, though no request has met it.
    client.engine.flush(client.now, Time(500));
    client.now = Time(500);
    client.engine.flush(client.now, Time(600));
    assert_eq!(client.get(b"key"), None);
}

fn flush_past(client: &mut Client) {
    client.set(b"key", b"value");
    client.engine.flush(client.now, Time(0));
    assert_eq!(client.get(b"key"), None);
    client.set(b"key", b"value");
    assert!(client.get(b"key").is_some());
}
