//! Cases of gets, touches, and the options of `mg`.

use nuthatch_engine::request::Leave;
use nuthatch_engine::{Expiry, Read, Removal, Reply, Store, TouchIf};
use std::time::Duration;

use super::Case;
use super::client::{Client, PEEK};
use crate::answer::Answer;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("read_missing", missing),
        Case::new("read_hit", hit),
        Case::new("read_keys_of_all_lengths", keys_of_all_lengths),
        Case::new("read_keys_of_any_bytes", keys_of_any_bytes),
        Case::new("read_metadata", metadata),
        Case::new("read_fetched", fetched),
        Case::new("read_idle_when_asked", idle),
        Case::new("read_touch", touch),
        Case::new("read_touch_dead_on_arrival", touch_dead_on_arrival),
        Case::new("read_touch_at_a_cas", touch_at_cas),
        Case::new("read_touch_at_an_expiry", touch_at_expiry),
        Case::new("read_vivify", vivify),
        Case::new("read_vivify_of_a_hit_changes_nothing", vivify_of_a_hit),
        Case::new("read_recache", recache),
        Case::new("read_recache_needs_may_win_and_an_expiry", recache_without),
        Case::new("read_recache_judges_life_before_touch", recache_and_touch),
        Case::new("read_unless_cas", unless_cas),
        Case::new("read_stale_has_one_winner", stale),
    ]
}

const WIN: Read = Read {
    may_win: true,
    ..PEEK
};

fn missing(client: &mut Client) {
    assert_eq!(client.get(b"key"), None);
    let options = [
        PEEK,
        WIN,
        Read::default(),
        Read {
            touch: Some(Expiry::Never),
            recache_below: Some(60),
            unless_cas: Some(1),
            ..WIN
        },
    ];
    for read in options {
        assert_eq!(client.read(b"key", read), Answer::Done(Reply::Miss));
    }
    assert_eq!(client.get(b"key"), None);
}

fn hit(client: &mut Client) {
    client.set(b"key", b"value");
    client.set(b"other", b"another");
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
    assert_eq!(client.get(b"other").as_deref(), Some(&b"another"[..]));
    assert_eq!(client.get(b"kez"), None);
}

fn keys_of_all_lengths(client: &mut Client) {
    // Each is a prefix of the next.
    let longest = [b'k'; 250];
    for len in 1..=250 {
        client.set(&longest[..len], len.to_string().as_bytes());
    }
    for len in 1..=250 {
        let expected = len.to_string().into_bytes();
        assert_eq!(client.get(&longest[..len]), Some(expected), "{len}");
    }
}

fn keys_of_any_bytes(client: &mut Client) {
    for byte in 0..=255_u8 {
        client.set(&[byte], &[byte, 1]);
        client.set(&[byte, 0], &[byte, 2]);
        client.set(&[0, byte, 0, 0, 0, 0, 0, 0, 255], &[byte, 3]);
    }
    // The key of bytes 0 and 0 is also that of byte 0 and a zero.
    for byte in 0..=255_u8 {
        assert_eq!(client.get(&[byte]), Some(vec![byte, 1]));
        assert_eq!(client.get(&[byte, 0]), Some(vec![byte, 2]));
        let long = [0, byte, 0, 0, 0, 0, 0, 0, 255];
        assert_eq!(client.get(&long), Some(vec![byte, 3]));
    }
}

fn metadata(client: &mut Client) {
    let expiry = client.in_seconds(60);
    let stored = client.must_store(
        b"key",
        Store {
            flags: 0xDEAD_BEEF,
            expiry,
            ..Store::set(b"12345")
        },
    );
    assert_eq!(stored.value_len, 5);
    let Answer::Value(item, value) = client.read(b"key", Read::default()) else {
        panic!("a hit returns the value");
    };
    assert_eq!(value, b"12345");
    assert_eq!((item.flags, item.value_len), (0xDEAD_BEEF, 5));
    assert_eq!((item.expiry, item.cas), (expiry, stored.cas));
    assert!(!item.stale && !item.won && !item.won_before);

    let found = client.read(b"key", PEEK);
    let Answer::Done(Reply::Found(seen)) = found else {
        panic!("a read without a value was answered {found:?}");
    };
    assert_eq!((seen.flags, seen.value_len), (0xDEAD_BEEF, 5));
    assert_eq!((seen.expiry, seen.cas), (expiry, stored.cas));
}

