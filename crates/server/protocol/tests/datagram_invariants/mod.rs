//! Invariants of memcached's datagrams for every input, however bad. The property tests and the fuzzer check them.

use std::convert::Infallible;

use nuthatch_protocol::datagram::{FRAME, Frames, HEADER, parse};
use nuthatch_protocol::{Limits, Parsed, binary};

const LIMITS: Limits = Limits::of_values(64);

/// Checks all of it for `input`: as a received datagram, and as an answer to send.
pub fn check(input: &[u8]) {
    if let Some((request, start)) = parse(input) {
        assert_eq!(input[..start], frame(request, 0, 1, &input[6..start]));
        assert!(start == HEADER && start < input.len());
        check_text(&input[start..]);
    }
    check_frames(input);
}

/// The requests of a datagram are parsed one after the other, until one is not complete: the rest is dropped.
fn check_text(text: &[u8]) {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(consumed) = consumed(rest) else {
            break;
        };
        assert!(0 < consumed, "no end: {rest:?}");
        rest = rest.get(consumed..).unwrap_or_default();
    }
}

/// Bytes of the request at the front, of either protocol. `None` if it is not complete.
fn consumed(text: &[u8]) -> Option<usize> {
    if text[0] == binary::MAGIC {
        return match binary::parse(text, &LIMITS) {
            binary::Parsed::Request { consumed, .. } => Some(consumed),
            binary::Parsed::Refused(refusal) => {
                Some(refusal.consumed.saturating_add(refusal.swallow as usize))
            }
            _ => None,
        };
    }
    match nuthatch_protocol::parse(text, &LIMITS) {
        Parsed::Command { consumed, .. } => Some(consumed),
        Parsed::Refused(refusal) => Some(refusal.consumed.saturating_add(refusal.swallow as usize)),
        _ => None,
    }
}

/// An answer comes back whole from its frames, in whatever pieces it was given.
fn check_frames(input: &[u8]) {
    let Some((&[seed, times], piece)) = input.split_first_chunk() else {
        return;
    };
    let answer = piece.repeat(1 + usize::from(times) % 32);
    let count = answer.len().div_ceil(FRAME - HEADER);
    let mut frames = Frames::new(seed.into(), answer.len());
    let (mut found, mut number) = (Vec::new(), 0);
    let mut send = |sent: &[u8]| {
        let (header, text) = sent.split_at(HEADER);
        assert_eq!(header, frame(seed.into(), number, count as u16, &[0, 0]));
        let is_last = usize::from(number) + 1 == count;
        assert!(sent.len() == FRAME || is_last && !text.is_empty());
        found.extend_from_slice(text);
        number += 1;
        Ok::<(), Infallible>(())
    };
    // Pieces of sizes around a frame's.
    for bytes in answer.chunks(1 + usize::from(seed) * 11) {
        let Ok(()) = frames.take(bytes, &mut send);
    }
    let Ok(()) = frames.end(&mut send);
    let Ok(()) = frames.end(&mut send);
    assert_eq!(usize::from(number), count);
    assert_eq!(found, answer);
}

fn frame(request: u16, number: u16, of: u16, later: &[u8]) -> Vec<u8> {
    let numbers = [request, number, of].map(u16::to_be_bytes);
    [&numbers.concat()[..], later].concat()
}
