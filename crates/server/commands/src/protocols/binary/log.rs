//! Log lines for requests and responses. Values are left out.

use std::os::fd::RawFd;

use nuthatch_engine::Value;
use nuthatch_protocol::binary::HEADER;

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
        let Some(answer) = Answer::of(output.since(at)) else {
            return;
        };
        let Answer {
            opcode,
            status,
            head,
            value,
        } = answer;
        tracing::debug!(">{fd} binary {opcode:#04x} status {status:#06x}, {value} bytes");
        at += head;
        // A pinned value is not in the text.
        if !output.is_pinned_at(at) {
            at += value;
        }
    }
}

/// The parts of a response that the log shows.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    opcode: u8,
    status: u16,
    /// Bytes before the value.
    head: usize,
    value: usize,
}

impl Answer {
    fn of(text: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = text.first_chunk()?;
        let [
            _,
            opcode,
            key_high,
            key_low,
            extras,
            _,
            high,
            low,
            b0,
            b1,
            b2,
            b3,
            ..,
        ] = *header;
        let before = usize::from(extras) + usize::from(u16::from_be_bytes([key_high, key_low]));
        let body = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
        Some(Self {
            opcode,
            status: u16::from_be_bytes([high, low]),
            head: HEADER + before,
            value: body.checked_sub(before)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_tells_where_the_next_begins() {
        let mut text = [0; HEADER + 9];
        text[..12].copy_from_slice(&[0x81, 0x0c, 0, 2, 4, 0, 0, 1, 0, 0, 0, 9]);
        let expected = Answer {
            opcode: 0x0c,
            status: 1,
            head: HEADER + 6,
            value: 3,
        };
        assert_eq!(Answer::of(&text), Some(expected));
        assert_eq!(Answer::of(&text[..HEADER - 1]), None);
    }
}
