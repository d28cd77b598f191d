//! Cases of set, add, replace, append, prepend, and cas.

use nuthatch_engine::request::Leave;
use nuthatch_engine::{Condition, Delta, Engine, Expiry, Read, Removal, Reply, Store, StoreMode};
use std::sync::Arc;

use super::Case;
use super::client::{Client, PEEK};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("store_set_replaces_all", set),
        Case::new("store_add", add),
        Case::new("store_replace", replace),
        Case::new("store_append_and_prepend", append_and_prepend),
        Case::new("store_append_keeps_flags_and_expiry", append_keeps),
        Case::new("store_append_vivify", append_vivify),
        Case::new("store_cas", cas),
        Case::new("store_cas_of_a_missing_item", cas_of_missing),
        Case::new("store_cas_of_append", cas_of_append),
        Case::new("store_cas_or_stale", cas_or_stale),
        Case::new("store_cas_or_stale_keeps_the_winner", cas_or_stale_winner),
        Case::new(
            "store_cas_or_stale_is_for_set_and_replace",
            cas_or_stale_append,
        ),
        Case::new("store_new_cas", new_cas),
        Case::new("store_cas_rises_with_every_change", cas_rises),
        Case::new("store_cas_is_not_wasted", cas_is_not_wasted),
    ]
}

fn with(mode: StoreMode, value: &[u8]) -> Store<'_> {
    Store {
        mode,
        ..Store::set(value)
    }
}

fn demanding(mode: StoreMode, value: &[u8], condition: Condition) -> Store<'_> {
    Store {
        condition,
        ..with(mode, value)
    }
}

fn set(client: &mut Client) {
    let expiry = client.in_seconds(10);
    let first = client.must_store(
        b"key",
        Store {
            flags: 7,
            expiry,
            ..Store::set(b"a long first value")
        },
    );
    assert_eq!(
        (first.flags, first.expiry, first.value_len),
        (7, expiry, 18)
    );
    let second = client.set(b"key", b"short");
    assert_eq!((second.flags, second.expiry), (0, Expiry::Never));
    assert_eq!(client.get(b"key").as_deref(), Some(&b"short"[..]));
    client.set(b"key", b"");
    assert_eq!(client.get(b"key"), Some(vec![]));
}

fn add(client: &mut Client) {
    let add = |value| with(StoreMode::Add, value);
    let item = client.must_store(b"key", add(b"first"));
    assert_eq!(client.store(b"key", add(b"second")), Reply::NotStored);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"first"[..]));
    assert_eq!(client.peek(b"key").cas, item.cas, "nothing changed");
    // A condition on an add is ignored.
    let add = |value| demanding(StoreMode::Add, value, Condition::Cas(item.cas));
    assert_eq!(client.store(b"key", add(b"third")), Reply::NotStored);
    client.must_store(b"other", add(b"fourth"));
    assert_eq!(client.get(b"other").as_deref(), Some(&b"fourth"[..]));
}

fn replace(client: &mut Client) {
    let replace = |value| with(StoreMode::Replace, value);
    assert_eq!(client.store(b"key", replace(b"first")), Reply::NotStored);
    assert_eq!(client.get(b"key"), None);
    client.set(b"key", b"first");
    client.must_store(
        b"key",
        Store {
            flags: 3,
            ..replace(b"second")
        },
    );
    assert_eq!(client.get(b"key").as_deref(), Some(&b"second"[..]));
    assert_eq!(client.peek(b"key").flags, 3);
}

fn append_and_prepend(client: &mut Client) {
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        assert_eq!(client.store(b"none", with(mode, b"x")), Reply::NotStored);
        assert_eq!(client.get(b"none"), None);
    }
    client.set(b"key", b"middle");
    let longer = client.must_store(b"key", with(StoreMode::Append, b" end"));
    assert_eq!(longer.value_len, 10);
    let longest = client.must_store(b"key", with(StoreMode::Prepend, b"start "));
    assert_eq!(longest.value_len, 16);
    client.must_store(b"key", with(StoreMode::Append, b""));
    client.must_store(b"key", with(StoreMode::Prepend, b""));
    assert_eq!(
        client.get(b"key").as_deref(),
        Some(&b"start middle end"[..])
    );

    let mut expected = b"start middle end".to_vec();
    for round in 0..200_u8 {
        client.must_store(b"key", with(StoreMode::Append, &[round; 60]));
        expected.extend([round; 60]);
    }
    assert_eq!(client.get(b"key"), Some(expected));
}