fn fetched(client: &mut Client) {
    client.set(b"key", b"value");
    assert!(!client.peek(b"key").fetched);
    assert!(!client.peek(b"key").fetched, "a peek leaves no trace");
    let first = client.meta(b"key", Read::default());
    assert!(!first.fetched, "the first hit was not yet hit before");
    assert!(client.peek(b"key").fetched);
    client.set(b"key", b"new value");
    assert!(!client.peek(b"key").fetched, "a new item was never hit");
    client.get(b"key");
    assert!(client.peek(b"key").fetched, "a plain get is a hit");
}

fn idle(client: &mut Client) {
    let asking = Read { idle: true, ..PEEK };
    for round in 0..5 {
        client.set(b"key", b"value");
        client.set(format!("other {round}").as_bytes(), b"value");
        assert_eq!(client.meta(b"key", asking).idle.as_secs(), 0);
        client.wait(7);
        assert_eq!(client.meta(b"key", asking).idle.as_secs(), 7);
        assert_eq!(client.peek(b"key").idle, Duration::ZERO, "nobody asked");
    }
    // Five times seven seconds ago.
    let first = client.meta(b"other 0", asking);
    assert_eq!(first.idle.as_secs(), 35);
}

fn touch(client: &mut Client) {
    let cas = client.set(b"key", b"value").cas;
    let soon = client.in_seconds(10);
    let touched = client.meta(
        b"key",
        Read {
            touch: Some(soon),
            ..PEEK
        },
    );
    assert_eq!((touched.expiry, touched.cas), (soon, cas));
    let late = client.in_seconds(100);
    let answer = client.read(
        b"key",
        Read {
            touch: Some(late),
            ..Read::default()
        },
    );
    assert_eq!(answer.value(), Some(&b"value"[..]));
    client.wait(50);
    assert_eq!(client.peek(b"key").expiry, late);
    client.meta(
        b"key",
        Read {
            touch: Some(Expiry::Never),
            ..PEEK
        },
    );
    client.wait(1000);
    assert_eq!(client.peek(b"key").expiry, Expiry::Never);
    assert_eq!(client.peek(b"key").cas, cas, "a touch is no change");
}

fn touch_dead_on_arrival(client: &mut Client) {
    client.set(b"key", b"value");
    let answer = client.read(
        b"key",
        Read {
            touch: Some(Expiry::At(client.now)),
            ..Read::default()
        },
    );
    assert_eq!(answer.value(), Some(&b"value"[..]), "the touch itself hits");
    assert_eq!(client.get(b"key"), None);
}

fn vivify(client: &mut Client) {
    let expiry = client.in_seconds(30);
    let read = Read {
        value: true,
        vivify: Some(expiry),
        bump: true,
        ..WIN
    };
    let Answer::Value(won, value) = client.read(b"key", read) else {
        panic!("a created item is answered like a hit");
    };
    assert!(value.is_empty());
    assert_eq!((won.flags, won.value_len, won.expiry), (0, 0, expiry));
    assert!(won.won && !won.won_before && !won.stale && !won.fetched);

    let lost = client.meta(b"key", read);
    assert!(!lost.won && lost.won_before, "there is one winner");
    assert_eq!(lost.cas, won.cas);
    client.set(b"key", b"recached");
    let after = client.meta(b"key", read);
    assert!(!after.won && !after.won_before, "a store ends the win");

    let without_value = Read {
        vivify: Some(Expiry::Never),
        new_cas: Some(7777),
        ..WIN
    };
    let answer = client.read(b"second", without_value);
    let Answer::Done(Reply::Found(item)) = answer else {
        panic!("a vivify without value was answered {answer:?}");
    };
    assert_eq!((item.cas, item.expiry), (7777, Expiry::Never));
    assert!(item.won);
    assert_eq!(client.get(b"second"), Some(vec![]));
}

