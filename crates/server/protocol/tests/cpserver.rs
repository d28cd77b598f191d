//! Property tests of CPServer's parser with arbitrary, partly valid and valid input.

mod cpserver_invariants;

use cpserver_invariants::{LIMITS, check};
use nuthatch_protocol::cpserver::{Dialect, HEADER, Parsed, parse};
use proptest::prelude::*;

/// One request as a client writes it.
fn written(op: u32, key: u64, value: &[u8]) -> Vec<u8> {
    let header = [op.to_le_bytes(), (value.len() as u32).to_le_bytes()];
    [&header.concat()[..], &key.to_le_bytes(), value].concat()
}

/// Requests whose numbers are often valid, with values that often have the announced length.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let op = prop_oneof![8 => 0..4_u32, 1 => any::<u32>()];
    let size = prop_oneof![4 => 0..70_u32, 1 => any::<u32>()];
    let odd = prop_oneof![4 => Just(0_i32), 1 => -3..3_i32];
    let piece = (op, size, any::<u64>(), odd).prop_map(|(op, size, key, odd)| {
        let mut bytes = [op.to_le_bytes(), size.to_le_bytes()].concat();
        bytes.extend(key.to_le_bytes());
        let stores = op & 1 == 1;
        let length = if stores {
            size.min(300) as i32 + odd
        } else {
            odd
        };
        bytes.resize(HEADER + length.max(0) as usize, 0);
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
    fn nearly_requests(input in soup()) {
        check(&input);
    }

    #[test]
    fn what_is_written_is_understood(
        op in 0..4_u32,
        number in any::<u64>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..=LIMITS.value_max),
        behind in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let stores = op & 1 == 1;
        let said: &[u8] = if stores { &bytes } else { &[] };
        let input = [written(op, number, said), behind].concat();
        let wanted = if op < 2 { Dialect::Paper } else { Dialect::Extended };
        match parse(&input, &LIMITS) {
            Parsed::Lookup { key, dialect } => {
                prop_assert!(!stores && dialect == wanted);
                prop_assert_eq!(key, &number.to_le_bytes());
            }
            Parsed::Insert { key, value, dialect } => {
                prop_assert!(stores && dialect == wanted);
                prop_assert_eq!(key, &number.to_le_bytes());
                prop_assert_eq!(value, &bytes);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
