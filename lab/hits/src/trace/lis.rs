//! The format of the ARC traces: a line is a request for several blocks.
//!
//! Four numbers: the first block, how many blocks, one to be ignored, the number of the request.

use std::io::{self, BufRead};

use super::{Reader, parse_number, source};

/// Blocks of one request: more is taken for an error in the file.
const BLOCKS_MAX: u64 = 1 << 24;

pub(super) fn read(input: Box<dyn BufRead>, reader: &mut Reader) -> io::Result<()> {
    source::each_line(input, |number, line| {
        let words = line.split(u8::is_ascii_whitespace);
        let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
        let [first, count, _, _] = words[..] else {
            if !words.is_empty() {
                reader.broken(number, format!("{} words instead of 4", words.len()));
            }
            return Ok(true);
        };
        let blocks = parse_number::<u64>(first).zip(parse_number::<u64>(count));
        let blocks = blocks.and_then(|(first, count)| {
            let last = first.checked_add(count)?;
            (count <= BLOCKS_MAX).then_some(first..last)
        });
        let Some(blocks) = blocks else {
            reader.broken(number, "not a first block and a number of blocks");
            return Ok(true);
        };
        for block in blocks {
            if !reader.number(block, None)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::trace::ReadOptions;
    use crate::trace::tests::{options, read, requests};

    #[test]
    fn a_line_is_several_blocks() {
        let text = b"5 3 0 0\n7 1 0 1\n\nx 1 0 2\n1 2\n1 99999999999 0 4\n9 0 0 5\n";
        let trace = read("t.lis", text, &options()).unwrap();
        let keys: Vec<String> = requests(&trace).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["5", "6", "7", "7"]);
        assert_eq!(trace.broken.count, 3);
    }

    #[test]
    fn a_limit_may_fall_into_a_line() {
        let options = ReadOptions {
            limit: Some(2),
            ..options()
        };
        let trace = read("t.lis", b"5 3 0 0\n7 1 0 1\n", &options).unwrap();
        assert_eq!(trace.requests.len(), 2);
    }
}
