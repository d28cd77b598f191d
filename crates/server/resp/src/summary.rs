//! Requests and answers as a log reads them.

/// The parts of a request that a log shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary<'a> {
    /// The command's name.
    pub name: &'a [u8],
    /// Its first argument, unless that is data.
    pub key: Option<&'a [u8]>,
    /// Arguments that are not shown.
    pub others: usize,
}

/// Commands whose first argument is data, a password, or a program.
const WITHOUT_KEY: [&[u8]; 6] = [b"auth", b"hello", b"echo", b"ping", b"eval", b"script"];

impl<'a> Summary<'a> {
    /// That of the request that `input` begins with.
    pub fn of(input: &'a [u8]) -> Self {
        let words = match input.strip_prefix(b"*") {
            Some(array) => of_array(array),
            None => of_line(input),
        };
        let is_one = |name: &&[u8]| name.eq_ignore_ascii_case(words.name);
        match words.key {
            Some(_) if WITHOUT_KEY.iter().any(is_one) => Summary {
                key: None,
                others: words.others + 1,
                ..words
            },
            _ => words,
        }
    }
}

/// The words of `2\r\n$3\r\nGET\r\n$1\r\nk\r\n`.
fn of_array(array: &[u8]) -> Summary<'_> {
    let (count, rest) = first_line(array);
    let (name, rest) = argument(rest);
    let (key, _) = argument(rest);
    let arguments = number(count).saturating_sub(1);
    Summary {
        name: name.unwrap_or_default(),
        key: key.filter(|_| arguments > 0),
        others: arguments.saturating_sub(1),
    }
}

/// The words of `get k\r\n`.
fn of_line(input: &[u8]) -> Summary<'_> {
    let (line, _) = first_line(input);
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    Summary {
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
    let (len, rest) = first_line(input);
    match rest.split_at_checked(number(len)) {
        Some((argument, rest)) => (
            Some(argument),
            rest.strip_prefix(b"\r\n").unwrap_or_default(),
        ),
        None => (None, &[]),
    }
}

/// The first line without its line end, and the input behind it.
pub fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
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

/// The number of bytes behind a line that announces them.
pub fn announced_len(line: &[u8]) -> Option<usize> {
    match line {
        [b'$' | b'=', b'-', ..] => None,
        [b'$' | b'=', length @ ..] => Some(number(length)),
        _ => None,
    }
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
            assert_eq!(announced_len(line), follows);
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
            let expected = Summary {
                name: name.as_bytes(),
                key: key.map(str::as_bytes),
                others,
            };
            assert_eq!(Summary::of(input), expected);
        }
    }
}
