//! Cases of values from 0 bytes to the largest, and a byte more.

use nuthatch_engine::{AnyHandle, Delta, Engine, Handle, Key, Reply, Store, StoreMode, Value};

use super::client::Client;
use super::{Case, Setup};
use crate::answer::to_vec;
use crate::values::bytes;

/// Larger items than usual, so that they span pages.
const WIDE: Setup = Setup {
    item_size_max: 8 << 20,
    ..Setup::AMPLE
};

/// No engine has an item header this large.
const HEADER_MAX: usize = 512;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("size_every_small_one", every_small_one),
        Case::on(WIDE, "size_around_every_border", around_borders),
        Case::on(WIDE, "size_grows_and_shrinks_in_place", grows_and_shrinks),
        Case::new("size_too_large_changes_nothing", too_large),
        Case::new("size_too_large_goes_first", too_large_first),
        Case::new("size_append_past_the_limit", append_past_limit),
        Case::on(WIDE, "size_append_across_borders", append_across_borders),
        Case::on(WIDE, "size_held_values_do_not_change", held),
    ]
}

fn every_small_one(client: &mut Client) {
    for len in 0..1100 {
        client.set(format!("key {len}").as_bytes(), &bytes(len, len));
    }
    for len in 0..1100 {
        let value = client.get(format!("key {len}").as_bytes());
        assert_eq!(value, Some(bytes(len, len)), "{len}");
    }
}

/// Lengths around those at which an engine changes its representation.
fn borders(client: &Client) -> Vec<usize> {
    let middles = [
        AnyHandle::COPY_MAX,
        64 << 10,
        512 << 10,
        1 << 20,
        2 << 20,
        client.engine.item_size_max() - HEADER_MAX,
    ];
    let around = |middle: usize| [middle - 65, middle - 1, middle, middle + 1, middle + 65];
    middles.into_iter().flat_map(around).collect()
}

fn around_borders(client: &mut Client) {
    for (seed, len) in borders(client).into_iter().enumerate() {
        let key = format!("key {len}");
        let item = client.set(key.as_bytes(), &bytes(seed, len));
        assert_eq!(item.value_len, len);
    }
    for (seed, len) in borders(client).into_iter().enumerate() {
        let key = format!("key {len}");
        assert_eq!(client.peek(key.as_bytes()).value_len, len);
        let value = client.get(key.as_bytes()).expect("there is memory");
        assert!(value == bytes(seed, len), "{len} bytes came back wrong");
    }
}

fn grows_and_shrinks(client: &mut Client) {
    let up = borders(client);
    let down = up.iter().rev();
    for (seed, &len) in up.iter().chain(down).enumerate() {
        client.set(b"key", &bytes(seed, len));
        let value = client.get(b"key").expect("there is memory");
        assert!(value == bytes(seed, len), "{len} bytes came back wrong");
        client.set(b"key", &bytes(seed, seed % 7));
        assert_eq!(client.get(b"key"), Some(bytes(seed, seed % 7)));
    }
}

fn too_large(client: &mut Client) {
    let limit = client.engine.item_size_max();
    let cas = client.set(b"key", b"value").cas;
    for len in [limit, limit + 1, 2 * limit] {
        let value = vec![b'x'; len];
        assert_eq!(client.store(b"key", Store::set(&value)), Reply::TooLarge);
        assert_eq!(client.store(b"none", Store::set(&value)), Reply::TooLarge);
        let hasher = client.engine.hasher();
        let key = Key::new(b"key", hasher);
        let refused = client.handle.reserve(client.now, key, len);
        assert_eq!(refused.err(), Some(Reply::TooLarge));
    }
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
    assert_eq!(client.peek(b"key").cas, cas);
    assert_eq!(client.get(b"none"), None);
    let longest = vec![b'y'; limit - HEADER_MAX];
    client.set(&[b'k'; 250], &longest);
    assert!(client.get(&[b'k'; 250]) == Some(longest));
}

fn too_large_first(client: &mut Client) {
    let value = vec![b'x'; client.engine.item_size_max()];
    let store = |mode| Store {
        mode,
        ..Store::set(&value)
    };
    client.set(b"key", b"value");
    assert_eq!(client.store(b"key", store(StoreMode::Add)), Reply::TooLarge);
    for mode in [StoreMode::Replace, StoreMode::Append, StoreMode::Prepend] {
        assert_eq!(client.store(b"none", store(mode)), Reply::TooLarge);
    }
}

fn append_past_limit(client: &mut Client) {
    let limit = client.engine.item_size_max();
    let first = bytes(1, limit - HEADER_MAX);
    let cas = client.set(b"key", &first).cas;
    let more = vec![b'x'; HEADER_MAX];
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        let store = Store {
            mode,
            ..Store::set(&more)
        };
        assert_eq!(client.store(b"key", store), Reply::TooLarge);
    }
    assert_eq!(client.peek(b"key").cas, cas);
    assert!(client.get(b"key") == Some(first));
}

fn append_across_borders(client: &mut Client) {
    for (seed, len) in borders(client).into_iter().enumerate() {
        let whole = bytes(seed, len);
        let (start, rest) = whole.split_at(len / 3);
        let (middle, end) = rest.split_at(len / 3);
        let put = |mode, value| Store {
            mode,
            ..Store::set(value)
        };
        client.set(b"key", middle);
        client.must_store(b"key", put(StoreMode::Append, end));
        client.must_store(b"key", put(StoreMode::Prepend, start));
        assert!(client.get(b"key").as_ref() == Some(&whole), "{len} bytes");
        assert_eq!(client.delta(b"key", Delta::up(1)), Reply::NotNumeric);
    }
}

fn held(client: &mut Client) {
    let lens = [AnyHandle::COPY_MAX + 1, 100 << 10, 600 << 10, 3 << 20];
    let mut values = Vec::new();
    for (seed, len) in lens.into_iter().enumerate() {
        client.set(b"key", &bytes(seed, len));
        values.push(client.keep(b"key"));
        // Each value is replaced as soon as it is read.
    }
    client.delete(b"key");
    for round in 0..20 {
        for len in lens {
            client.set(format!("{round} {len}").as_bytes(), &vec![0xFF; len]);
        }
    }
    client.engine.flush(client.now, client.now);
    while client.handle.maintain(client.now, 1000) {}
    for (seed, (value, len)) in values.iter().zip(lens).enumerate() {
        assert_eq!(value.len(), len);
        assert!(to_vec(value) == bytes(seed, len), "{len} bytes changed");
    }
}
