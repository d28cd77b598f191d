//! Keys that may be written in base64.

use nuthatch_protocol::{KEY_ROOM, decode_key};

use crate::context::Context;

/// The bytes of a key that may be written in base64. The parser has checked the key, so `None` does not happen. A
/// caller that gets it anyway answers as if there were no such item.
pub fn key_bytes<'a>(
    cx: &mut Context<'_, 'a>,
    written: &'a [u8],
    base64: bool,
) -> Option<&'a [u8]> {
    if !base64 {
        return Some(written);
    }
    let mut room = [0; KEY_ROOM];
    let key: &[u8] = cx.decoded.alloc_slice_copy(decode_key(written, &mut room)?);
    Some(key)
}
