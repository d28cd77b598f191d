//! Traces: the requests of a real workload, in order.
//!
//! | format | a request | sizes |
//! |---|---|---|
//! | `lines` | a line: the key, or the key and a size, with white space between; `set` behind that for an item that is written and not read | the second word |
//! | `oracle-general` | 24 bytes of libCacheSim's binary format | from the record |
//! | `lis` | the blocks of a line of the ARC traces, one by one | none |
//! | `csv` | a row, whose columns are named; its `op` says whether the item is read or written | from columns |
//!
//! Any of them may be compressed by gzip or zstd. Requests without a size get the default of the options. Records that
//! cannot be read are skipped and counted, and the first of them are named: a trace of a million requests is not lost
//! for one bad line.

mod csv;
mod keys;
mod lines;
mod lis;
pub mod made;
mod operation;
mod oracle;
mod source;
mod zipf;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use nuthatch_program::Failure;

pub use csv::Columns;
pub use keys::{Keys, NO_KEY};
use zipf::ByZipf;

/// Records that cannot be read and are named one by one.
const NAMED_MAX: usize = 5;

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One key per line, or a key and a size in bytes; `set` behind them means written, not read
    Lines,
    /// Binary, 24 bytes per request: libCacheSim's oracleGeneral
    OracleGeneral,
    /// The format of the ARC traces: first block, number of blocks, two more numbers
    Lis,
    /// Columns separated by commas: see --columns
    Csv,
}

impl Format {
    /// The format of a file of this name, the endings of compression aside.
    pub fn of_name(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let mut name = name.as_str();
        for ending in [".gz", ".zst", ".zstd"] {
            name = name.strip_suffix(ending).unwrap_or(name);
        }
        match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "lis" => Self::Lis,
            "csv" => Self::Csv,
            _ if name.contains("oraclegeneral") => Self::OracleGeneral,
            _ => Self::Lines,
        }
    }
}

/// How traces are read.
#[derive(Args, Clone, Debug)]
pub struct ReadOptions {
    /// Format of the traces [default: by their file names]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Columns of a CSV file, as key=NAME,size=NAME,op=NAME, or as numbers from 1 on if the columns have no names. The
    /// size may be a sum: size=3+4. The operation is a get or a set; without a column `op` each row is a get. Times and
    /// lifetimes are not read: no item expires
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// Bytes of a value, for traces that do not tell sizes
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub value_size: u32,
    /// Maximum number of requests to read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

/// One request. Keys are numbered from 0 on in the order in which they first come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key's number.
    pub key: u32,
    /// Bytes of its value.
    pub size: u32,
    /// True: the item is written, and not read first. Made and recorded traces have such requests.
    pub writes: bool,
}

/// A trace in memory.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file's name without folder and endings. Of several traces with the same one, the later ones get a number.
    pub name: String,
    /// The path, as it was typed.
    pub path: String,
    /// In order.
    pub requests: Vec<Request>,
    /// The keys themselves.
    pub keys: Keys,
    /// The records that could not be read.
    pub broken: Broken,
    /// What the file has and the requests do not: a sentence for each kind.
    pub notes: Vec<&'static str>,
}

impl Trace {
    /// Reads a file, or standard input for `-`, or makes one. Errors: it cannot be opened or uncompressed, or has no requests.
    pub fn read(path: &Path, options: &ReadOptions) -> Result<Self, Failure> {
        let failed = |words: String| Failure::run(format!("{}: {words}", path.display()));
        let mut reader = Reader::new(path, options);
        if let Some(name) = path
            .to_str()
            .and_then(|path| path.strip_prefix(made::PREFIX))
        {
            if let Some(made) = ByZipf::named(name) {
                let made = made.map_err(failed)?;
                made.make(options.value_size, &mut |request| reader.made(request));
                return Ok(reader.trace);
            }
            let made =
                made::named(name).ok_or_else(|| failed(format!("there are {}", made::help())))?;
            made.make(&mut |request| reader.made(request));
            return Ok(reader.trace);
        }
        let input = source::open(path).map_err(|error| failed(error.to_string()))?;
        let format = options.format.unwrap_or_else(|| Format::of_name(path));
        match format {
            Format::Lines => lines::read(input, &mut reader),
            Format::OracleGeneral => oracle::read(input, &mut reader),
            Format::Lis => lis::read(input, &mut reader),
            Format::Csv => csv::read(input, options.columns.as_ref(), &mut reader),
        }
        .map_err(|error| failed(error.to_string()))?;
        let trace = reader.trace;
        if trace.requests.is_empty() {
            let words = format!("no requests{}", trace.broken.in_words());
            return Err(failed(words));
        }
        Ok(trace)
    }

