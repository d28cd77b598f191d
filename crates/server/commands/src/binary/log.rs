//! Log lines for requests and responses. Values are left out.

use std::os::fd::RawFd;

use nuthatch_engine::Value;
use nuthatch_protocol::binary::{HEADER, ReplyHead};

use crate::conversation::Shown;
use crate::output::Output;

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

/// Logs the responses in an output from position `from` on: opcode, status, and bytes of the value.
pub fn answers<V: Value>(output: &Output<V>, from: usize, fd: RawFd) {
    let end = output.end();
    let mut at = from;
    while at < end {
        let Some(reply) = ReplyHead::parse(output.since(at)) else {
            return;
        };
        let ReplyHead {
            opcode,
            status,
            head,
            value,
        } = reply;
        tracing::debug!(">{fd} binary {opcode:#04x} status {status:#06x}, {value} bytes");
        at += head;
        // A pinned value is not in the text.
        if !output.is_pinned_at(at) {
            at += value;
        }
    }
}
