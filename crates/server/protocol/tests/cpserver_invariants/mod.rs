//! Invariants of CPServer's protocol for every input, however bad. The property tests and the fuzzer check them.

use nuthatch_protocol::cpserver::{HEADER, KEY_LEN, Parsed, StoreHeader, awaited, parse};
use nuthatch_protocol::{Awaited, Limits};

pub const LIMITS: Limits = Limits::of_values(64);

/// Checks all of it for `input`.
pub fn check(input: &[u8]) {
    check_front(input);
    let whole = outcomes(&[input]);
    for size in [1, 7, 50] {
        let pieces: Vec<&[u8]> = input.chunks(size).collect();
        assert_eq!(outcomes(&pieces), whole, "in pieces of {size}: {input:?}");
    }
}

/// The request at the front is well formed, and neither the input behind it nor the place of a cut makes it another
/// request.
fn check_front(input: &[u8]) {
    let parsed = parse(input, &LIMITS);
    match parsed {
        Parsed::Incomplete => assert!(input.len() < HEADER),
        Parsed::Body(StoreHeader { key, value_len, .. }) => {
            assert_eq!(key.len(), KEY_LEN);
            assert!(value_len <= LIMITS.value_max && input.len() < HEADER + value_len);
        }
        Parsed::Unknown { op } => assert_eq!(input[..4], op.to_le_bytes()),
        Parsed::TooLarge(StoreHeader { key, value_len, .. }) => {
            assert_eq!(key.len(), KEY_LEN);
            assert!(value_len > LIMITS.value_max);
        }
        Parsed::Lookup { key, .. } | Parsed::Insert { key, .. } => {
            assert_eq!(key, &input[HEADER - KEY_LEN..HEADER]);
        }
    }
    if let Some(length) = consumed(&parsed) {
        assert_eq!(parse(&input[..length], &LIMITS), parsed);
        for cut in 0..length {
            let cut_off = parse(&input[..cut], &LIMITS);
            assert!(
                matches!(cut_off, Parsed::Incomplete | Parsed::Body(_)),
                "cut at {cut}: {input:?}"
            );
        }
    }
}

/// Bytes of a request that can be executed or refused at once.
fn consumed(parsed: &Parsed<'_>) -> Option<usize> {
    match parsed {
        Parsed::Lookup { .. } | Parsed::TooLarge(_) => Some(HEADER),
        Parsed::Insert { value, .. } => Some(HEADER + value.len()),
        Parsed::Incomplete | Parsed::Body(_) | Parsed::Unknown { .. } => None,
    }
}

/// The outcomes of a connection that receives these pieces, in order.
fn outcomes(pieces: &[&[u8]]) -> Vec<String> {
    let mut outcomes = Vec::new();
    let mut input = Vec::new();
    let mut swallow = 0;
    let mut awaits = Awaited::default();
    for piece in pieces {
        let worth_a_look = awaits.has_come(input.len(), piece);
        input.extend_from_slice(piece);
        if !worth_a_look {
            continue;
        }
        loop {
            let dropped = swallow.min(input.len());
            input.drain(..dropped);
            swallow -= dropped;
            let parsed = parse(&input, &LIMITS);
            let Some(length) = consumed(&parsed) else {
                if let Parsed::Unknown { .. } = parsed {
                    outcomes.push(format!("{parsed:?}"));
                    return outcomes;
                }
                awaits = match parsed {
                    Parsed::Body(announced) => Awaited::bytes(HEADER + announced.value_len),
                    _ => awaited(&input),
                };
                break;
            };
            outcomes.push(format!("{parsed:?}"));
            if let Parsed::TooLarge(announced) = parsed {
                swallow = announced.value_len;
            }
            input.drain(..length);
        }
    }
    outcomes
}