fn append_keeps(client: &mut Client) {
    let expiry = client.in_seconds(10);
    let first = client.must_store(
        b"key",
        Store {
            flags: 7,
            expiry,
            ..Store::set(b"value")
        },
    );
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        let longer = client.must_store(
            b"key",
            Store {
                flags: 9,
                expiry: Expiry::Never,
                ..with(mode, b"more")
            },
        );
        assert_eq!((longer.flags, longer.expiry), (7, expiry));
        assert_ne!(longer.cas, first.cas);
    }
    assert_eq!(client.get(b"key").as_deref(), Some(&b"morevaluemore"[..]));
    client.wait(10);
    assert_eq!(client.get(b"key"), None);
}

fn append_vivify(client: &mut Client) {
    let vivified = client.in_seconds(20);
    for (key, mode) in [(b"a", StoreMode::Append), (b"p", StoreMode::Prepend)] {
        let store = |value| Store {
            flags: 5,
            vivify: Some(vivified),
            ..with(mode, value)
        };
        let item = client.must_store(key, store(b"1"));
        assert_eq!((item.flags, item.expiry, item.value_len), (5, vivified, 1));
        assert!(!item.won && !item.won_before);
        client.must_store(key, store(b"2"));
    }
    assert_eq!(client.get(b"a").as_deref(), Some(&b"12"[..]));
    assert_eq!(client.get(b"p").as_deref(), Some(&b"21"[..]));
    // Creating takes precedence over the condition.
    let store = Store {
        vivify: Some(vivified),
        ..demanding(StoreMode::Append, b"x", Condition::Cas(1))
    };
    client.must_store(b"new", store);
}

fn cas(client: &mut Client) {
    for mode in [StoreMode::Set, StoreMode::Replace] {
        let first = client.set(b"key", b"first").cas;
        let cas = |value, cas| demanding(mode, value, Condition::Cas(cas));
        for wrong in [first + 1, first.wrapping_sub(1), u64::MAX] {
            assert_eq!(client.store(b"key", cas(b"wrong", wrong)), Reply::Exists);
        }
        assert_eq!(client.get(b"key").as_deref(), Some(&b"first"[..]));
        let second = client.must_store(b"key", cas(b"second", first)).cas;
        assert_ne!(first, second);
        assert_eq!(client.store(b"key", cas(b"third", first)), Reply::Exists);
        client.must_store(b"key", cas(b"fourth", second));
        assert_eq!(client.get(b"key").as_deref(), Some(&b"fourth"[..]));
    }
}

fn cas_of_missing(client: &mut Client) {
    for condition in [Condition::Cas(1), Condition::CasOrStale(1)] {
        for (mode, refusal) in [
            (StoreMode::Set, Reply::NotFound),
            (StoreMode::Replace, Reply::NotFound),
            (StoreMode::Append, Reply::NotStored),
            (StoreMode::Prepend, Reply::NotStored),
        ] {
            let reply = client.store(b"key", demanding(mode, b"value", condition));
            assert_eq!(reply, refusal, "{mode:?} {condition:?}");
            assert_eq!(client.get(b"key"), None);
        }
    }
    // The cas of an item that was removed does not match either.
    let cas = client.set(b"key", b"value").cas;
    client.delete(b"key");
    let store = demanding(StoreMode::Set, b"again", Condition::Cas(cas));
    assert_eq!(client.store(b"key", store), Reply::NotFound);
    client.set(b"key", b"value");
    assert_eq!(client.store(b"key", store), Reply::Exists);
}

fn cas_of_append(client: &mut Client) {
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        let cas = client.set(b"key", b"value").cas;
        let wrong = demanding(mode, b"x", Condition::Cas(cas + 1));
        assert_eq!(client.store(b"key", wrong), Reply::Exists);
        assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
        client.must_store(b"key", demanding(mode, b"x", Condition::Cas(cas)));
        assert_eq!(client.get(b"key").map(|value| value.len()), Some(6));
    }
}

fn cas_or_stale(client: &mut Client) {
    for mode in [StoreMode::Set, StoreMode::Replace] {
        let older = client.set(b"key", b"first").cas;
        let expiry = client.in_seconds(100);
        let current = client.must_store(
            b"key",
            Store {
                expiry,
                ..Store::set(b"second")
            },
        );
        let store = |value, cas| demanding(mode, value, Condition::CasOrStale(cas));
        let newer = store(b"newer", current.cas + 1);
        assert_eq!(client.store(b"key", newer), Reply::Exists);
        assert_eq!(client.get(b"key").as_deref(), Some(&b"second"[..]));

        let stored = client.must_store(b"key", store(b"third", older));
        assert!(stored.stale);
        assert_eq!(stored.expiry, expiry, "a stale store keeps the expiry");
        assert_ne!(stored.cas, current.cas);
        assert_eq!(client.get(b"key").as_deref(), Some(&b"third"[..]));

        let fresh = client.must_store(b"key", store(b"fourth", stored.cas));
        assert!(!fresh.stale, "the current cas is no reason to be stale");
        assert_eq!(fresh.expiry, Expiry::Never);
    }
}

