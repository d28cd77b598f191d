//! Log lines for CPServer's requests.

use std::fmt::{self, Display};
use std::os::fd::RawFd;

use nuthatch_protocol::cpserver::HEADER;

/// Logs the request that `input` begins with.
pub fn request(input: &[u8], fd: RawFd) {
    let header = &input[..input.len().min(HEADER)];
    tracing::debug!("<{fd} {}", Numbers(header));
}

/// The header of a request of CPServer's.
struct Numbers<'a>(&'a [u8]);

impl Display for Numbers<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, rest) = self.0.split_at_checked(4).unwrap_or_default();
        let (size, key) = rest.split_at_checked(4).unwrap_or_default();
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().rev();
            digits.fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        let (size, key) = (number(size), number(key));
        match number(op) {
            0 => write!(out, "LOOKUP {key}"),
            1 => write!(out, "INSERT {key} {size}"),
            2 => write!(out, "FIND {key}"),
            3 => write!(out, "STORE {key} {size}"),
            op => write!(out, "operation {op}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpservers_requests_have_names() {
        let header = |op: u32, size: u32| [&op.to_le_bytes()[..], &size.to_le_bytes()].concat();
        let key = 9_u64.to_le_bytes();
        let shown = |op, size| Numbers(&[header(op, size), key.to_vec()].concat()).to_string();
        assert_eq!(shown(0, 0), "LOOKUP 9");
        assert_eq!(shown(3, 5), "STORE 9 5");
        assert_eq!(shown(77, 0), "operation 77");
        assert_eq!(Numbers(b"\x01").to_string(), "LOOKUP 0");
    }
}
