//! Keys, as a line of the protocol can carry them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::Error;

/// The longest key, in bytes.
pub const KEY_MAX: usize = 250;
/// The longest key with white space or control characters, in bytes: it travels in base64, and that has 250 bytes at most.
pub const BINARY_KEY_MAX: usize = KEY_MAX / 4 * 3;

/// A key that is neither empty nor too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    bytes: &'a [u8],
    is_binary: bool,
}

impl<'a> Key<'a> {
    /// Checks a key.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let is_binary = bytes.iter().any(|&byte| byte <= b' ' || byte == 0x7f);
        let limit = if is_binary { BINARY_KEY_MAX } else { KEY_MAX };
        let length = bytes.len();
        if length == 0 || length > limit {
            return Err(Error::Key { length, limit });
        }
        Ok(Self { bytes, is_binary })
    }

    /// The key's bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Adds the key to a line.
    pub fn write(self, out: &mut Vec<u8>) {
        if self.is_binary {
            out.extend_from_slice(STANDARD.encode(self.bytes).as_bytes());
        } else {
            out.extend_from_slice(self.bytes);
        }
    }

    /// Adds the flag that says that the key is in base64, if it is.
    pub fn write_flag(self, out: &mut Vec<u8>) {
        if self.is_binary {
            out.extend_from_slice(b" b");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(key: &[u8]) -> String {
        let mut out = Vec::new();
        let key = Key::new(key).unwrap();
        key.write(&mut out);
        key.write_flag(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_key_travels_as_it_is_or_in_base64() {
        assert_eq!(written(b"user:1"), "user:1");
        assert_eq!(written("größe".as_bytes()), "größe");
        assert_eq!(written(b"a b"), "YSBi b");
        assert_eq!(written(b"\r\n"), "DQo= b");
        assert!(written(&[0; BINARY_KEY_MAX]).len() <= KEY_MAX + 2);
    }

    #[test]
    fn a_key_without_room_is_refused() {
        let refused = |key: &[u8]| Key::new(key).unwrap_err();
        let error = |length, limit| Error::Key { length, limit };
        assert_eq!(refused(b""), error(0, KEY_MAX));
        assert_eq!(refused(&[b'x'; 251]), error(251, KEY_MAX));
        assert_eq!(refused(&[0; 187]), error(187, BINARY_KEY_MAX));
        assert!(Key::new(&[b'x'; 250]).is_ok());
    }
}
