//! Cases of stores whose value arrives piece by piece.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nuthatch_engine::{
    AnyReservation, Condition, Engine, Handle, Key, Reply, Reservation, Store, StoreMode,
};

use super::client::Client;
use super::{Case, Setup};
use crate::values::bytes;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("reserve_commits_pieces", pieces),
        Case::new("reserve_shows_nothing_before_commit", invisible),
        Case::new("reserve_obeys_modes_and_conditions", conditions),
        Case::new("reserve_commits_in_any_order", any_order),
        Case::new("reserve_panics_on_too_much_and_too_little", panics),
        Case::on(Setup::TIGHT, "reserve_dropped_gives_all_back", dropped),
    ]
}

type Pending = AnyReservation;

fn reserve(client: &mut Client, key: &[u8], len: usize) -> Pending {
    let key = Key::new(key, client.engine.hasher());
    match client.handle.reserve(client.now, key, len) {
        Ok(reservation) => reservation,
        Err(reply) => panic!("{len} bytes were refused: {reply:?}"),
    }
}

/// Reserves and writes all of `value`.
fn filled(client: &mut Client, key: &[u8], value: &[u8]) -> Pending {
    let mut reservation = reserve(client, key, value.len());
    reservation.write(value);
    reservation
}

fn commit(client: &mut Client, pending: Pending, store: Store<'_>) -> Reply {
    client.handle.commit(client.now, pending, &store)
}

fn pieces(client: &mut Client) {
    let lens = [0, 1, 100, 8192, 8193, 100_000, 600_000, 1_000_000];
    for (seed, len) in lens.into_iter().enumerate() {
        for piece in [1000, 16_384, usize::MAX] {
            let value = bytes(seed, len);
            let mut reservation = reserve(client, b"key", len);
            let mut missing = len;
            assert_eq!(reservation.missing(), missing);
            reservation.write(b"");
            for piece in value.chunks(piece.min(len + 1)) {
                reservation.write(piece);
                missing -= piece.len();
                assert_eq!(reservation.missing(), missing);
            }
            let store = Store {
                flags: 9,
                expiry: client.in_seconds(10),
                ..Store::set(b"ignored")
            };
            let reply = commit(client, reservation, store);
            let stored = matches!(reply, Reply::Stored(item)
                if item.value_len == len && item.flags == 9 && item.expiry == store.expiry);
            assert!(stored, "{reply:?}");
            assert!(client.get(b"key") == Some(value), "{len} by {piece}");
        }
    }
}

fn invisible(client: &mut Client) {
    let reservation = filled(client, b"new", b"value");
    assert_eq!(client.get(b"new"), None);
    drop(reservation);
    assert_eq!(client.get(b"new"), None);

    client.set(b"key", b"old");
    let reservation = filled(client, b"key", b"new");
    assert_eq!(client.get(b"key").as_deref(), Some(&b"old"[..]));
    client.set(b"key", b"in between");
    assert_eq!(client.get(b"key").as_deref(), Some(&b"in between"[..]));
    commit(client, reservation, Store::set(b""));
    assert_eq!(client.get(b"key").as_deref(), Some(&b"new"[..]));
}

fn conditions(client: &mut Client) {
    let with = |mode, condition| Store {
        mode,
        condition,
        ..Store::set(b"")
    };
    let none = Condition::None;
    for mode in [StoreMode::Replace, StoreMode::Append, StoreMode::Prepend] {
        let pending = filled(client, b"key", b"value");
        assert_eq!(commit(client, pending, with(mode, none)), Reply::NotStored);
    }
    let pending = filled(client, b"key", b"value");
    let reply = commit(client, pending, with(StoreMode::Add, none));
    assert!(matches!(reply, Reply::Stored(_)), "{reply:?}");
    let pending = filled(client, b"key", b"other");
    let reply = commit(client, pending, with(StoreMode::Add, none));
    assert_eq!(reply, Reply::NotStored);
    let pending = filled(client, b"key", b" more");
    commit(client, pending, with(StoreMode::Append, none));
    let pending = filled(client, b"key", b"some ");
    commit(client, pending, with(StoreMode::Prepend, none));
    assert_eq!(client.get(b"key").as_deref(), Some(&b"some value more"[..]));

    let cas = client.peek(b"key").cas;
    let pending = filled(client, b"key", b"second");
    client.set(b"key", b"first");
    let demanding = with(StoreMode::Set, Condition::Cas(cas));
    assert_eq!(commit(client, pending, demanding), Reply::Exists);
    let current = client.peek(b"key").cas;
    let pending = filled(client, b"key", b"third");
    let demanding = with(StoreMode::Set, Condition::Cas(current));
    assert!(matches!(
        commit(client, pending, demanding),
        Reply::Stored(_)
    ));
    let pending = filled(client, b"none", b"value");
    assert_eq!(commit(client, pending, demanding), Reply::NotFound);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"third"[..]));
}

fn any_order(client: &mut Client) {
    let first = filled(client, b"key", &bytes(1, 9000));
    let second = filled(client, b"key", &bytes(2, 9000));
    let other = filled(client, b"other", b"other");
    commit(client, second, Store::set(b""));
    assert!(client.get(b"key") == Some(bytes(2, 9000)));
    commit(client, other, Store::set(b""));
    commit(client, first, Store::set(b""));
    assert!(client.get(b"key") == Some(bytes(1, 9000)));
    assert_eq!(client.get(b"other").as_deref(), Some(&b"other"[..]));
}

fn panics(client: &mut Client) {
    let mut reservation = reserve(client, b"key", 5);
    reservation.write(b"123");
    let too_much = catch_unwind(AssertUnwindSafe(|| reservation.write(b"456")));
    assert!(too_much.is_err(), "6 bytes into 5");
    drop(reservation);
    let mut reservation = reserve(client, b"key", 5);
    reservation.write(b"1234");
    let too_little = AssertUnwindSafe(|| commit(client, reservation, Store::set(b"")));
    assert!(catch_unwind(too_little).is_err(), "4 bytes of 5");
    assert_eq!(client.get(b"key"), None);
}

fn dropped(client: &mut Client) {
    // Ten times the memory, in reservations that are dropped.
    for round in 0..160 {
        let mut reservation = reserve(client, b"key", 1_000_000);
        reservation.write(&bytes(round, round * 5000));
    }
    let value = bytes(1, 1_000_000);
    client.set(b"key", &value);
    assert!(client.get(b"key") == Some(value));
    assert_eq!(client.engine.stats().items, 1);
}