    /// Bytes of all values, each key's once, in the size that it first had.
    pub fn distinct_bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut next = 0;
        for request in &self.requests {
            if request.key == next {
                bytes += u64::from(request.size);
                next += 1;
            }
        }
        bytes
    }

    /// Bytes of all values, as often as they are requested.
    pub fn requested_bytes(&self) -> u64 {
        let sizes = self.requests.iter().map(|request| u64::from(request.size));
        sizes.sum()
    }
}

/// The file's name without its folder and its endings.
fn trace_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "-" {
        return "standard input".to_owned();
    }
    let mut name = &*name;
    for ending in [".gz", ".zst", ".zstd", ".txt", ".csv", ".lis", ".bin"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name.to_owned()
}

/// Traces of these files, one after the other.
pub fn read_all(
    paths: &[PathBuf],
    options: &ReadOptions,
) -> impl Iterator<Item = Result<Trace, Failure>> {
    paths.iter().map(move |path| Trace::read(path, options))
}

/// Records that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// How many.
    pub count: u64,
    /// Where the first of them are (lines or records, from 1 on), and what is wrong with them.
    pub first: Vec<(u64, String)>,
}

impl Broken {
    fn add(&mut self, place: u64, reason: impl Display) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push((place, reason.to_string()));
        }
    }

    /// Nothing, or how many and where, to stand behind other words.
    pub fn in_words(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let mut words = format!("; {} records cannot be read and are left out", self.count);
        for (number, (place, reason)) in self.first.iter().enumerate() {
            let before = if number == 0 { ": " } else { ", " };
            words += &format!("{before}{place} ({reason})");
        }
        if self.count > self.first.len() as u64 {
            words += ", …";
        }
        words
    }
}

/// Collects the requests that readers of formats find.
struct Reader {
    trace: Trace,
    value_size: u32,
    /// Requests that are still wanted.
    left: u64,
}

impl Reader {
    fn new(path: &Path, options: &ReadOptions) -> Self {
        Self {
            trace: Trace {
                name: trace_name(path),
                path: path.display().to_string(),
                requests: Vec::new(),
                keys: Keys::default(),
                broken: Broken::default(),
                notes: Vec::new(),
            },
            value_size: options.value_size,
            left: options.limit.unwrap_or(u64::MAX),
        }
    }

    /// A request of a trace that is made. `None`: no more are wanted.
    fn made(&mut self, request: made::MadeRequest) -> Option<()> {
        let key = self.trace.keys.of_number(request.key)?;
        self.push(Request {
            key,
            size: request.size,
            writes: request.writes,
        })
        .then_some(())
    }

    /// A request for a key that is bytes, or a write of it. False: no more are wanted.
    fn bytes(&mut self, key: &[u8], size: Option<u32>, writes: bool) -> Result<bool, TooManyKeys> {
        let key = self.trace.keys.of_bytes(key).ok_or(TooManyKeys)?;
        Ok(self.request(key, size, writes))
    }

    /// A request for a key that is a number.
    fn number(&mut self, key: u64, size: Option<u32>) -> Result<bool, TooManyKeys> {
        let key = self.trace.keys.of_number(key).ok_or(TooManyKeys)?;
        Ok(self.request(key, size, false))
    }

    fn request(&mut self, key: u32, size: Option<u32>, writes: bool) -> bool {
        let size = size.unwrap_or(self.value_size);
        self.push(Request { key, size, writes })
    }

