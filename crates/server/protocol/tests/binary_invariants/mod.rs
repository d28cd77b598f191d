//! Invariants of the binary protocol for every input, however bad. The property tests and the fuzzer check them.

use nuthatch_protocol::binary::{Command, HEADER, MAGIC, Parsed, ValueCommand, awaited, parse};
use nuthatch_protocol::{Awaited, KEY_LEN_MAX, Limits};

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
    match &parsed {
        Parsed::Incomplete => {}
        Parsed::Body {
            start, value_len, ..
        } => assert!(*value_len <= LIMITS.value_max && input.len() < start + value_len),
        Parsed::Request { request, consumed } => {
            assert!((HEADER..=input.len()).contains(consumed));
            check_key(&request.command);
        }
        Parsed::Refused(refusal) => assert!(refusal.consumed <= input.len()),
        Parsed::Foreign => assert_ne!(input[0], MAGIC),
    }
    if let Some((length, _, _)) = consumed(&parsed) {
        assert_eq!(parse(&input[..length], &LIMITS), parsed);
        for cut in 0..length {
            let cut_off = parse(&input[..cut], &LIMITS);
            assert!(
                matches!(cut_off, Parsed::Incomplete | Parsed::Body { .. }),
                "cut at {cut}: {input:?}"
            );
        }
    }
}

fn check_key(command: &Command<'_>) {
    let Command::Value(command) = command else {
        return;
    };
    let key = match command {
        ValueCommand::Get { key, .. }
        | ValueCommand::Delete { key, .. }
        | ValueCommand::Delta { key, .. } => key,
        ValueCommand::Store(store) => {
            assert!(store.value.len() <= LIMITS.value_max);
            store.key
        }
    };
    assert!((1..=KEY_LEN_MAX).contains(&key.len()));
}

/// Bytes of a request that can be executed or refused at once, the bytes to drop behind it, and whether it is the last.
fn consumed(parsed: &Parsed<'_>) -> Option<(usize, u64, bool)> {
    match parsed {
        Parsed::Request { consumed, .. } => Some((*consumed, 0, false)),
        Parsed::Refused(refusal) => Some((refusal.consumed, refusal.swallow, refusal.close)),
        Parsed::Incomplete | Parsed::Body { .. } | Parsed::Foreign => None,
    }
}

/// The outcomes of a connection that receives these pieces, in order.
fn outcomes(pieces: &[&[u8]]) -> Vec<String> {
    let mut outcomes = Vec::new();
    let mut input = Vec::new();
    let mut swallow = 0_u64;
    let mut awaits = Awaited::default();
    for piece in pieces {
        let worth_a_look = awaits.has_come(input.len(), piece);
        input.extend_from_slice(piece);
        if !worth_a_look {
            continue;
        }
        loop {
            let dropped = input.len().min(swallow.try_into().unwrap_or(usize::MAX));
            input.drain(..dropped);
            swallow -= dropped as u64;
            let parsed = parse(&input, &LIMITS);
            let Some((length, more, last)) = consumed(&parsed) else {
                if parsed == Parsed::Foreign {
                    outcomes.push("foreign".to_owned());
                    return outcomes;
                }
                awaits = match parsed {
                    Parsed::Body {
                        start, value_len, ..
                    } => Awaited::bytes(start + value_len),
                    _ => awaited(&input),
                };
                break;
            };
            outcomes.push(format!("{parsed:?}"));
            if last {
                return outcomes;
            }
            input.drain(..length);
            swallow = more;
        }
    }
    outcomes
}
