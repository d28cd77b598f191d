//! Requests in the log.

use std::os::fd::RawFd;

use nuthatch_protocol::binary::HEADER;

use crate::conversation::Shown;

/// Logs the request that `input` begins with: its opcode, and its key if it has one.
pub fn request(input: &[u8], fd: RawFd) {
    let [_, opcode, high, low, extras, ..] = *input else {
        return;
    };
    let start = HEADER + usize::from(extras);
    let key = input.get(start..start + usize::from(u16::from_be_bytes([high, low])));
    tracing::debug!(
        "<{fd} binary {opcode:#04x} {}",
        Shown(key.unwrap_or_default())
    );
}
