//! The format `lines`: each line is a key, or a key and a size.

use std::io::{self, BufRead};

use super::{Reader, parse_size, source};

pub(super) fn read(input: Box<dyn BufRead>, reader: &mut Reader) -> io::Result<()> {
    source::each_line(input, |number, line| {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let (key, size) = match (words.next(), words.next(), words.next()) {
            (None, ..) => return Ok(true),
            (Some(key), None, _) => (key, None),
            (Some(key), Some(size), None) => match parse_size(size) {
                Ok(size) => (key, Some(size)),
                Err(reason) => {
                    reader.broken(number, reason);
                    return Ok(true);
                }
            },
            (Some(_), Some(_), Some(_)) => {
                reader.broken(number, "more than two words");
                return Ok(true);
            }
        };
        Ok(reader.bytes(key, size)?)
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
    fn what_is_no_request_is_left_out() {
        let text = b"a -1\nb 5000000000\nc 1 2\nd 9\n";
        let trace = read("t.txt", text, &options()).unwrap();
        assert_eq!(requests(&trace), [("d".to_owned(), 9)]);
        let places: Vec<u64> = trace.broken.first.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [1, 2, 3]);
    }
}