    fn push(&mut self, request: Request) -> bool {
        self.trace.requests.push(request);
        self.left -= 1;
        self.left > 0
    }

    /// True if no more are wanted.
    fn is_full(&self) -> bool {
        self.left == 0
    }

    /// What is left out of all requests, once for a trace.
    fn note(&mut self, words: &'static str) {
        self.trace.notes.push(words);
    }

    fn broken(&mut self, place: u64, reason: impl Display) {
        self.trace.broken.add(place, reason);
    }
}

/// Keys are numbered in 32 bits.
#[derive(Clone, Copy, Debug)]
struct TooManyKeys;

impl Display for TooManyKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("more than 2^32 - 2 different keys; take less of it with --limit")
    }
}

impl std::error::Error for TooManyKeys {}

impl From<TooManyKeys> for std::io::Error {
    fn from(error: TooManyKeys) -> Self {
        Self::other(error)
    }
}

/// A size in bytes, as text.
fn parse_size(word: &[u8]) -> Result<u32, String> {
    parse_number(word).ok_or_else(|| {
        let word = String::from_utf8_lossy(word);
        format!("`{word}` is not a size of up to 2^32 - 1 bytes")
    })
}

fn parse_number<N: FromStr>(word: &[u8]) -> Option<N> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn options() -> ReadOptions {
        ReadOptions {
            format: None,
            columns: None,
            value_size: 100,
            limit: None,
        }
    }

    /// Writes a file of this name, and reads it as a trace.
    pub(crate) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Trace::read(&path, options)
    }

    /// Keys as text, and sizes.
    pub(crate) fn requests(trace: &Trace) -> Vec<(String, u32)> {
        let one = |request: &Request| {
            let key = trace.keys.bytes(request.key);
            (String::from_utf8_lossy(key).into_owned(), request.size)
        };
        trace.requests.iter().map(one).collect()
    }

    #[test]
    fn formats_are_known_by_names() {
        for (name, format) in [
            ("a/web07.txt.zst", Format::Lines),
            ("P6.lis.gz", Format::Lis),
            ("P6.LIS", Format::Lis),
            ("twitter.csv", Format::Csv),
            ("w106.oracleGeneral.bin.zst", Format::OracleGeneral),
            ("w106.oracleGeneral", Format::OracleGeneral),
            ("lis", Format::Lines),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
        assert_eq!(trace_name(Path::new("x/web07.txt.zst")), "web07");
    }

    #[test]
    fn bytes_are_counted_once_for_each_key_and_once_for_each_request() {
        let trace = read("t", b"a 10\nb 20\na 30\nb\n", &options()).unwrap();
        assert_eq!(trace.distinct_bytes(), 30);
        assert_eq!(trace.requested_bytes(), 160);
    }

    #[test]
    fn broken_records_are_counted_and_the_first_named() {
        let mut text = b"a 1\n".to_vec();
        for _ in 0..7 {
            text.extend_from_slice(b"b x\n");
        }
        let trace = read("t", &text, &options()).unwrap();
        assert_eq!((trace.requests.len(), trace.broken.count), (1, 7));
        let words = trace.broken.in_words();
        assert!(words.starts_with("; 7 records cannot be read"), "{words}");
        assert!(words.contains(": 2 (`x` is not a size"), "{words}");
        assert!(words.ends_with("), …"), "{words}");
    }

    #[test]
    fn a_file_without_requests_is_an_error() {
        let Err(Failure::Run(words)) = read("t", b"a b c\n", &options()) else {
            panic!("read");
        };
        assert!(words.contains("no requests; 1 records"), "{words}");
        assert!(Trace::read(Path::new("/no/such/trace"), &options()).is_err());
    }

    #[test]
    fn a_limit_ends_the_reading() {
        for limit in [1, 2] {
            let options = ReadOptions {
                limit: Some(limit),
                ..options()
            };
            let trace = read("t", b"a\nb\nc x\n", &options).unwrap();
            assert_eq!(trace.requests.len() as u64, limit);
            assert_eq!(trace.broken.count, 0);
        }
    }
}
