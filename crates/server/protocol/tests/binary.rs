//! Property tests of the binary protocol's parser with arbitrary, partly valid and valid input.

mod binary_invariants;

use binary_invariants::{LIMITS, check};
use nuthatch_protocol::binary::{
    Command, HEADER, Opcode, Parsed, Status, StoreVerb, ValueCommand, awaited, parse,
};
use proptest::prelude::*;

/// A request as a client writes it.
fn written(opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = extras.len() + key.len() + value.len();
    let mut bytes = vec![0x80, opcode];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend((body as u32).to_be_bytes());
    bytes.extend(b"opaq");
    bytes.extend(cas.to_be_bytes());
    [&bytes, extras, key, value].concat()
}

/// Requests whose lengths are often valid.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let extras = prop_oneof![Just(0_usize), Just(4), Just(8), Just(20), 0..30_usize];
    let key = prop_oneof![8 => 0..9_usize, 1 => 240..260_usize];
    let value = prop_oneof![4 => Just(0_usize), 4 => 0..70_usize];
    let odd = prop_oneof![8 => Just(0_i32), 1 => -3..3_i32];
    let piece =
        (0..0x28_u8, extras, key, value, odd).prop_map(|(opcode, extras, key, value, odd)| {
            let (extras, key, value) = (vec![1; extras], vec![b'k'; key], vec![b'v'; value]);
            let mut bytes = written(opcode, 0, &extras, &key, &value);
            bytes.resize((bytes.len() as i32 + odd).max(0) as usize, 0);
            bytes
        });
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&input);
    }

    #[test]
    fn any_bytes_behind_the_magic(input in proptest::collection::vec(any::<u8>(), 0..60)) {
        check(&[&[0x80], &input[..]].concat());
    }

    #[test]
    fn nearly_requests(input in soup()) {
        check(&input);
    }

    #[test]
    fn stores_are_understood(
        verb in 0..5_usize,
        quiet in any::<bool>(),
        key in proptest::collection::vec(any::<u8>(), 1..=250),
        value in proptest::collection::vec(any::<u8>(), 0..=LIMITS.value_max),
        (flags, exptime, cas) in any::<(u32, u32, u64)>(),
        behind in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let (opcode, verb) = [
            ([0x01, 0x11], StoreVerb::Set),
            ([0x02, 0x12], StoreVerb::Add),
            ([0x03, 0x13], StoreVerb::Replace),
            ([0x0e, 0x19], StoreVerb::Append),
            ([0x0f, 0x1a], StoreVerb::Prepend),
        ][verb];
        let appends = matches!(verb, StoreVerb::Append | StoreVerb::Prepend);
        let extras = match appends {
            true => Vec::new(),
            false => [flags.to_be_bytes(), exptime.to_be_bytes()].concat(),
        };
        let opcode = opcode[usize::from(quiet)];
        let request = written(opcode, cas, &extras, &key, &value);
        let input = [&request[..], &behind].concat();
        let Parsed::Request { request: parsed, consumed } = parse(&input, &LIMITS) else {
            return Err(TestCaseError::fail("a complete request"));
        };
        prop_assert_eq!(consumed, request.len());
        prop_assert_eq!(parsed.head.opaque, *b"opaq");
        prop_assert_eq!(parsed.head.opcode.loud().1, quiet);
        let Command::Value(ValueCommand::Store(store)) = parsed.command else {
            return Err(TestCaseError::fail("a store"));
        };
        prop_assert_eq!(store.verb, verb);
        prop_assert_eq!((store.key, store.value, store.cas), (&key[..], &value[..], cas));
        if !appends {
            prop_assert_eq!((store.flags, store.exptime), (flags, exptime));
        }
    }
}

#[test]
fn counters_are_made_unless_the_expiry_forbids_it() {
    let extras = |exptime: u32| {
        let numbers = [5_u64.to_be_bytes(), 7_u64.to_be_bytes()].concat();
        [&numbers[..], &exptime.to_be_bytes()].concat()
    };
    for (exptime, made) in [(0, Some((7, 0))), (9, Some((7, 9))), (u32::MAX, None)] {
        let input = written(0x06, 3, &extras(exptime), b"n", b"");
        let Parsed::Request { request, .. } = parse(&input, &LIMITS) else {
            panic!("a complete request");
        };
        let expected = ValueCommand::Delta {
            key: b"n",
            down: true,
            by: 5,
            make: made,
            cas: 3,
        };
        assert_eq!(request.command, Command::Value(expected));
    }
}

#[test]
fn lengths_that_cannot_be_end_the_connection_and_unknown_opcodes_do_not() {
    for (input, status, close, swallow) in [
        (written(0x00, 0, b"", b"", b""), Status::Invalid, true, 0),
        (
            written(0x00, 0, b"", &[b'k'; 251], b""),
            Status::Invalid,
            true,
            0,
        ),
        (written(0x00, 0, b"", b"k", b"v"), Status::Invalid, true, 0),
        (
            written(0x01, 0, b"1234", b"k", b"v"),
            Status::Invalid,
            true,
            0,
        ),
        (written(0x0a, 0, b"", b"k", b""), Status::Invalid, true, 0),
        (
            written(0x10, 0, b"", b"k", &[b'v'; 9]),
            Status::Invalid,
            true,
            0,
        ),
        (
            written(0x77, 0, b"", b"key", b"value"),
            Status::Unknown,
            false,
            8,
        ),
    ] {
        let Parsed::Refused(refusal) = parse(&input, &LIMITS) else {
            panic!("refused: {input:?}");
        };
        assert_eq!(
            (refusal.status, refusal.close),
            (status, close),
            "{input:?}"
        );
        assert_eq!(refusal.swallow, swallow);
    }
    // Lengths that contradict each other.
    let mut lying = written(0x00, 0, b"", b"key", b"");
    lying[11] = 2;
    assert!(matches!(parse(&lying, &LIMITS), Parsed::Refused(refusal) if refusal.close));
}

#[test]
fn a_value_over_the_limit_is_dropped_and_its_old_one_forgotten_by_set_alone() {
    let value = [b'v'; 65];
    for (opcode, forget) in [(0x01, Some(&b"k"[..])), (0x02, None)] {
        let input = written(opcode, 0, &[0; 8], b"k", &value);
        let Parsed::Refused(refusal) = parse(&input, &LIMITS) else {
            panic!("too large");
        };
        assert_eq!((refusal.status, refusal.swallow), (Status::TooLarge, 65));
        assert_eq!((refusal.forget, refusal.close), (forget, false));
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_looked_at_a_few_times() {
    let input = written(Opcode::SET.0, 0, &[0; 8], b"key", &[b'v'; 60]);
    let (mut looks, mut awaits) = (0, nuthatch_protocol::Awaited::default());
    for (at, byte) in input.iter().enumerate() {
        if !awaits.has_come(at, std::slice::from_ref(byte)) {
            continue;
        }
        looks += 1;
        awaits = match parse(&input[..=at], &LIMITS) {
            Parsed::Incomplete => awaited(&input[..=at]),
            Parsed::Body {
                start, value_len, ..
            } => nuthatch_protocol::Awaited::bytes(start + value_len),
            Parsed::Request { consumed, .. } => {
                assert_eq!(consumed, at + 1);
                continue;
            }
            other => panic!("{other:?}"),
        };
    }
    assert!(
        looks <= 4,
        "{looks}, and there are {HEADER} bytes of header alone"
    );
}
