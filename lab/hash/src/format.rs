//! Key files: one key a line, as text.
//!
//! | format | a line | keys |
//! |---|---|---|
//! | `lines` | any bytes but a newline | bytes |
//! | `hex` | bytes in hexadecimal, two digits each: keys with NUL or newlines | bytes |
//! | `u64` | a number | numbers |
//! | `u64le` | no lines: 8 bytes a key, the least first | numbers |
//! | `dentry` | address of the directory's dentry, hash of the name | dentries |
//! | `inode` | address of the superblock, inode number | inodes |
//! | `block` | device number, block number | blocks |
//! | `page` | address of the in-core inode, offset in bytes | pages |
//!
//! Numbers are decimal, or hexadecimal behind `0x`; two of them are apart by spaces, tabs or a comma. Except in
//! `lines`, empty lines and those that begin with `#` are comments. A collector begins with the comment `# nuthatch
//! keys: FORMAT` and ends with `# end: COUNT`, so that a reader knows the format, and that the file is complete.

use std::fmt;
use std::io::Write;

use crate::key::{Block, Dentry, Inode, Kind, Numeric, Page};
use clap::ValueEnum;

use crate::keys::Keys;

/// The format of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Any bytes but a newline, one key per line
    Lines,
    /// One number per line, decimal or 0x…
    U64,
    /// Bytes in hexadecimal, one key per line
    Hex,
    /// Address of the directory's dentry and hash of the name
    Dentry,
    /// Address of the superblock and inode number
    Inode,
    /// Device number and block number
    Block,
    /// Address of the in-core inode and offset in the file in bytes
    Page,
    /// Binary: 8 bytes per key, little-endian
    U64le,
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::U64 => "u64",
            Self::Hex => "hex",
            Self::Dentry => "dentry",
            Self::Inode => "inode",
            Self::Block => "block",
            Self::Page => "page",
            Self::U64le => "u64le",
        }
    }

    /// The kind of its keys.
    pub fn kind(self) -> Kind {
        match self {
            Self::Lines | Self::Hex => Kind::Bytes,
            Self::U64 | Self::U64le => Kind::Number,
            Self::Dentry => Kind::Dentry,
            Self::Inode => Kind::Inode,
            Self::Block => Kind::Block,
            Self::Page => Kind::Page,
        }
    }

    /// True if empty lines and lines behind `#` are no keys.
    pub fn has_comments(self) -> bool {
        !matches!(self, Self::Lines | Self::U64le)
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Not a number.
    Number(String),
    /// One or more than two numbers where two belong.
    Count(usize),
    /// An odd number of digits, or something that is no digit.
    Hex(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(word) => write!(out, "`{word}` is not a number of 64 bits"),
            Self::Count(count) => write!(out, "two numbers are expected, not {count}"),
            Self::Hex(word) => write!(out, "`{word}` is not an even number of hexadecimal digits"),
        }
    }
}

/// Adds the key of a line to `keys`, which are of the format's kind.
pub fn parse_line(format: Format, line: &[u8], keys: &mut Keys) -> Result<(), LineError> {
    match (keys, format) {
        (Keys::Bytes(keys), Format::Lines) => keys.push(line),
        (Keys::Bytes(keys), _) => keys.push(&unhex(line.trim_ascii())?),
        (Keys::Number(keys), _) => keys.push(number(line.trim_ascii())?),
        (Keys::Page(keys), _) => keys.push(pair(line)?),
        (Keys::Block(keys), _) => keys.push(pair(line)?),
        (Keys::Dentry(keys), _) => keys.push(pair(line)?),
        (Keys::Inode(keys), _) => keys.push(pair(line)?),
    }
    Ok(())
}

fn pair<K: Numeric>(line: &[u8]) -> Result<K, LineError> {
    let is_apart = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    let mut words = line.split(is_apart).filter(|word| !word.is_empty());
    match (words.next(), words.next(), words.next()) {
        (Some(first), Some(second), None) => Ok(K::from_parts([number(first)?, number(second)?])),
        (Some(_), None, _) => Err(LineError::Count(1)),
        (None, ..) => Err(LineError::Count(0)),
        (_, _, Some(_)) => Err(LineError::Count(3 + words.count())),
    }
}

fn number(word: &[u8]) -> Result<u64, LineError> {
    let (digits, radix) = match word.strip_prefix(b"0x").or(word.strip_prefix(b"0X")) {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    let bad = || LineError::Number(shown(word));
    if digits.is_empty() {
        return Err(bad());
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        let digit = char::from(digit).to_digit(radix).ok_or_else(bad)?;
        let number = number.checked_mul(u64::from(radix)).ok_or_else(bad)?;
        number.checked_add(u64::from(digit)).ok_or_else(bad)
    })
}

fn unhex(word: &[u8]) -> Result<Vec<u8>, LineError> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    let bad = || LineError::Hex(shown(word));
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || digits.is_empty() {
        return Err(bad());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(bad);
    pairs
        .iter()
        .map(|&[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8))
        .collect()
}

/// A word as an error shows it: not too long, and without control characters of a terminal.
fn shown(word: &[u8]) -> String {
    let start = &word[..word.len().min(40)];
    let dots = if start.len() < word.len() { "…" } else { "" };
    format!("{}{dots}", start.escape_ascii())
}

/// The first line of a collected file.
pub fn header(format: Format) -> String {
    format!("{HEADER}{}\n", format.name())
}

