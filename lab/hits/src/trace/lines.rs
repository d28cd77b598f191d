//! The format `lines`: each line is a key, or a key and a size; `set` behind them means that the item is written.

use std::io::{self, BufRead};

use super::{Reader, parse_size, source};

pub(super) fn read(input: Box<dyn BufRead>, reader: &mut Reader) -> io::Result<()> {
    source::each_line(input, |number, line| {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let words = [words.next(), words.next(), words.next(), words.next()];
        let (key, size, writes) = match words {
            [None, ..] => return Ok(true),
            [Some(key), None, ..] => (key, None, false),
            [Some(key), Some(b"set"), None, _] => (key, None, true),
            [Some(key), Some(size), None, _] => (key, Some(size), false),
            [Some(key), Some(size), Some(b"set"), None] => (key, Some(size), true),
            [Some(_), Some(_), Some(_), _] => {
                reader.broken(number, "more than two words");
                return Ok(true);
            }
        };
        match size.map(parse_size).transpose() {
            Ok(size) => Ok(reader.bytes(key, size, writes)?),
            Err(reason) => {
                reader.broken(number, reason);
                Ok(true)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{options, read, requests};

    #[test]
    fn keys_with_and_without_sizes() {
        let text = b"a\n  b\t7 \r\n\n-12 0\na";
        let trace = read("t.txt", text, &options()).unwrap();
        let expected = [("a", 100), ("b", 7), ("-12", 0), ("a", 100)];
        let found = requests(&trace);
        let found = found.iter().map(|(key, size)| (key.as_str(), *size));
        assert!(found.eq(expected), "{trace:?}");
        assert_eq!(trace.keys.len(), 3);
    }

    #[test]
    fn what_is_written_says_so() {
        let trace = read("t.txt", b"a 7\na 8 set\nb set\na\n", &options()).unwrap();
        let found = trace.requests.iter();
        let found: Vec<_> = found.map(|one| (one.key, one.size, one.writes)).collect();
        let expected = [(0, 7, false), (0, 8, true), (1, 100, true), (0, 100, false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_request_is_left_out() {
        let text = b"a -1\nb 5000000000\nc 1 2\nd 9\n";
        let trace = read("t.txt", text, &options()).unwrap();
        assert_eq!(requests(&trace), [("d".to_owned(), 9)]);
        let places: Vec<u64> = trace.broken.first.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [1, 2, 3]);
    }
}