fn vivify_of_a_hit(client: &mut Client) {
    let before = client.set(b"key", b"value");
    let after = client.meta(
        b"key",
        Read {
            vivify: Some(client.in_seconds(1)),
            new_cas: Some(7777),
            ..WIN
        },
    );
    assert_eq!((after.cas, after.expiry), (before.cas, Expiry::Never));
    assert!(!after.won);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
}

fn recache(client: &mut Client) {
    let expiry = client.in_seconds(100);
    client.must_store(
        b"key",
        Store {
            expiry,
            ..Store::set(b"value")
        },
    );
    let below = |seconds| Read {
        recache_below: Some(seconds),
        ..WIN
    };
    assert!(!client.meta(b"key", below(100)).won, "100 is not under 100");
    let winner = client.meta(b"key", below(101));
    assert!(winner.won && !winner.won_before && !winner.stale);
    let loser = client.meta(b"key", below(101));
    assert!(!loser.won && loser.won_before);
    client.wait(99);
    assert!(!client.meta(b"key", below(50)).won, "it was won before");
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
}

fn recache_without(client: &mut Client) {
    let below = Read {
        recache_below: Some(u32::MAX),
        ..WIN
    };
    client.set(b"never expires", b"value");
    assert!(!client.meta(b"never expires", below).won);
    let expiry = client.in_seconds(100);
    client.must_store(
        b"expires",
        Store {
            expiry,
            ..Store::set(b"value")
        },
    );
    let bystander = Read {
        may_win: false,
        ..below
    };
    assert!(!client.meta(b"expires", bystander).won);
    assert!(client.meta(b"expires", below).won);
    assert!(client.meta(b"expires", bystander).won_before);
}

fn recache_and_touch(client: &mut Client) {
    let expiry = client.in_seconds(10);
    client.must_store(
        b"key",
        Store {
            expiry,
            ..Store::set(b"value")
        },
    );
    let late = client.in_seconds(1000);
    let item = client.meta(
        b"key",
        Read {
            recache_below: Some(30),
            touch: Some(late),
            ..WIN
        },
    );
    assert!(item.won);
    assert_eq!(item.expiry, late);
}

fn touch_at_cas(client: &mut Client) {
    let late = client.in_seconds(1000);
    let at = |cas, expiry| Read {
        touch: Some(expiry),
        touch_if: TouchIf::Cas(cas),
        ..PEEK
    };
    let miss = client.read(b"key", at(1, late));
    assert_eq!(miss, Answer::Done(Reply::Miss));
    let old = client.set(b"key", b"value").cas;
    let cas = client.set(b"key", b"newer").cas;
    for other in [old, cas + 1, 0, u64::MAX] {
        let refused = client.read(b"key", at(other, late));
        assert_eq!(refused, Answer::Done(Reply::Exists));
        assert_eq!(client.peek(b"key").expiry, Expiry::Never);
    }
    let item = client.meta(b"key", at(cas, late));
    assert_eq!((item.cas, item.expiry), (cas, late));
    assert_eq!(client.peek(b"key").expiry, late);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"newer"[..]));
    // The cas of a touched item is the same, or a new one that it tells.
    let cas = client.peek(b"key").cas;
    assert_eq!(client.meta(b"key", at(cas, Expiry::Never)).cas, cas);
    assert_eq!(client.peek(b"key").expiry, Expiry::Never);
}

