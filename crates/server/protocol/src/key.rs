//! Keys: 1 to 250 bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;
use crate::reject::Reject;
use crate::words::{self, FirstWords, Words};

/// The longest key, in bytes.
pub const KEY_LEN_MAX: usize = 250;

/// Room for a decoded key. Its base64 form has at most [`KEY_LEN_MAX`] bytes, as any key that is
/// written on a line.
pub const KEY_ROOM: usize = KEY_LEN_MAX.div_ceil(4) * 3;

/// Checks a key of a text command: length, and no control character.
#[inline]
pub(crate) fn check(key: &[u8]) -> Result<&[u8], Error> {
    if key.is_empty() || key.len() > KEY_LEN_MAX || words::key_len(key) < key.len() {
        return Err(Error::BAD_FORMAT);
    }
    Ok(key)
}

/// The arguments of `incr`, `decr` and `touch`: `<key> <word> [noreply]`.
pub(crate) struct KeyAndWord<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) word: &'a [u8],
    pub(crate) noreply: bool,
}

impl<'a> KeyAndWord<'a> {
    /// Splits a command's words, and checks the key.
    pub(crate) fn of(args: Words<'a>) -> Result<Self, Reject> {
        let FirstWords {
            words: [key, word],
            count,
            noreply,
        } = args.first::<2>();
        if count < 2 {
            return Err(Error::BAD_FORMAT.into());
        }
        let key = check(key).map_err(|error| Reject::unless(noreply, error))?;
        Ok(Self { key, word, noreply })
    }
}

/// Decodes `text` from base64 (the standard alphabet, padded) into `room`, and returns the key. `None` if it is not
/// base64 or not a key. For the key of a parsed command this is never `None`.
pub fn decode_key<'r>(text: &[u8], room: &'r mut [u8; KEY_ROOM]) -> Option<&'r [u8]> {
    if text.len() > KEY_LEN_MAX {
        return None;
    }
    let len = STANDARD.decode_slice(text, room).ok()?;
    (len > 0).then(|| &room[..len])
}

/// Appends the base64 form of a key.
pub fn encode_key(out: &mut Vec<u8>, key: &[u8]) {
    for group in key.chunks(3) {
        let mut text = [0; 4];
        // Three bytes always fit four.
        if STANDARD.encode_slice(group, &mut text).is_ok() {
            out.extend_from_slice(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_have_1_to_250_bytes_and_no_control_characters() {
        for key in [&b"a"[..], b"\x80\xff!~", &[b'k'; 250]] {
            assert_eq!(check(key), Ok(key));
        }
        for key in [
            &b""[..],
            b"a b",
            b"a\0",
            b"\r",
            b"12345678\x7f",
            &[b'k'; 251],
        ] {
            assert_eq!(check(key), Err(Error::BAD_FORMAT), "{key:?}");
        }
    }

    #[test]
    fn base64_is_standard_and_padded() {
        let mut room = [0; KEY_ROOM];
        assert_eq!(
            decode_key(b"AAEg/w==", &mut room),
            Some(&b"\0\x01 \xff"[..])
        );
        for text in [
            &b""[..],
            b"AAEg/w",
            b"AAEg/w=",
            b"AAEg_w==",
            b"AAEg/x==",
            b"A",
            b"====",
        ] {
            assert_eq!(decode_key(text, &mut room), None, "{text:?}");
        }
    }

    #[test]
    fn a_written_key_is_no_longer_than_a_key() {
        let mut room = [0; KEY_ROOM];
        for (len, lawful) in [
            (1, true),
            (186, true),
            (187, false),
            (189, false),
            (300, false),
        ] {
            let mut text = Vec::new();
            encode_key(&mut text, &vec![7; len]);
            assert_eq!(decode_key(&text, &mut room).is_some(), lawful, "{len}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(key in proptest::collection::vec(any::<u8>(), 1..=186)) {
            let mut text = Vec::new();
            encode_key(&mut text, &key);
            let mut room = [0; KEY_ROOM];
            prop_assert_eq!(decode_key(&text, &mut room), Some(&key[..]));
        }
    }
}
