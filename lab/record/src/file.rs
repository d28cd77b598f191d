//! The file of a recorded trace: `lines`, or CSV with times and lifetimes; plain or compressed, by its name.
//!
//! Rows are written in blocks, each compressed by itself, as gzip and zstd allow, and each as a whole or not at all. So the
//! file can be finished at any time, even if its disk is full.

use std::io::{self, Write};
use std::mem;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use nuthatch_program::Failure;
use nuthatch_program::output::{Output, Reader};

use crate::line;
use crate::requests::Request;
use nuthatch_hits::trace::Format;

/// The first row of a CSV file.
pub const COLUMNS: &str = "time,op,key,size,ttl\n";

/// zstd's usual level.
const LEVEL: i32 = 3;

/// Bytes of rows that are written at a time.
const BLOCK: usize = 1 << 20;

/// A file under way. Dropped, it never appears.
pub struct TraceFile {
    output: Output,
    compression: Compressed,
    is_csv: bool,
    /// Rows of the next block.
    rows: Vec<u8>,
    /// Bytes of all rows, before compression.
    bytes: u64,
    /// Blocks that were written.
    blocks: u64,
    /// Why no more can be written.
    full: Option<Failure>,
    reader: Reader,
    /// Requests that had no room.
    missing: u64,
}

#[derive(Clone, Copy)]
enum Compressed {
    Plain,
    Gzip,
    Zstd,
}

/// What a finished file has.
pub struct Kept {
    /// Bytes of its rows, before compression.
    pub bytes: u64,
    /// Why it does not have all of them.
    pub cut: Option<Failure>,
}

impl TraceFile {
    /// Begins a file of this name.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let is_csv = match Format::of_name(path) {
            Format::Lines => false,
            Format::Csv => true,
            Format::OracleGeneral | Format::Lis => {
                let words = "a recording has the format of its name, lines or .csv";
                return Err(Failure::usage(format!(
                    "--output {}: {words}",
                    path.display()
                )));
            }
        };
        let columns = if is_csv { COLUMNS } else { "" };
        Ok(Self {
            output: Output::open(Some(path))?,
            compression: match path.extension().and_then(|ending| ending.to_str()) {
                Some("gz") => Compressed::Gzip,
                Some("zst" | "zstd") => Compressed::Zstd,
                _ => Compressed::Plain,
            },
            is_csv,
            rows: columns.into(),
            bytes: columns.len() as u64,
            blocks: 0,
            full: None,
            reader: Reader::Listens,
            missing: 0,
        })
    }

    /// Adds a request. Errors: those of the system, except that a file has no room for it.
    pub fn add(&mut self, request: &Request) -> Result<(), Failure> {
        if self.is_full() {
            self.missing += 1;
            return Ok(());
        }
        let row = &mut self.rows;
        let before = row.len();
        let size = request
            .size
            .map(|size| size.to_string())
            .unwrap_or_default();
        if self.is_csv {
            let (seconds, micros) = (request.time_us / 1_000_000, request.time_us % 1_000_000);
            let op = if request.writes { "set" } else { "get" };
            write!(row, "{seconds}.{micros:06},{op},")?;
            row.extend_from_slice(&line::key(&request.key));
            write!(row, ",{size},{}", request.lifetime)?;
        } else {
            row.extend_from_slice(&line::key(&request.key));
            if !size.is_empty() {
                write!(row, " {size}")?;
            }
            if request.writes {
                row.extend_from_slice(b" set");
            }
        }
        row.push(b'\n');
        self.bytes += (row.len() - before) as u64;
        match self.rows.len() {
            BLOCK.. => self.write(),
            _ => Ok(()),
        }
    }

    /// Bytes so far, before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing more can be written.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// True if it goes through a pipe that nobody reads any more.
    pub fn is_abandoned(&self) -> bool {
        self.reader == Reader::Left
    }

    /// Ends the file, which takes its name now. Errors: those of the system, and that not one row had room.
    pub fn finish(mut self) -> Result<Kept, Failure> {
        // An empty trace is a block without rows: gzip's form of it is not an empty file.
        if !self.is_full() && (self.blocks == 0 || !self.rows.is_empty()) {
            self.write()?;
        }
        if self.blocks == 0
            && let Some(why) = self.full
        {
            return Err(why);
        }
        self.output.finish()?;
        let missing = self.missing;
        let words = |why| format!("{why}; it ends with a whole row, and misses {missing} requests");
        Ok(Kept {
            bytes: self.bytes,
            cut: self.full.map(|why| Failure::run(words(why))),
        })
    }

    /// Writes the rows as a block. If a file has no room for them, writes those for which it has.
    fn write(&mut self) -> Result<(), Failure> {
        let mut rows = mem::take(&mut self.rows);
        if let Err(why) = self.block(&rows) {
            if !matches!(self.output, Output::File { .. }) {
                return Err(why);
            }
            let left = self.squeeze(&rows);
            self.bytes -= left.len() as u64;
            self.missing = left.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.full = Some(why);
        }
        rows.clear();
        self.rows = rows;
        Ok(())
    }

    /// Writes of these rows what fits, in ever smaller blocks, and returns the others.
    fn squeeze<'r>(&mut self, mut rows: &'r [u8]) -> &'r [u8] {
        let mut most = rows.len() / 2;
        while most > 0 {
            let end = rows[..most].iter().rposition(|&byte| byte == b'\n');
            let (some, others) = rows.split_at(end.map_or(0, |end| end + 1));
            if !some.is_empty() && self.block(some).is_ok() {
                rows = others;
            }
            // So much had no room a moment ago.
            most = (most / 2).min(rows.len());
        }
        rows
    }

    /// Writes rows as a block: all of them or, into a file, none.
    fn block(&mut self, rows: &[u8]) -> Result<(), Failure> {
        let compressed = match self.compression {
            Compressed::Plain => None,
            Compressed::Gzip => Some(gzip(rows)?),
            Compressed::Zstd => Some(zstd::encode_all(rows, LEVEL)?),
        };
        self.reader = self
            .output
            .write_whole(compressed.as_deref().unwrap_or(rows))?;
        self.blocks += 1;
        Ok(())
    }
}

fn gzip(rows: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::default());
    writer.write_all(rows)?;
    writer.finish()
}
