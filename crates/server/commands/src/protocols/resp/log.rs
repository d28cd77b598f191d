//! Log lines for requests and answers: a request's name and its first argument, unless that is data, and an answer's
//! lines. Values and passwords are left out.

use std::os::fd::RawFd;

use nuthatch_engine::Value;

use crate::conversation::Shown;
use crate::output::Output;

/// The most lines that the log shows of answers that are made in one go: an answer may have many keys.
const LINES_MAX: usize = 32;

/// Logs the request that `input` begins with: its name and its first argument, which is a key in most of them.
pub fn request(input: &[u8], fd: RawFd) {
    let words = front(input);
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
        let (line, rest) = line(text);
        at += text.len() - rest.len();
        tracing::debug!(">{fd} {}", Shown(line));
        if let Some(value_len) = announced(line) {
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

/// The number of bytes behind a line that announces them.
fn announced(line: &[u8]) -> Option<usize> {
    match line {
        [b'$' | b'=', b'-', ..] => None,
        [b'$' | b'=', length @ ..] => Some(number(length)),
        _ => None,
    }
}

/// The parts of a request that the log shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words<'a> {
    name: &'a [u8],
    key: Option<&'a [u8]>,
    /// Arguments that are not shown.
    others: usize,
}

/// Commands whose first argument is data, a password, or a program.
const WITHOUT_KEY: [&[u8]; 6] = [b"auth", b"hello", b"echo", b"ping", b"eval", b"script"];

fn front(input: &[u8]) -> Words<'_> {
    let words = match input.strip_prefix(b"*") {
        Some(array) => of_array(array),
        None => of_line(input),
    };
    let is_one = |name: &&[u8]| name.eq_ignore_ascii_case(words.name);
    match words.key {
        Some(_) if WITHOUT_KEY.iter().any(is_one) => Words {
            key: None,
            others: words.others + 1,
            ..words
        },
        _ => words,
    }
}

/// The words of `2\r\n$3\r\nGET\r\n$1\r\nk\r\n`.
fn of_array(array: &[u8]) -> Words<'_> {
    let (count, rest) = line(array);
    let (name, rest) = argument(rest);
    let (key, _) = argument(rest);
    let arguments = number(count).saturating_sub(1);
    Words {
        name: name.unwrap_or_default(),
        key: key.filter(|_| arguments > 0),
        others: arguments.saturating_sub(1),
    }
}

/// The words of `get k\r\n`.
fn of_line(input: &[u8]) -> Words<'_> {
    let (line, _) = line(input);
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    Words {
        name: words.next().unwrap_or_default(),
        key: words.next(),
        others: words.count(),
    }
}

/// The first argument, and the input behind it. `None` if its length or its end has not arrived.
fn argument(input: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let Some(input) = input.strip_prefix(b"$") else {
        return (None, &[]);
    };
    let (len, rest) = line(input);
    match rest.split_at_checked(number(len)) {
        Some((argument, rest)) => (
            Some(argument),
            rest.strip_prefix(b"\r\n").unwrap_or_default(),
        ),
        None => (None, &[]),
    }
}

/// The first line without its line end, and the input behind it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b'\n');
    let (line, rest) = end.map_or((text, &[][..]), |end| (&text[..end], &text[end + 1..]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

fn number(text: &[u8]) -> usize {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_data_follows() {
        for (line, follows) in [
            (&b"$12"[..], Some(12)),
            (b"=7", Some(7)),
            (b"$0", Some(0)),
            (b"$-1", None),
            (b"+OK", None),
            (b":5", None),
            (b"*3", None),
        ] {
            assert_eq!(announced(line), follows);
        }
    }

    #[test]
    fn keys_are_shown_and_neither_values_nor_passwords() {
        for (input, name, key, others) in [
            (&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"[..], "GET", Some("k"), 0),
            (
                b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n",
                "SET",
                Some("k"),
                1,
            ),
            (
                b"*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$50\r\nvalu",
                "MSET",
                Some("k"),
                3,
            ),
            (b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n", "AUTH", None, 1),
            (b"*2\r\n$4\r\nEcho\r\n$4\r\ndata\r\n", "Echo", None, 1),
            (b"hello 3 auth me secret\r\n", "hello", None, 4),
            (b"set k v\r\nget k\r\n", "set", Some("k"), 1),
            (b"*1\r\n$4\r\nEXEC\r\n$3\r\n", "EXEC", None, 0),
            (b"*2\r\n$3\r\nGET\r\n$9\r\nk", "GET", None, 0),
            (b"*x\r\n", "", None, 0),
        ] {
            let expected = Words {
                name: name.as_bytes(),
                key: key.map(str::as_bytes),
                others,
            };
            assert_eq!(front(input), expected);
        }
    }
}