fn touch_at_expiry(client: &mut Client) {
    let [sooner, new, later] = [500, 1000, 1500].map(|seconds| client.in_seconds(seconds));
    let olds = [Expiry::Never, sooner, new, later];
    for (touch_if, touched) in [
        (TouchIf::Always, [true, true, true, true]),
        (TouchIf::Lasting, [true, false, false, false]),
        (TouchIf::Expiring, [false, true, true, true]),
        (TouchIf::Prolonged, [false, true, false, false]),
        (TouchIf::Shortened, [true, false, false, true]),
        (TouchIf::ExpiringShortened, [false, false, false, true]),
    ] {
        for value in [&b"value"[..], &[b'v'; 20_000]] {
            for (old, touched) in olds.into_iter().zip(touched) {
                client.store(
                    b"key",
                    Store {
                        expiry: old,
                        ..Store::set(value)
                    },
                );
                let touch = Read {
                    touch: Some(new),
                    touch_if,
                    may_win: true,
                    ..Read::default()
                };
                let answer = client.read(b"key", touch);
                let seen = client.peek(b"key");
                if touched {
                    assert!(matches!(answer, Answer::Value(..)), "{touch_if:?} {old:?}");
                    assert_eq!(seen.expiry, new, "{touch_if:?} {old:?}");
                } else {
                    assert_eq!(answer, Answer::Done(Reply::Exists), "{touch_if:?} {old:?}");
                    assert_eq!(seen.expiry, old);
                    assert!(!seen.fetched, "a refused touch leaves no trace");
                }
                assert_eq!(client.get(b"key").as_deref(), Some(value));
            }
        }
    }
    // Never is a moment, too: the latest.
    let endless = |touch_if| Read {
        touch: Some(Expiry::Never),
        touch_if,
        ..PEEK
    };
    for (touch_if, touched) in [(TouchIf::Prolonged, true), (TouchIf::Shortened, false)] {
        client.store(
            b"key",
            Store {
                expiry: new,
                ..Store::set(b"value")
            },
        );
        let answer = client.read(b"key", endless(touch_if));
        assert_eq!(answer != Answer::Done(Reply::Exists), touched);
        client.set(b"key", b"value");
        let refused = client.read(b"key", endless(touch_if));
        assert_eq!(refused, Answer::Done(Reply::Exists));
    }
}

fn unless_cas(client: &mut Client) {
    let cas = client.set(b"key", b"value").cas;
    let unless = |cas| Read {
        unless_cas: Some(cas),
        ..Read::default()
    };
    let same = client.read(b"key", unless(cas));
    assert!(matches!(same, Answer::Done(Reply::Found(item)) if item.cas == cas));
    for other in [cas + 1, cas.wrapping_sub(1), 0, u64::MAX] {
        let changed = client.read(b"key", unless(other));
        assert_eq!(changed.value(), Some(&b"value"[..]));
    }
    let changed = client.set(b"key", b"newer").cas;
    assert_eq!(
        client.read(b"key", unless(cas)).value(),
        Some(&b"newer"[..])
    );
    assert_eq!(client.read(b"key", unless(changed)).value(), None);
}

fn stale(client: &mut Client) {
    client.set(b"key", b"value");
    let leave = Leave::Stale {
        expiry: None,
        new_cas: None,
    };
    let removal = Removal {
        leave,
        ..Removal::default()
    };
    assert_eq!(client.remove(b"key", removal), Reply::Removed);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"value"[..]));
    let seen = client.peek(b"key");
    assert!(
        seen.stale && !seen.won && !seen.won_before,
        "a peek wins not"
    );
    let winner = client.meta(b"key", WIN);
    assert!(winner.stale && winner.won && !winner.won_before);
    for _ in 0..2 {
        let loser = client.meta(b"key", WIN);
        assert!(loser.stale && !loser.won && loser.won_before);
    }
    assert_eq!(client.remove(b"key", removal), Reply::Removed);
    assert!(client.meta(b"key", WIN).won, "marked anew, won anew");
    client.set(b"key", b"fresh");
    let fresh = client.meta(b"key", WIN);
    assert!(!fresh.stale && !fresh.won && !fresh.won_before);
}