fn cas_or_stale_winner(client: &mut Client) {
    let older = client.set(b"key", b"first").cas;
    let leave = Leave::Stale {
        expiry: None,
        new_cas: None,
    };
    let removal = Removal {
        leave,
        ..Removal::default()
    };
    let win = Read {
        may_win: true,
        ..PEEK
    };
    client.remove(b"key", removal);
    assert!(client.meta(b"key", win).won);
    let store = demanding(StoreMode::Set, b"second", Condition::CasOrStale(older));
    client.must_store(b"key", store);
    let after = client.meta(b"key", win);
    assert!(after.stale && after.won_before && !after.won);

    // Without a winner to keep, the stale item can be won.
    let older = client.set(b"key", b"third").cas;
    client.set(b"key", b"fourth");
    let store = demanding(StoreMode::Set, b"fifth", Condition::CasOrStale(older));
    client.must_store(b"key", store);
    assert!(client.meta(b"key", win).won);
}

fn cas_or_stale_append(client: &mut Client) {
    let older = client.set(b"key", b"first").cas;
    let current = client.set(b"key", b"second").cas;
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        let store = demanding(mode, b"x", Condition::CasOrStale(older));
        assert_eq!(client.store(b"key", store), Reply::Exists);
    }
    let store = demanding(StoreMode::Append, b"x", Condition::CasOrStale(current));
    assert!(!client.must_store(b"key", store).stale);
}

fn new_cas(client: &mut Client) {
    let mut last = None;
    for (mode, value) in [
        (StoreMode::Set, 0),
        (StoreMode::Replace, 1),
        (StoreMode::Append, u64::MAX),
        (StoreMode::Prepend, 1 << 40),
    ] {
        let store = Store {
            new_cas: Some(value),
            ..with(mode, b"value")
        };
        assert_eq!(client.must_store(b"key", store).cas, value);
        assert_eq!(client.peek(b"key").cas, value);
        last = Some(value);
    }
    let cas = Condition::Cas(last.expect("there were four"));
    let item = client.must_store(b"key", demanding(StoreMode::Set, b"next", cas));
    assert_ne!(item.cas, 1 << 40);
    let store = Store {
        new_cas: Some(99),
        ..with(StoreMode::Add, b"value")
    };
    assert_eq!(client.must_store(b"added", store).cas, 99);
}

fn cas_rises(client: &mut Client) {
    let mut last = client.set(b"key", b"1").cas;
    let mut rises = |item: nuthatch_engine::Item| {
        assert!(item.cas > last, "{} is not above {last}", item.cas);
        last = item.cas;
    };
    for _ in 0..3 {
        rises(client.set(b"key", b"1"));
        rises(client.must_store(b"key", with(StoreMode::Replace, b"1")));
        rises(client.must_store(b"key", with(StoreMode::Append, b"1")));
        rises(client.must_store(b"key", with(StoreMode::Prepend, b"1")));
        client.delta(b"key", nuthatch_engine::Delta::up(1));
        rises(client.peek(b"key"));
        for leave in [
            Leave::Stale {
                expiry: None,
                new_cas: None,
            },
            Leave::Empty {
                stale: false,
                expiry: None,
                new_cas: None,
            },
        ] {
            let removal = Removal {
                leave,
                ..Removal::default()
            };
            assert_eq!(client.remove(b"key", removal), Reply::Removed);
            rises(client.peek(b"key"));
        }
        client.delete(b"key");
        rises(client.must_store(b"key", with(StoreMode::Add, b"1")));
    }
}

/// Two clients change one key in turn: its cas never repeats and always rises, by not much more than one for each
/// change. Engines have a limited number of cas values.
fn cas_is_not_wasted(client: &mut Client) {
    const CHANGES: u64 = 2000;
    let mut other = Client::new(Arc::clone(&client.engine));
    let first = client.set(b"key", b"0").cas;
    let mut last = first;
    for change in 0..CHANGES {
        let who = if change % 2 == 0 {
            &mut other
        } else {
            &mut *client
        };
        let cas = if change % 4 < 2 {
            who.set(b"key", b"1").cas
        } else {
            who.number(b"key", Delta::up(1));
            who.peek(b"key").cas
        };
        assert!(cas > last, "{cas} after {last}");
        last = cas;
        // A key that only this client changes.
        who.set(format!("key {change}").as_bytes(), b"value");
    }
    let used = last - first;
    assert!(used <= 4 * CHANGES + 4096, "{used} for {CHANGES} changes");
    // After a flush, the items that either client stored before it are gone, and items that either stores later are
    // found.
    client.engine.flush(client.now, client.now);
    other.set(b"key", b"other");
    client.set(b"own", b"client");
    assert!(client.get(b"key").is_some() && other.get(b"own").is_some());
    assert_eq!(client.get(b"key 7"), None);
}
