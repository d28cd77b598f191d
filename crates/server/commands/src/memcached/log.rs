//! Log lines for commands and replies, in memcached's form. Data blocks are left out.

use std::os::fd::RawFd;

use nuthatch_engine::Value;
use nuthatch_protocol::reply_line;

use crate::conversation::Shown;
use crate::output::Output;

/// Logs the command that `input` begins with.
pub fn request(input: &[u8], fd: RawFd) {
    tracing::debug!("<{fd} {}", Shown(reply_line::first(input).0));
}

/// Logs the replies in an output from position `from` on.
pub fn answers<V: Value>(output: &Output<V>, from: usize, fd: RawFd) {
    let end = output.end();
    let mut at = from;
    while at < end {
        let (line, len) = reply_line::first(output.since(at));
        at += len;
        if reply_line::is_one_of_many(line) {
            tracing::trace!(">{fd} {}", Shown(line));
        } else {
            tracing::debug!(">{fd} {}", Shown(line));
        }
        if let Some(value_len) = reply_line::value_len(line) {
            // A pinned value is not in the text.
            let here = if output.is_pinned_at(at) {
                0
            } else {
                value_len
            };
            at += here + b"\r\n".len();
        }
    }
}
