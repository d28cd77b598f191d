//! Cases of keys that are longer than those of memcached's clients, up to the engine's limit.

use nuthatch_engine::request::COMMON_KEY_LEN_MAX;
use nuthatch_engine::{
    AnyHandle, Cursor, Delta, Engine, Expiry, Handle, Key, Read, Reply, Reservation, Store,
    StoreMode, Time,
};

use super::client::Client;
use super::{Case, Setup};
use crate::values::bytes;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("key_long_carries_every_operation", every_operation),
        Case::new("key_long_with_values_of_all_lengths", values_of_all_lengths),
        Case::new("key_long_that_differs_in_a_byte", differs_in_a_byte),
        Case::new("key_long_is_visited_whole", visited),
        Case::new("key_long_and_value_over_the_limit", too_large),
        Case::on(Setup::SMALL, "key_long_of_the_smallest_memory", smallest),
        Case::on(Setup::SMALL, "key_long_beside_short_ones_memory", pressed),
    ]
}

/// Lengths around those at which an engine changes its representation.
fn lengths(client: &Client) -> Vec<usize> {
    let most = client.engine.key_len_max();
    assert!(most >= COMMON_KEY_LEN_MAX);
    let some = [
        250, 251, 252, 253, 254, 255, 256, 257, 300, 511, 512, 1000, 4096, 65_535, 65_536,
    ];
    let within = some.into_iter().filter(|&len| len < most);
    within.chain([most - 1, most]).collect()
}

/// A key of this length.
fn key(len: usize) -> Vec<u8> {
    bytes(len, len)
}

fn every_operation(client: &mut Client) {
    for len in lengths(client) {
        let key = key(len);
        assert_eq!(client.get(&key), None, "{len}");
        let first = client.set(&key, b"8");
        assert_eq!(client.get(&key).as_deref(), Some(&b"8"[..]), "{len}");
        let more = Store {
            mode: StoreMode::Append,
            ..Store::set(b"9")
        };
        assert!(client.must_store(&key, more).cas > first.cas);
        assert_eq!(client.number(&key, Delta::up(11)), 100);
        assert_eq!(client.number(&key, Delta::down(1)), 99);
        let add = Store {
            mode: StoreMode::Add,
            ..Store::set(b"other")
        };
        assert_eq!(client.store(&key, add), Reply::NotStored);
        let end = client.in_seconds(100);
        let touch = Read {
            value: false,
            touch: Some(end),
            ..Read::default()
        };
        assert_eq!(client.meta(&key, touch).expiry, end);
        let flags = Store {
            flags: u32::MAX,
            new_cas: Some(u64::MAX - 1),
            ..Store::set(b"flagged")
        };
        client.must_store(&key, flags);
        let item = client.peek(&key);
        assert_eq!((item.flags, item.cas), (u32::MAX, u64::MAX - 1));
        assert_eq!(client.get(&key).as_deref(), Some(&b"flagged"[..]));
        assert_eq!(client.delete(&key), Reply::Removed);
        assert_eq!(client.get(&key), None);
    }
}

fn values_of_all_lengths(client: &mut Client) {
    let limit = client.engine.item_size_max();
    for len in lengths(client) {
        let key = key(len);
        for value_len in [0, 1, AnyHandle::COPY_MAX, AnyHandle::COPY_MAX + 1, 200_000] {
            let value = bytes(value_len, value_len);
            client.set(&key, &value);
            assert!(client.get(&key) == Some(value), "{len} {value_len}");
        }
        let longest = bytes(7, limit - len - 512);
        let (now, hashed) = (client.now, Key::new(&key, client.engine.hasher()));
        let mut reservation = client.handle.reserve(now, hashed, longest.len()).unwrap();
        for part in longest.chunks(10_007) {
            reservation.write(part);
        }
        let reply = client.handle.commit(now, reservation, &Store::set(&[]));
        assert!(matches!(reply, Reply::Stored(_)), "{len}: {reply:?}");
        assert!(client.get(&key) == Some(longest), "{len}");
    }
}

fn differs_in_a_byte(client: &mut Client) {
    let len = client.engine.key_len_max();
    let key = key(len);
    for at in [0, 1, len / 2, len - 2, len - 1] {
        let mut other = key.clone();
        other[at] ^= 1;
        client.set(&other, &at.to_le_bytes());
        assert_eq!(client.get(&key), None);
    }
    client.set(&key[..len - 1], b"shorter");
    assert_eq!(client.get(&key), None);
    client.set(&key, b"this");
    for at in [0, 1, len / 2, len - 2, len - 1] {
        let mut other = key.clone();
        other[at] ^= 1;
        assert_eq!(client.get(&other), Some(at.to_le_bytes().to_vec()));
    }
    assert_eq!(client.get(&key).as_deref(), Some(&b"this"[..]));
}

fn visited(client: &mut Client) {
    let mut lengths = lengths(client);
    lengths.sort_unstable();
    lengths.dedup();
    for &len in &lengths {
        client.set(&key(len), len.to_string().as_bytes());
    }
    let mut found = Vec::new();
    let mut next = Some(Cursor::default());
    while let Some(from) = next {
        next = client.handle.visit(client.now, from, 3, &mut |visit| {
            assert!(visit.key == key(visit.key.len()));
            assert_eq!(visit.value, visit.key.len().to_string().as_bytes());
            found.push(visit.key.len());
        });
    }
    found.sort_unstable();
    assert_eq!(found, lengths);
}

fn too_large(client: &mut Client) {
    let limit = client.engine.item_size_max();
    let key = key(client.engine.key_len_max());
    let value = vec![b'x'; limit - key.len() + 1];
    assert_eq!(client.store(&key, Store::set(&value)), Reply::TooLarge);
    assert_eq!(client.get(&key), None);
}

/// The longest key of a memory that has small pages, with the longest value.
fn smallest(client: &mut Client) {
    let key = key(client.engine.key_len_max());
    for value_len in [
        0,
        100,
        5000,
        client.engine.item_size_max() - key.len() - 512,
    ] {
        let value = bytes(1, value_len);
        client.set(&key, &value);
        assert!(client.get(&key) == Some(value), "{value_len}");
    }
}

/// Items with long keys are moved and evicted like others, and numbers behind them are not lost.
fn pressed(client: &mut Client) {
    let most = client.engine.key_len_max().min(3000);
    let key_of = |number: usize| {
        let len = [20, most, 255, 250][number % 4];
        let mut key = number.to_le_bytes().to_vec();
        key.resize(len, b'k');
        key
    };
    let expires = |number: usize| match number % 7 {
        0 => Expiry::At(Time(1 << 30)),
        _ => Expiry::Never,
    };
    let mut met = 0;
    for turn in 0..30_000 {
        let store = Store {
            expiry: expires(turn),
            ..Store::set(b"1000")
        };
        // A full engine may refuse nothing that is small.
        client.must_store(&key_of(turn), store);
        for back in [1, 5, 40, 300, 1001] {
            let Some(number) = turn.checked_sub(back) else {
                continue;
            };
            let key = key_of(number);
            match client.delta(&key, Delta::up(1)) {
                Reply::Number(_, item) => {
                    met += 1;
                    assert_eq!(item.expiry, expires(number));
                }
                Reply::NotFound => {}
                other => panic!("{other:?}"),
            }
            if let Some(value) = client.get(&key) {
                let value: u64 = std::str::from_utf8(&value).unwrap().parse().unwrap();
                assert!((1000..=1005).contains(&value), "{value}");
            }
        }
    }
    assert!(met > 1000);
}
