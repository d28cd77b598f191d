//! Reads key files as streams: chunks of keys, in memory that does not grow with the file.

use std::fs::File;
use std::io::{ErrorKind, Read, stdin};
use std::path::Path;

use crate::format::{Comment, Format, comment, parse_line};
use crate::keys::Keys;
use nuthatch_program::Failure;

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;
/// Bytes that a collector's first line has at most.
const HEADER_MAX: usize = 64;
/// Bytes of the longest line.
pub const LINE_MAX: usize = 1 << 20;

/// A file of keys.
pub struct Source {
    input: Box<dyn Read>,
    name: String,
    /// Size at the opening, of a file that has one.
    size: Option<u64>,
    read: u64,
    format: Option<Format>,
    /// Bytes read and not yet parsed: a line whose end has not arrived.
    rest: Vec<u8>,
    line: u64,
    keys: u64,
    started: bool,
    header: bool,
    trailer: Option<u64>,
    ended: bool,
}

/// Keys that were read, or the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progressed {
    /// There may be more.
    More,
    /// That was all.
    End,
}

impl Source {
    /// Opens a file, or standard input for `-`. Without a format, the file's first line gives it,
    /// or it is `lines`.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::new(
                Box::new(stdin().lock()),
                "standard input".into(),
                None,
                format,
            ));
        }
        let name = path.display().to_string();
        let failed = |error| Failure::run(format!("{name}: {error}"));
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(Failure::run(format!(
                "{name}: a directory, not a file of keys"
            )));
        }
        let size = about.is_file().then_some(about.len());
        Ok(Self::new(Box::new(file), name, size, format))
    }

    fn new(input: Box<dyn Read>, name: String, size: Option<u64>, format: Option<Format>) -> Self {
        Self {
            input,
            name,
            size,
            read: 0,
            format,
            rest: Vec::new(),
            line: 0,
            keys: 0,
            started: false,
            header: false,
            trailer: None,
            ended: false,
        }
    }

    /// The format: known once something was read.
    pub fn format(&mut self) -> Result<Format, Failure> {
        if !self.started {
            self.started = true;
            // One read of a pipe may return less than the first line.
            while !self.ended && self.rest.len() < HEADER_MAX && !self.rest.contains(&b'\n') {
                self.fill()?;
            }
            self.find_header()?;
        }
        Ok(*self.format.get_or_insert(Format::Lines))
    }

    /// Adds the keys of the next block to `keys`, which are of the format's kind.
    pub fn next(&mut self, keys: &mut Keys) -> Result<Progressed, Failure> {
        let format = self.format()?;
        match format {
            Format::U64le => self.words(keys)?,
            _ => self.lines(format, keys)?,
        }
        if self.ended {
            self.check_end()?;
            return Ok(Progressed::End);
        }
        self.fill()?;
        Ok(Progressed::More)
    }

    /// A sign that the collector was ended before it had all keys, in words.
    pub fn cut_short(&self) -> Option<String> {
        let got = self.keys;
        match (self.header, self.trailer) {
            (true, None) => Some(format!(
                "{}: no end mark after {got} keys: these are a part, or their collector failed",
                self.name
            )),
            (true, Some(said)) if said != got => Some(format!(
                "{}: {got} keys where their collector wrote {said}",
                self.name
            )),
            _ => None,
        }
    }

    /// Reads a block behind what is left of the last.
    fn fill(&mut self) -> Result<(), Failure> {
        let start = self.rest.len();
        self.rest.resize(start + BLOCK, 0);
        let mut filled = start;
        while filled < self.rest.len() {
            match self.input.read(&mut self.rest[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error.to_string())),
            }
            // A pipe returns what it has: waiting for more would delay the keys that have arrived.
            if self.size.is_none() && filled > start {
                break;
            }
        }
        self.rest.truncate(filled);
        self.read += (filled - start) as u64;
        Ok(())
    }

    /// Takes the format from the collector's first line, unless the format was given and differs.
    fn find_header(&mut self) -> Result<(), Failure> {
        let end = memchr::memchr(b'\n', &self.rest).unwrap_or(self.rest.len());
        let Comment::Header(found) = comment(&self.rest[..end.min(HEADER_MAX)]) else {
            return Ok(());
        };
        self.header = true;
        match self.format {
            Some(given) if given != found => Err(Failure::usage(format!(
                "--format {}: {} says that its keys are of the format {}",
                given.name(),
                self.name,
                found.name()
            ))),
            _ => {
                self.format = Some(found);
                Ok(())
            }
        }
    }

    fn lines(&mut self, format: Format, keys: &mut Keys) -> Result<(), Failure> {
        let rest = std::mem::take(&mut self.rest);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &rest) {
            self.one_line(format, &rest[start..end], keys)?;
            start = end + 1;
        }
        if self.ended && start < rest.len() {
            // The last line has no newline.
            self.one_line(format, &rest[start..], keys)?;
            start = rest.len();
        }
        if rest.len() - start > LINE_MAX {
            let words = format!("line {} has more than {LINE_MAX} bytes", self.line + 1);
            return Err(self.failed(&words));
        }
        self.rest = rest;
        self.rest.drain(..start);
        Ok(())
    }

    fn one_line(&mut self, format: Format, line: &[u8], keys: &mut Keys) -> Result<(), Failure> {
        self.line += 1;
        if format.has_comments() {
            if line.first() == Some(&b'#') {
                if let Comment::Trailer(count) = comment(line) {
                    self.trailer = Some(count);
                }
                return Ok(());
            }
            if line.trim_ascii().is_empty() {
                return Ok(());
            }
        }
        self.keys += 1;
        parse_line(format, line, keys).map_err(|error| {
            self.failed(&format!(
                "line {}: {error} (--format {})",
                self.line,
                format.name()
            ))
        })
    }

    fn words(&mut self, keys: &mut Keys) -> Result<(), Failure> {
        let Keys::Number(numbers) = keys else {
            unreachable!("the format's keys are numbers");
        };
        let (words, rest) = self.rest.as_chunks::<8>();
        numbers.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        self.keys += words.len() as u64;
        let left = rest.len();
        if self.ended && left > 0 {
            return Err(self.failed(&format!("it ends {left} bytes into a key of 8 bytes")));
        }
        self.rest.drain(..self.rest.len() - left);
        Ok(())
    }

    fn check_end(&self) -> Result<(), Failure> {
        match self.size {
            Some(size) if self.read < size => Err(self.failed(&format!(
                "it became shorter while it was read: {} bytes of {size}",
                self.read
            ))),
            _ => Ok(()),
        }
    }

    fn failed(&self, words: &str) -> Failure {
        Failure::run(format!("{}: {words}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its bytes in pieces of this size.
    struct Pieces(Vec<u8>, usize);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn source(bytes: &[u8], piece: usize, format: Option<Format>, size: Option<u64>) -> Source {
        let pieces = Pieces(bytes.to_vec(), piece);
        Source::new(Box::new(pieces), "test".into(), size, format)
    }

    fn read(source: &mut Source) -> Result<Keys, Failure> {
        let mut keys = Keys::empty(source.format()?.kind());
        while source.next(&mut keys)? == Progressed::More {}
        Ok(keys)
    }

    #[test]
    fn however_the_bytes_come() {
        let text = b"# nuthatch keys: u64\n1\n\n0x2\n3\n# end: 3\n";
        for piece in 1..=text.len() {
            let mut source = source(text, piece, None, None);
            assert_eq!(
                read(&mut source),
                Ok(Keys::Number(vec![1, 2, 3])),
                "{piece}"
            );
            assert_eq!(source.cut_short(), None);
        }
    }

    #[test]
    fn a_part_is_noticed() {
        let mut part = source(b"# nuthatch keys: u64\n1\n2\n", 100, None, None);
        read(&mut part).unwrap();
        assert!(
            part.cut_short()
                .unwrap()
                .contains("no end mark after 2 keys")
        );
        let mut less = source(b"# nuthatch keys: u64\n1\n# end: 2\n", 100, None, None);
        read(&mut less).unwrap();
        assert!(less.cut_short().unwrap().contains("1 keys where"));
    }

    #[test]
    fn a_format_that_contradicts_the_file() {
        let mut source = source(
            b"# nuthatch keys: dentry\n1 2\n",
            100,
            Some(Format::Block),
            None,
        );
        assert!(
            matches!(read(&mut source), Err(Failure::Usage(words)) if words.contains("dentry"))
        );
    }

    #[test]
    fn errors_name_the_line() {
        let mut wrong = source(b"1\n# comment\nx\n", 3, Some(Format::U64), None);
        let Err(Failure::Run(words)) = read(&mut wrong) else {
            panic!("read");
        };
        assert_eq!(
            words,
            "test: line 3: `x` is not a number of 64 bits (--format u64)"
        );
        let mut long = source(
            &vec![b'x'; LINE_MAX + BLOCK],
            BLOCK,
            Some(Format::Lines),
            None,
        );
        assert!(
            matches!(read(&mut long), Err(Failure::Run(words)) if words.contains("line 1 has"))
        );
    }

    #[test]
    fn a_file_that_shrinks() {
        let mut shrunk = source(b"1\n2\n", 100, Some(Format::U64), Some(100));
        assert!(matches!(read(&mut shrunk), Err(Failure::Run(words)) if words.contains("shorter")));
    }

    #[test]
    fn words_of_eight_bytes() {
        let mut bytes = 10_u64.to_le_bytes().to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        for piece in [1, 7, 8, 100] {
            let mut source = source(&bytes, piece, Some(Format::U64le), None);
            assert_eq!(read(&mut source), Ok(Keys::Number(vec![10, u64::MAX])));
        }
        let mut odd = source(&bytes[..9], 100, Some(Format::U64le), None);
        assert!(
            matches!(read(&mut odd), Err(Failure::Run(words)) if words.contains("1 bytes into"))
        );
    }

    #[test]
    fn the_last_line_may_lack_its_newline_and_lines_may_be_empty() {
        let mut source = source(b"a\n\nb", 100, None, None);
        let mut expected = Keys::empty(crate::key::Kind::Bytes);
        for key in ["a", "", "b"] {
            parse_line(Format::Lines, key.as_bytes(), &mut expected).unwrap();
        }
        assert_eq!(read(&mut source), Ok(expected));
    }
}
