//! What holds of the parser whatever a server sends: for the property test and the fuzz target.

use crate::wire::{Code, LINE_MAX, parse};

/// The largest value that the parser is told to take.
const VALUE_MAX: usize = 100;

/// Parses the bytes to their end, or to what is no reply, and checks what the parser says on the way.
pub fn check(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((reply, length))) = parse(rest, VALUE_MAX) {
        assert!(0 < length && length <= rest.len(), "{length}");
        assert!(length <= LINE_MAX + VALUE_MAX + 2, "{length}");
        if let Code::Value(value) = &reply.code {
            assert!(value.len() <= VALUE_MAX);
        }
        // It came with its last byte, whatever follows.
        let whole = parse(&rest[..length], VALUE_MAX);
        assert_eq!(whole, Ok(Some((reply, length))));
        let cut = parse(&rest[..length - 1], VALUE_MAX);
        assert_eq!(cut, Ok(None), "{length} bytes");
        rest = &rest[length..];
    }
    // The parser waits for no more than a reply may have.
    if parse(rest, VALUE_MAX) == Ok(None) {
        assert!(rest.len() < LINE_MAX + VALUE_MAX + 2, "{}", rest.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of replies, and what only looks like one.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let words: Vec<&'static [u8]> = vec![
            b"HD",
            b"EN",
            b"VA ",
            b"VA 3",
            b"VA 0",
            b"abc",
            b"\r\n",
            b"\n",
            b" ",
            b" f1",
            b" c2",
            b" t-1",
            b" Oa1",
            b" W",
            b" Z",
            b"SERVER_ERROR ",
            b"ERROR",
            b"VERSION ",
            b"MN\r\n",
            b"VA 3 t9\r\nabc\r\n",
        ];
        prop_oneof![
            8 => prop::sample::select(words).prop_map(<[u8]>::to_vec),
            1 => prop::collection::vec(any::<u8>(), 0..8),
            1 => Just(vec![b'x'; 700]),
        ]
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(pieces in prop::collection::vec(piece(), 0..20)) {
            check(&pieces.concat());
        }

        #[test]
        fn a_value_comes_back_as_it_was(value in prop::collection::vec(any::<u8>(), 0..VALUE_MAX), flags in any::<u32>()) {
            let mut bytes = format!("VA {} f{flags}\r\n", value.len()).into_bytes();
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
            let (reply, length) = parse(&bytes, VALUE_MAX).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(reply.code, Code::Value(value));
            prop_assert_eq!(reply.details.flags, flags);
        }
    }
}
