//! The lines of a dump: metadump, mgdump, `stats cachedump`.

use std::io::Write;

use crate::key::encode_key;

/// An item's line in metadump.
#[derive(Clone, Copy, Debug)]
pub struct MetaLine<'k> {
    /// The key, which may have any bytes.
    pub key: &'k [u8],
    /// The unix time at which it expires, if it does.
    pub expiry: Option<u64>,
    /// The unix time of its last access.
    pub last_access: u64,
    /// Its cas.
    pub cas: u64,
    /// A get has hit it.
    pub fetched: bool,
    /// Its slab class.
    pub class: usize,
    /// Its bytes of memory.
    pub size: usize,
    /// The client's flags.
    pub flags: u32,
}

impl MetaLine<'_> {
    /// Appends it. It ends with a space and without `\r`, as memcached's does.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Self {
            last_access: la,
            cas,
            class,
            size,
            flags,
            ..
        } = self;
        out.extend_from_slice(b"key=");
        uri_encode(out, self.key);
        let exp = self.expiry.map_or(-1, |second| second as i64);
        let fetch = if self.fetched { "yes" } else { "no" };
        // A write to a Vec does not fail.
        let _ = writeln!(
            out,
            " exp={exp} la={la} cas={cas} fetch={fetch} cls={class} size={size} flags={flags} "
        );
    }
}

/// The line of a key in mgdump: a meta get that a client can send as it is.
pub fn key_line(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"mg ");
    if is_plain(key) {
        out.extend_from_slice(key);
    } else {
        encode_key(out, key);
        out.extend_from_slice(b" b");
    }
    out.extend_from_slice(b"\r\n");
}

/// The line of an item in `stats cachedump`. `expiry` is a unix time, or 0.
pub fn cache_line(out: &mut Vec<u8>, key: &[u8], value_len: usize, expiry: u64) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(key);
    // A write to a Vec does not fail.
    let _ = write!(out, " [{value_len} b; {expiry} s]\r\n");
}

/// True if a text command can name this key. Other keys need base64.
pub fn is_plain(key: &[u8]) -> bool {
    key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

/// Writes a key URI-encoded: keys may have any byte, and these lines may not.
fn uri_encode(out: &mut Vec<u8>, key: &[u8]) {
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_are_escaped() {
        let mut out = Vec::new();
        uri_encode(&mut out, b"a:b \xff~");
        assert_eq!(out, b"a%3Ab%20%FF~");
        out.clear();
        key_line(&mut out, b"plain");
        key_line(&mut out, b"a b");
        assert_eq!(out, b"mg plain\r\nmg YSBi b\r\n");
    }
}
