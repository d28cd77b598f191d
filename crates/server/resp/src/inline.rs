//! Inline requests: a line of words, as typed by hand.

use memchr::memchr;

use nuthatch_protocol::Awaited;

use crate::command::Parsed;
use crate::error::Error;
use crate::parse::broken;

/// The longest line, its end included.
pub const LINE_MAX: usize = 64 << 10;

/// The line at the front of `input`.
#[cold]
pub(super) fn parse(input: &[u8]) -> Parsed<'_> {
    let window = &input[..input.len().min(LINE_MAX)];
    match memchr(b'\n', window) {
        Some(end) => {
            let line = window[..end].strip_suffix(b"\r").unwrap_or(&window[..end]);
            let consumed = end + 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                Parsed::Nothing { consumed }
            } else {
                Parsed::Inline { line, consumed }
            }
        }
        None if input.len() < LINE_MAX => Parsed::Incomplete(Awaited::line(LINE_MAX)),
        None => broken(input, Error::INLINE_TOO_LONG),
    }
}

/// Appends the words of a line as a request. Between quotes, spaces belong to a word. Between double quotes `\n`, `\r`,
/// `\t`, `\b`, `\a` and `\xFF` are single bytes, and any other byte behind `\` stands for itself.
pub fn rewrite(line: &[u8], out: &mut Vec<u8>) -> Result<(), Error<'static>> {
    // Twice over the line: all words at once would take many times its memory, for most may be a letter each.
    let (mut word, mut count, mut rest) = (Vec::new(), 0, line);
    while let Some(behind) = next(rest, &mut word)? {
        (count, rest) = (count + 1, behind);
    }
    header(out, b'*', count);
    rest = line;
    while let Some(behind) = next(rest, &mut word)? {
        header(out, b'$', word.len());
        out.extend_from_slice(&word);
        out.extend_from_slice(b"\r\n");
        rest = behind;
    }
    Ok(())
}

/// [`rewrite`] makes so many bytes of a line of `len` bytes at most.
pub fn rewritten_max(len: usize) -> usize {
    /// More than what is around a word, and around all: a mark, a number and the ends of two lines.
    const AROUND: usize = 10;
    len + AROUND * (len / 2 + 2)
}

/// Reads the next word of a line, and returns the text behind it. `None` if there is no other.
fn next<'a>(line: &'a [u8], word: &mut Vec<u8>) -> Result<Option<&'a [u8]>, Error<'static>> {
    let rest = match line.iter().position(|&byte| !is_space(byte)) {
        Some(at) => &line[at..],
        None => &[],
    };
    // As in Redis, a line's first NUL ends it.
    if matches!(rest, [] | [0, ..]) {
        return Ok(None);
    }
    word.clear();
    read(rest, word).map(Some).ok_or(Error::QUOTES)
}

fn header(out: &mut Vec<u8>, mark: u8, number: usize) {
    out.push(mark);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Redis' isspace has one more space than ASCII's, the vertical tab.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// Reads the word at the front of `text`, and returns the text behind it. `None` if a quote does not close, or closes in
/// the middle of a word.
fn read<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        match rest {
            [] | [0, ..] => return Some(&[]),
            [byte, ..] if is_space(*byte) => return Some(rest),
            [quote @ (b'"' | b'\''), behind @ ..] => {
                rest = quoted(*quote, behind, word)?;
                return match rest {
                    [] => Some(rest),
                    [byte, ..] if is_space(*byte) => Some(rest),
                    _ => None,
                };
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                rest = behind;
            }
        }
    }
}

/// Reads up to the closing quote, and returns the text behind it.
fn quoted<'a>(quote: u8, text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let double = quote == b'"';
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, behind @ ..]
                if double && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                behind
            }
            [b'\\', byte, behind @ ..] if double => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    byte => *byte,
                });
                behind
            }
            [b'\\', b'\'', behind @ ..] if !double => {
                word.push(b'\'');
                behind
            }
            [byte, behind @ ..] if *byte == quote => return Some(behind),
            [0, ..] | [] => return None,
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
        };
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<String> {
        let mut out = Vec::new();
        rewrite(line.as_bytes(), &mut out).ok()?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn words_become_arguments() {
        for (line, expected) in [
            ("PING", "*1\r\n$4\r\nPING\r\n"),
            ("  set\tk  v ", "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n"),
            (
                r#"echo "a b\n\x41\"""#,
                "*2\r\n$4\r\necho\r\n$6\r\na b\nA\"\r\n",
            ),
            (
                r"echo 'a\'b' ''",
                "*3\r\n$4\r\necho\r\n$3\r\na'b\r\n$0\r\n\r\n",
            ),
            ("PING \0 x", "*1\r\n$4\r\nPING\r\n"),
            (r#"a"b c""#, "*1\r\n$4\r\nab c\r\n"),
        ] {
            assert_eq!(words(line).as_deref(), Some(expected), "{line}");
        }
        for line in [r#"echo "a"#, "echo 'a", r#"echo "a"b"#, r#"echo "a\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn what_a_line_becomes_has_a_bound() {
        for word in ["a ", "'' ", "abcdefghij ", "\"\\x00\" "] {
            for count in [1, 9, 10, LINE_MAX / word.len()] {
                let line = word.repeat(count);
                let len = words(&line).unwrap().len();
                assert!(len <= rewritten_max(line.len()), "{count} of {word}: {len}");
            }
        }
        let long = "x".repeat(LINE_MAX);
        assert!(words(&long).unwrap().len() <= rewritten_max(long.len()));
    }

    #[test]
    fn a_line_has_an_end() {
        assert!(matches!(
            parse(b"PING\r\nx"),
            Parsed::Inline {
                line: b"PING",
                consumed: 6
            }
        ));
        assert_eq!(parse(b" \r\n"), Parsed::Nothing { consumed: 3 });
        let endless = vec![b'x'; LINE_MAX];
        assert!(matches!(parse(&endless[1..]), Parsed::Incomplete(_)));
        let Parsed::Refused(refusal) = parse(&endless) else {
            panic!("it has no end");
        };
        assert!(refusal.close && refusal.error == Error::INLINE_TOO_LONG);
    }
}
