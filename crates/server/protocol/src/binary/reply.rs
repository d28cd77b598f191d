//! The header of a response, as a log reads it.

use super::HEADER;

/// The parts of a response's header that a log shows.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplyHead {
    /// The request's opcode.
    pub opcode: u8,
    /// The status.
    pub status: u16,
    /// Bytes before the value.
    pub head: usize,
    /// Bytes of the value.
    pub value: usize,
}

impl ReplyHead {
    /// That of the response at the front, if all of its header is there.
    pub fn parse(text: &[u8]) -> Option<Self> {
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
        let expected = ReplyHead {
            opcode: 0x0c,
            status: 1,
            head: HEADER + 6,
            value: 3,
        };
        assert_eq!(ReplyHead::parse(&text), Some(expected));
        assert_eq!(ReplyHead::parse(&text[..HEADER - 1]), None);
    }
}
