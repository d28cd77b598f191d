//! Log lines for requests and answers: a request's name and its first argument, unless that is data, and an answer's
//! lines. Values and passwords are left out.

use std::os::fd::RawFd;

use nuthatch_commands::conversation::Shown;
use nuthatch_commands::output::Output;
use nuthatch_engine::Value;
use nuthatch_resp::{Summary, announced_len, first_line};

/// The most lines that the log shows of answers that are made in one go: an answer may have many keys.
const LINES_MAX: usize = 32;

/// Logs the request that `input` begins with: its name and its first argument, which is a key in most of them.
pub fn request(input: &[u8], fd: RawFd) {
    let words = Summary::of(input);
    let shown = words.key.unwrap_or_default();
    match words.others {
        0 => tracing::debug!("<{fd} {} {}", Shown(words.name), Shown(shown)),
        others => tracing::debug!(
            "<{fd} {} {} and {others} more",
            Shown(words.name),
            Shown(shown)
        ),
    }
}

/// Logs the answers in an output from position `from` on.
pub fn answers<V: Value>(output: &Output<V>, from: usize, fd: RawFd) {
    let end = output.end();
    let mut at = from;
    for _ in 0..LINES_MAX {
        if at >= end {
            return;
        }
        let text = output.since(at);
        let (line, rest) = first_line(text);
        at += text.len() - rest.len();
        tracing::debug!(">{fd} {}", Shown(line));
        if let Some(value_len) = announced_len(line) {
            // A pinned value is not in the text.
            let here = if output.is_pinned_at(at) {
                0
            } else {
                value_len
            };
            at += here + b"\r\n".len();
        }
    }
    if at < end {
        tracing::debug!(">{fd} and {} bytes", end - at);
    }
}