/// The last line of a collected file.
pub fn trailer(count: u64) -> String {
    format!("{TRAILER}{count}\n")
}

const HEADER: &str = "# nuthatch keys: ";
const TRAILER: &str = "# end: ";

/// The meaning of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comment {
    /// The file's format.
    Header(Format),
    /// The end of the file, after this many keys.
    Trailer(u64),
    /// Nothing.
    Other,
}

/// The meaning of a line that begins with `#`.
pub fn comment(line: &[u8]) -> Comment {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if let Some(name) = text.strip_prefix(HEADER)
        && let Ok(format) = Format::from_str(name, false)
    {
        return Comment::Header(format);
    }
    match text.strip_prefix(TRAILER).map(str::parse) {
        Some(Ok(count)) => Comment::Trailer(count),
        Some(Err(_)) | None => Comment::Other,
    }
}

/// Writes keys as a collector does: two numbers, addresses in hexadecimal.
pub trait Line {
    /// The format of such lines.
    const FORMAT: Format;

    /// Appends the line of a key.
    fn write(&self, line: &mut Vec<u8>);
}

macro_rules! line {
    ($key:ident, $template:literal, $first:ident, $second:ident) => {
        impl Line for $key {
            const FORMAT: Format = Format::$key;

            fn write(&self, line: &mut Vec<u8>) {
                // Writing to a vector does not fail.
                let _ = writeln!(line, $template, self.$first, self.$second);
            }
        }
    };
}

impl Line for u64 {
    const FORMAT: Format = Format::U64;

    fn write(&self, line: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = writeln!(line, "{self}");
    }
}

line!(Page, "{:#x} {}", inode, offset);
line!(Block, "{:#x} {}", device, block);
line!(Dentry, "{:#x} {:#x}", parent, name_hash);
line!(Inode, "{:#x} {}", superblock, number);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: Format, line: &str) -> Result<Keys, LineError> {
        let mut keys = Keys::empty(format.kind());
        parse_line(format, line.as_bytes(), &mut keys)?;
        Ok(keys)
    }

    #[test]
    fn numbers_in_both_notations() {
        assert_eq!(parse(Format::U64, " 17 "), Ok(Keys::Number(vec![17])));
        assert_eq!(parse(Format::U64, "0xFf"), Ok(Keys::Number(vec![255])));
        let max = "18446744073709551615";
        assert_eq!(parse(Format::U64, max), Ok(Keys::Number(vec![u64::MAX])));
        for bad in [
            "",
            "x",
            "0x",
            "-1",
            "1.5",
            "18446744073709551616",
            "1 2",
            "0x1ffffffffffffffff",
        ] {
            assert!(
                matches!(parse(Format::U64, bad), Err(LineError::Number(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn pairs_and_their_separators() {
        let block = Keys::Block(vec![Block {
            device: 0x801,
            block: 7,
        }]);
        for line in ["0x801 7", "2049,7", "2049\t7\r"] {
            assert_eq!(parse(Format::Block, line), Ok(block.clone()), "{line}");
        }
        for (line, count) in [("1", 1), ("1 2 3", 3), ("1 2 3 4 5", 5), (" ,", 0)] {
            assert_eq!(parse(Format::Inode, line), Err(LineError::Count(count)));
        }
    }

    #[test]
    fn bytes_with_nul_and_newline() {
        let keys = parse(Format::Hex, "00ff0a").unwrap();
        keys.visit(Check(b"\x00\xff\n"));
        assert!(matches!(parse(Format::Hex, "abc"), Err(LineError::Hex(_))));
        assert!(matches!(parse(Format::Hex, "zz"), Err(LineError::Hex(_))));
        parse(Format::Lines, "# a key \r")
            .unwrap()
            .visit(Check(b"# a key \r"));
    }

    /// Checks for a single key by its hash under a function of bytes.
    struct Check(&'static [u8]);

    impl crate::keys::Visit for Check {
        type Output = ();

        fn visit<K: crate::keys::AnyKey>(self, keys: &[K]) {
            let registry = crate::functions::Registry::new(0);
            let entry = registry.find("xxh3").unwrap();
            let hash = K::function(entry).unwrap().hash(keys[0]);
            assert_eq!(
                hash,
                <&[u8] as crate::functions::HashedKey>::function(entry)
                    .unwrap()
                    .hash(self.0)
            );
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dentry = Dentry {
            parent: 0xc080_0000,
            name_hash: 0xabc,
        };
        let mut line = Vec::new();
        dentry.write(&mut line);
        assert_eq!(line, b"0xc0800000 0xabc\n");
        let line = String::from_utf8(line).unwrap();
        assert_eq!(parse(Format::Dentry, &line), Ok(Keys::Dentry(vec![dentry])));
        for format in Format::value_variants() {
            assert_eq!(
                comment(header(*format).as_bytes()),
                Comment::Header(*format)
            );
        }
        assert_eq!(comment(trailer(12).as_bytes()), Comment::Trailer(12));
        assert_eq!(comment(b"# end: soon"), Comment::Other);
    }

    #[test]
    fn errors_show_words_that_a_terminal_survives() {
        let long = "\u{1b}[2J".to_owned() + &"x".repeat(100);
        let error = parse(Format::U64, &long).unwrap_err().to_string();
        assert!(error.contains(r"\x1b") && error.len() < 120, "{error}");
    }
}
