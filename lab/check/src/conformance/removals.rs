//! Cases of delete, and of `md`'s removals that leave an item behind.

use nuthatch_engine::request::Leave;
use nuthatch_engine::{Condition, Expiry, Read, Removal, Reply, Store, StoreMode};

use super::Case;
use super::client::{Client, PEEK};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("remove_leaves_nothing", nothing),
        Case::new("remove_demands_a_cas", condition),
        Case::new("remove_leaves_stale", stale),
        Case::new("remove_leaves_empty", empty),
        Case::new("remove_leaves_empty_and_stale", empty_and_stale),
        Case::new("remove_of_missing_leaves_nothing", missing),
    ]
}

fn leaving(leave: Leave) -> Removal {
    Removal {
        leave,
        ..Removal::default()
    }
}

const ALL: [Leave; 3] = [
    Leave::Nothing,
    Leave::Stale {
        expiry: None,
        new_cas: None,
    },
    Leave::Empty {
        stale: false,
        expiry: None,
        new_cas: None,
    },
];

const WIN: Read = Read {
    may_win: true,
    ..PEEK
};

fn nothing(client: &mut Client) {
    client.set(b"key", b"value");
    client.set(b"other", b"value");
    assert_eq!(client.delete(b"key"), Reply::Removed);
    assert_eq!(client.get(b"key"), None);
    assert_eq!(client.delete(b"key"), Reply::NotFound);
    assert!(client.get(b"other").is_some());
    let add = Store {
        mode: StoreMode::Add,
        ..Store::set(b"again")
    };
    client.must_store(b"key", add);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"again"[..]));
}

fn condition(client: &mut Client) {
    for leave in ALL {
        let cas = client.set(b"key", b"value").cas;
        let removal = |condition| Removal { condition, leave };
        for wrong in [
            Condition::Cas(cas + 1),
            Condition::Cas(cas.wrapping_sub(1)),
            Condition::CasOrStale(cas.wrapping_sub(1)),
        ] {
            assert_eq!(client.remove(b"key", removal(wrong)), Reply::Exists);
        }
        let item = client.peek(b"key");
        assert_eq!((item.cas, item.value_len, item.stale), (cas, 5, false));
        let right = removal(Condition::Cas(cas));
        assert_eq!(client.remove(b"key", right), Reply::Removed);
    }
}

fn stale(client: &mut Client) {
    let expiry = client.in_seconds(50);
    let before = client.must_store(
        b"key",
        Store {
            flags: 7,
            expiry,
            ..Store::set(b"value")
        },
    );
    client.remove(b"key", leaving(ALL[1]));
    let item = client.peek(b"key");
    assert!(item.stale);
    assert_ne!(item.cas, before.cas);
    assert_eq!((item.flags, item.expiry, item.value_len), (7, expiry, 5));
    let soon = client.in_seconds(5);
    let leave = Leave::Stale {
        expiry: Some(soon),
        new_cas: Some(4242),
    };
    client.remove(b"key", leaving(leave));
    let item = client.peek(b"key");
    assert_eq!((item.cas, item.expiry, item.stale), (4242, soon, true));
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
    client.wait(5);
    assert_eq!(client.get(b"key"), None);
}

fn empty(client: &mut Client) {
    let expiry = client.in_seconds(50);
    let before = client.must_store(
        b"key",
        Store {
            flags: 7,
            expiry,
            ..Store::set(b"value")
        },
    );
    client.get(b"key");
    assert_eq!(client.remove(b"key", leaving(ALL[2])), Reply::Removed);
    let item = client.peek(b"key");
    assert_eq!((item.flags, item.expiry, item.value_len), (0, expiry, 0));
    assert!(!item.stale && !item.won_before);
    assert_ne!(item.cas, before.cas);
    assert_eq!(client.get(b"key"), Some(vec![]));
}

fn empty_and_stale(client: &mut Client) {
    client.set(b"key", b"value");
    let soon = client.in_seconds(5);
    let leave = |stale| Leave::Empty {
        stale,
        expiry: Some(soon),
        new_cas: Some(4242),
    };
    client.remove(b"key", leaving(leave(true)));
    let item = client.meta(b"key", WIN);
    assert_eq!((item.cas, item.expiry, item.value_len), (4242, soon, 0));
    assert!(item.stale && item.won);
    client.remove(b"key", leaving(leave(false)));
    let item = client.meta(b"key", WIN);
    assert!(!item.stale && !item.won && !item.won_before);
    let never = Leave::Empty {
        stale: false,
        expiry: Some(Expiry::Never),
        new_cas: None,
    };
    client.remove(b"key", leaving(never));
    client.wait(100);
    assert_eq!(client.get(b"key"), Some(vec![]));
}

fn missing(client: &mut Client) {
    for leave in ALL {
        for condition in [Condition::None, Condition::Cas(1), Condition::CasOrStale(1)] {
            let removal = Removal { condition, leave };
            assert_eq!(client.remove(b"key", removal), Reply::NotFound);
            assert_eq!(client.get(b"key"), None);
        }
    }
}
