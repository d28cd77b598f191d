//! Cases of incr, decr, and `ma`.

use nuthatch_engine::{Condition, Delta, Expiry, Read, Reply, Store};

use super::Case;
use super::client::{Client, PEEK};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("delta_up_and_down", up_and_down),
        Case::new("delta_up_wraps_and_down_saturates", ends),
        Case::new("delta_of_what_is_no_number", not_numeric),
        Case::new("delta_of_odd_numbers", odd_numbers),
        Case::new("delta_of_missing", missing),
        Case::new("delta_vivify", vivify),
        Case::new("delta_touch_and_new_cas", touch_and_new_cas),
        Case::new("delta_demands_a_cas", condition),
        Case::new("delta_keeps_flags_expiry_and_marks", keeps),
    ]
}

fn up_and_down(client: &mut Client) {
    client.set(b"key", b"9");
    assert_eq!(client.number(b"key", Delta::up(1)), 10);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"10"[..]));
    assert_eq!(client.number(b"key", Delta::up(0)), 10);
    assert_eq!(client.number(b"key", Delta::down(1)), 9);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"9"[..]));
    let mut expected = 9;
    for exponent in 0..19 {
        let by = 10_u64.pow(exponent);
        expected += by;
        assert_eq!(client.number(b"key", Delta::up(by)), expected);
        let value = client.get(b"key");
        assert_eq!(value, Some(expected.to_string().into_bytes()));
    }
    client.set(b"zeros", b"0007");
    assert_eq!(client.number(b"zeros", Delta::up(1)), 8);
    assert_eq!(client.get(b"zeros").as_deref(), Some(&b"8"[..]));
}

fn ends(client: &mut Client) {
    client.set(b"key", b"18446744073709551615");
    assert_eq!(client.number(b"key", Delta::up(1)), 0);
    assert_eq!(client.number(b"key", Delta::up(5)), 5);
    assert_eq!(client.number(b"key", Delta::up(u64::MAX)), 4);
    assert_eq!(client.number(b"key", Delta::down(3)), 1);
    assert_eq!(client.number(b"key", Delta::down(3)), 0);
    assert_eq!(client.number(b"key", Delta::down(u64::MAX)), 0);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"0"[..]));
}

fn not_numeric(client: &mut Client) {
    let values: [&[u8]; 14] = [
        b"",
        b" ",
        b"+",
        b"abc",
        b"1a",
        b"1 2",
        b"-1",
        b"+-1",
        b"1.5",
        b"0x1",
        b"18446744073709551616",
        b"99999999999999999999",
        // Two that wrap to a number of 64 bits.
        b"-18446744073709551615",
        b"-9223372036854775809",
    ];
    for value in values {
        let cas = client.set(b"key", value).cas;
        for delta in [Delta::up(1), Delta::down(1)] {
            assert_eq!(client.delta(b"key", delta), Reply::NotNumeric, "{value:?}");
        }
        assert_eq!(client.get(b"key").as_deref(), Some(value));
        assert_eq!(client.peek(b"key").cas, cas);
    }
    for long in [b'0', b'1'] {
        client.set(b"key", &[long; 10_000]);
        assert_eq!(client.delta(b"key", Delta::up(1)), Reply::NotNumeric);
    }
}

/// Numbers that a client never writes if it counts by these commands only.
fn odd_numbers(client: &mut Client) {
    let zeros = [&[b'0'; 255][..], b"5"].concat();
    let values: [&[u8]; 8] = [
        b"5 ",
        b" 5",
        b"\t\x0b5\r\n",
        b"+5",
        b" +05 ",
        b"0000000000000000000000005",
        b"                              5                        ",
        &zeros,
    ];
    for value in values {
        for (delta, after) in [
            (Delta::up(1), 6),
            (Delta::down(1), 4),
            (Delta::up(1 << 60), (1 << 60) + 5),
        ] {
            client.set(b"key", value);
            assert_eq!(client.number(b"key", delta), after, "{value:?}");
            let digits = after.to_string().into_bytes();
            assert_eq!(client.get(b"key"), Some(digits), "{value:?}");
        }
    }
    client.set(b"key", b"-0");
    assert_eq!(client.number(b"key", Delta::up(1)), 1);
}

fn missing(client: &mut Client) {
    for condition in [Condition::None, Condition::Cas(1)] {
        let delta = Delta {
            condition,
            touch: Some(Expiry::Never),
            new_cas: Some(1),
            ..Delta::up(1)
        };
        assert_eq!(client.delta(b"key", delta), Reply::NotFound);
        assert_eq!(client.get(b"key"), None);
    }
}

fn vivify(client: &mut Client) {
    let expiry = client.in_seconds(10);
    let delta = Delta {
        vivify: Some((1234, expiry)),
        touch: Some(Expiry::Never),
        new_cas: Some(55),
        ..Delta::up(6)
    };
    let created = client.delta(b"key", delta);
    let Reply::Created(1234, item) = created else {
        panic!("created, and answered {created:?}");
    };
    assert_eq!((item.expiry, item.cas, item.flags), (expiry, 55, 0));
    assert_eq!(item.value_len, 4);
    assert!(!item.won && !item.won_before);
    assert_eq!(client.get(b"key").as_deref(), Some(&b"1234"[..]));
    let counted = client.delta(b"key", delta);
    assert!(matches!(counted, Reply::Number(1240, _)), "{counted:?}");
    let demanding = Delta {
        condition: Condition::Cas(1),
        ..delta
    };
    assert_eq!(client.number(b"other", demanding), 1234);
}

fn touch_and_new_cas(client: &mut Client) {
    client.set(b"key", b"1");
    let expiry = client.in_seconds(10);
    let delta = Delta {
        touch: Some(expiry),
        new_cas: Some(777),
        ..Delta::up(1)
    };
    let reply = client.delta(b"key", delta);
    let Reply::Number(2, item) = reply else {
        panic!("1 and 1 is {reply:?}");
    };
    assert_eq!((item.expiry, item.cas, item.value_len), (expiry, 777, 1));
    client.wait(10);
    assert_eq!(client.delta(b"key", Delta::up(1)), Reply::NotFound);
}

fn condition(client: &mut Client) {
    let cas = client.set(b"key", b"5").cas;
    let delta = |condition| Delta {
        condition,
        ..Delta::up(1)
    };
    for wrong in [
        Condition::Cas(cas + 1),
        Condition::Cas(u64::MAX),
        Condition::CasOrStale(cas.wrapping_sub(1)),
    ] {
        assert_eq!(client.delta(b"key", delta(wrong)), Reply::Exists);
    }
    assert_eq!(client.number(b"key", delta(Condition::Cas(cas))), 6);
    let after = client.peek(b"key").cas;
    assert_ne!(after, cas);
    let delta = delta(Condition::CasOrStale(after));
    assert_eq!(client.number(b"key", delta), 7);
    // The engine checks the condition before the value.
    client.set(b"key", b"five");
    assert_eq!(client.delta(b"key", delta), Reply::Exists);
}

fn keeps(client: &mut Client) {
    let expiry = client.in_seconds(10);
    client.must_store(
        b"key",
        Store {
            flags: 7,
            expiry,
            ..Store::set(b"99")
        },
    );
    let win = Read {
        may_win: true,
        recache_below: Some(60),
        bump: true,
        ..PEEK
    };
    assert!(client.meta(b"key", win).won);
    assert_eq!(client.number(b"key", Delta::up(1)), 100);
    let item = client.peek(b"key");
    assert_eq!((item.flags, item.expiry, item.value_len), (7, expiry, 3));
    assert!(item.won_before && item.fetched && !item.stale);
}
