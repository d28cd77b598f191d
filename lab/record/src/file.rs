//! The file of a recorded trace: `lines`, or CSV with times and lifetimes; plain or compressed, by its name.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use nuthatch_program::Failure;
use nuthatch_program::output::Output;

use crate::line;
use crate::requests::Request;
use nuthatch_hits::trace::Format;

/// The first row of a CSV file.
pub const COLUMNS: &str = "time,op,key,size,ttl\n";

/// zstd's usual level.
const LEVEL: i32 = 3;

/// A file under way. Dropped, it never appears.
pub struct TraceFile {
    writer: Compressed,
    is_csv: bool,
    /// Bytes before compression.
    bytes: u64,
}

enum Compressed {
    Plain(Sink),
    Gzip(GzEncoder<Sink>),
    Zstd(zstd::Encoder<'static, Sink>),
}

/// The output as a writer.
struct Sink(Output);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        written.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
        let sink = Sink(Output::open(Some(path))?);
        let writer = match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Compressed::Gzip(GzEncoder::new(sink, Compression::default())),
            Some("zst" | "zstd") => Compressed::Zstd(zstd::Encoder::new(sink, LEVEL)?),
            _ => Compressed::Plain(sink),
        };
        let mut file = Self {
            writer,
            is_csv,
            bytes: 0,
        };
        if is_csv {
            file.write(COLUMNS.as_bytes())?;
        }
        Ok(file)
    }

    /// Adds a request.
    pub fn add(&mut self, request: &Request) -> Result<(), Failure> {
        let mut row = Vec::new();
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
        self.write(&row)
    }

    /// Bytes so far, before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let writer: &mut dyn Write = match &mut self.writer {
            Compressed::Plain(writer) => writer,
            Compressed::Gzip(writer) => writer,
            Compressed::Zstd(writer) => writer,
        };
        writer.write_all(bytes).map_err(Failure::run)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Ends the file, which takes its name now.
    pub fn finish(self) -> Result<(), Failure> {
        let sink = match self.writer {
            Compressed::Plain(sink) => Ok(sink),
            Compressed::Gzip(writer) => writer.finish(),
            Compressed::Zstd(writer) => writer.finish(),
        };
        sink.map_err(Failure::run)?.0.finish()
    }
}
