//! The parsers of get, gets, gat and gats.

use crate::command::{Exptime, Get};
use crate::error::Error;
use crate::key::KEY_LEN_MAX;
use crate::number;
use crate::reject::Reject;
use crate::words::{self, Words};

/// `get <key>+`, `gets <key>+`.
#[inline]
pub(crate) fn parse(keys: Words<'_>, with_cas: bool) -> Result<Get<'_>, Reject> {
    command(keys, with_cas, None)
}

/// `gat <exptime> <key>+`, `gats <exptime> <key>+`.
pub(crate) fn parse_touching(args: Words<'_>, with_cas: bool) -> Result<Get<'_>, Reject> {
    let mut words = args.iter();
    let exptime = words.next().ok_or(Error::BAD_FORMAT)?;
    let keys = words.rest();
    if keys.iter().next().is_none() {
        return Err(Error::BAD_FORMAT.into());
    }
    let exptime = number::exptime(exptime).ok_or(Error::BAD_EXPTIME)?;
    command(keys, with_cas, Some(exptime))
}

/// The front of a line of `get`, `gets`, `gat` or `gats` whose keys are still to come: `text` has all of it that is not a
/// key. Returns the command without keys, and the bytes that it took.
pub(crate) fn parse_front(text: &[u8]) -> Result<(Get<'static>, usize), Error> {
    let (name, args) = text.split_at(words::word_len(text));
    let with_cas = name.ends_with(b"s");
    let mut words = Words(args).iter();
    let touch = match name {
        b"gat" | b"gats" => {
            let word = words.next().ok_or(Error::BAD_FORMAT)?;
            if words.rest().0.is_empty() {
                // Its end may be missing.
                return Err(Error::BAD_FORMAT);
            }
            Some(number::exptime(word).ok_or(Error::BAD_EXPTIME)?)
        }
        _ => None,
    };
    let get = Get {
        keys: Words(&[]),
        with_cas,
        touch,
    };
    Ok((get, text.len() - words.rest().0.len()))
}

/// What comes next in a line of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey<'a> {
    /// A key.
    Key(&'a [u8]),
    /// The end of the line.
    End,
    /// Not known yet: more bytes must arrive.
    Incomplete,
    /// Something that is no key.
    Refused(Error),
}

/// Takes the next key of a get's line from the front of `input`. Also returns the bytes to drop from the input.
pub fn next_key(input: &[u8]) -> (NextKey<'_>, usize) {
    let text = words::skip_spaces(input);
    let spaces = input.len() - text.len();
    let (key, behind) = text.split_at(words::key_len(text));
    if key.len() > KEY_LEN_MAX {
        return (NextKey::Refused(Error::BAD_FORMAT), spaces);
    }
    let (is_end, end) = match behind {
        [] | [b'\r'] => return (NextKey::Incomplete, spaces),
        [b' ', ..] => (false, 0),
        [b'\n', ..] => (true, 1),
        [b'\r', b'\n', ..] => (true, 2),
        _ => return (NextKey::Refused(Error::BAD_FORMAT), spaces),
    };
    match is_end && key.is_empty() {
        true => (NextKey::End, spaces + end),
        false => (NextKey::Key(key), spaces + key.len()),
    }
}

#[inline]
fn command(keys: Words<'_>, with_cas: bool, touch: Option<Exptime>) -> Result<Get<'_>, Reject> {
    check_keys(keys.0)?;
    Ok(Get {
        keys,
        with_cas,
        touch,
    })
}

/// Checks that `text` is one key or more, in one pass: a space must follow each key.
#[inline(always)]
fn check_keys(text: &[u8]) -> Result<(), Error> {
    let mut rest = words::skip_spaces(text);
    if rest.is_empty() {
        return Err(Error::BAD_FORMAT);
    }
    while !rest.is_empty() {
        let len = words::key_len(rest);
        if len == 0 || len > KEY_LEN_MAX {
            return Err(Error::BAD_FORMAT);
        }
        rest = words::skip_spaces(&rest[len..]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::encode;
    use crate::testing::{accept, encoded, reject};

    fn get(input: &[u8]) -> (Vec<&[u8]>, bool, Option<i32>) {
        let Command::Get(get) = accept(input) else {
            panic!("not a get");
        };
        let touch = get.touch.map(|exptime| exptime.0);
        (get.keys.iter().collect(), get.with_cas, touch)
    }

    #[test]
    fn keys_are_taken_in_order() {
        let long = [b'k'; KEY_LEN_MAX];
        let longest = [b"get ", &long[..], b" b\r\n"].concat();
        for (input, keys, with_cas, touch) in [
            (&b"get a\r\n"[..], &[&b"a"[..]][..], false, None),
            (b"gets  a   b \r\n", &[b"a", b"b"], true, None),
            (b"gat 60 a b\n", &[b"a", b"b"], false, Some(60)),
            (b"gats -1 a\r\n", &[b"a"], true, Some(-1)),
            (b"get a noreply\r\n", &[b"a", b"noreply"], false, None),
            (b"get / HTTP/1.1\r\n", &[b"/", b"HTTP/1.1"], false, None),
            (b"get \xc3\xa9\xff\r\n", &[b"\xc3\xa9\xff"], false, None),
            (&longest, &[&long, b"b"], false, None),
        ] {
            assert_eq!(get(input), (keys.to_vec(), with_cas, touch), "{input:?}");
        }
    }

    /// The keys of a line without its name, that arrives in two pieces, and whether it ends well.
    fn streamed(line: &[u8], cut: usize) -> (Vec<Vec<u8>>, bool) {
        let (mut keys, mut at, mut arrived) = (Vec::new(), 0, cut);
        loop {
            let (next, consumed) = next_key(&line[at..arrived]);
            at += consumed;
            match next {
                NextKey::Key(key) => keys.push(key.to_vec()),
                NextKey::End => {
                    assert_eq!(at, line.len());
                    return (keys, true);
                }
                NextKey::Refused(_) => return (keys, false),
                NextKey::Incomplete if arrived == line.len() => panic!("{line:?} is complete"),
                NextKey::Incomplete => arrived = line.len(),
            }
        }
    }

    #[test]
    fn keys_that_come_one_by_one_are_those_of_the_line() {
        let (longest, too_long) = ([b'k'; KEY_LEN_MAX], [b'k'; KEY_LEN_MAX + 1]);
        for (text, expected) in [
            (&b"a"[..], Some(&[&b"a"[..]][..])),
            (b"a   bc \xc3\xa9 ", Some(&[b"a", b"bc", b"\xc3\xa9"])),
            (&longest, Some(&[&longest])),
            (b"a\rb", None),
            (b"a\tb", None),
            (b"a \x7f", None),
            (&too_long, None),
            (b"", Some(&[])),
        ] {
            for end in [&b"\n"[..], b"\r\n"] {
                let line = [b" ", text, end].concat();
                for cut in 0..=line.len() {
                    let (keys, good) = streamed(&line, cut);
                    assert_eq!(good, expected.is_some(), "{line:?} {cut}");
                    assert!(
                        !good || keys == expected.unwrap_or_default(),
                        "{line:?} {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_front_of_a_long_line_has_no_keys() {
        for (front, with_cas, touch, consumed) in [
            (&b"get a b"[..], false, None, 3),
            (b"gets a", true, None, 4),
            (b"gat  60 a", false, Some(60), 7),
            (b"gats -1 a", true, Some(-1), 7),
        ] {
            let (get, taken) = parse_front(front).unwrap();
            assert_eq!(get.touch.map(|exptime| exptime.0), touch);
            assert_eq!((get.with_cas, taken), (with_cas, consumed), "{front:?}");
            assert_eq!(get.keys.iter().count(), 0);
        }
        assert_eq!(parse_front(b"gat x a"), Err(Error::BAD_EXPTIME));
        for front in [&b"gat    "[..], b"gat  60"] {
            assert_eq!(parse_front(front), Err(Error::BAD_FORMAT));
        }
    }

    #[test]
    fn every_key_of_the_line_is_checked() {
        let long = [b'k'; KEY_LEN_MAX + 1];
        for line in [
            &b"a\tb"[..],
            b"a b\0 c",
            b"a \x7f",
            b"aaaaaaaaaaaaaaaaaaaaa\x1f",
            b"a\rb",
            &long,
            &[b"a ", &long[..], b" b"].concat(),
        ] {
            for name in [&b"get "[..], b"gets ", b"gat 0 ", b"gats 0 "] {
                let line = [name, line, b"\r\n"].concat();
                assert_eq!(
                    reject(&line),
                    "CLIENT_ERROR bad command line format\r\n",
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn lines_that_lack_something_are_refused() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        let exptime = "CLIENT_ERROR invalid exptime argument\r\n";
        for (line, error) in [
            (&b"get\r\n"[..], format),
            (b"get  \r\n", format),
            (b"gets\r\n", format),
            (b"gat\r\n", format),
            (b"gat 0\r\n", format),
            (b"gat x \r\n", format),
            (b"gat a b\r\n", exptime),
            (b"gats 2147483648 b\r\n", exptime),
            (b"gats -2147483649 b\r\n", exptime),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }

    #[test]
    fn values_are_announced() {
        for (flags, len, cas, line) in [
            (0, 0, None, "VALUE key 0 0\r\n"),
            (7, 1024, None, "VALUE key 7 1024\r\n"),
            (u32::MAX, 1, Some(0), "VALUE key 4294967295 1 0\r\n"),
            (
                0,
                12,
                Some(u64::MAX),
                "VALUE key 0 12 18446744073709551615\r\n",
            ),
        ] {
            assert_eq!(
                encoded(|out| encode::value(out, b"key", flags, len, cas)),
                line
            );
        }
        assert_eq!(encode::END, b"END\r\n");
    }
}
