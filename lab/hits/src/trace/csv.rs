//! CSV: a row a request, whose columns are named.

use std::io::{self, BufRead};
use std::str::FromStr;

use csv::{ByteRecord, ReaderBuilder};

use super::{Reader, operation, parse_number, parse_size};

/// Which columns hold what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    key: Column,
    /// Their sum is the size.
    sizes: Vec<Column>,
    /// The operation; without it each row reads.
    op: Option<Column>,
}

/// A column of a file with a row of names, or of one without.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Name(String),
    /// From 0 on.
    Number(usize),
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            key: Column::Name("key".to_owned()),
            sizes: Vec::new(),
            op: None,
        }
    }
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut columns = Self::default();
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("key", name)) => columns.key = name.parse()?,
                Some(("size", names)) => {
                    columns.sizes = names.split('+').map(str::parse).collect::<Result<_, _>>()?;
                }
                Some(("op", name)) => columns.op = Some(name.parse()?),
                _ => return Err(format!("`{part}` is neither key=… nor size=… nor op=…")),
            }
        }
        let numbers = columns.all().filter(|column| !column.is_name()).count();
        match numbers {
            0 => Ok(columns),
            some if some == columns.all().count() => Ok(columns),
            _ => Err("columns have all names or all numbers".to_owned()),
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<usize>() {
            Ok(0) => Err("columns are numbered from 1 on".to_owned()),
            Ok(number) => Ok(Self::Number(number - 1)),
            Err(_) if text.is_empty() => Err("a column has a name or a number".to_owned()),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl Columns {
    fn all(&self) -> impl Iterator<Item = &Column> {
        std::iter::once(&self.key)
            .chain(&self.sizes)
            .chain(&self.op)
    }
}

impl Column {
    fn is_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// Where the column is in a file whose first row is this.
    fn find(&self, names: &ByteRecord) -> io::Result<usize> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => {
                let same = |found: &[u8]| found.trim_ascii() == name.as_bytes();
                names.iter().position(same).ok_or_else(|| {
                    let names = String::from_utf8_lossy(names.as_slice());
                    io::Error::other(format!("no column `{name}` (--columns) in `{names}`"))
                })
            }
        }
    }
}

/// Where in a row the parts of a request are.
struct Places {
    key: usize,
    sizes: Vec<usize>,
    op: Option<usize>,
}

/// A request of a row.
struct Found<'a> {
    key: &'a [u8],
    size: Option<u32>,
    writes: bool,
}

pub(super) fn read(
    input: Box<dyn BufRead>,
    columns: Option<&Columns>,
    reader: &mut Reader,
) -> io::Result<()> {
    let named = columns.is_none_or(|columns| columns.key.is_name());
    let mut rows = ReaderBuilder::new()
        .has_headers(named)
        .flexible(true)
        .from_reader(input);
    let names = if named {
        rows.byte_headers()?.clone()
    } else {
        ByteRecord::new()
    };
    let places = Places::find(columns, &names)?;
    if place_of(&names, "op_count").is_some() {
        reader.note("the column `op_count` is not read: a row is one request");
    }
    let mut lifetimes = place_of(&names, "ttl");
    let mut row = ByteRecord::new();
    while !reader.is_full() && rows.read_byte_record(&mut row)? {
        let line = row.position().map_or(0, csv::Position::line);
        match places.request(&row) {
            Ok(found) => {
                if lifetimes.is_some_and(|column| row.get(column).is_some_and(is_above_zero)) {
                    reader.note("lifetimes (the column `ttl`) are not read: no item expires");
                    lifetimes = None;
                }
                reader.bytes(found.key, found.size, found.writes)?;
            }
            Err(reason) => reader.broken(line, reason),
        }
    }
    Ok(())
}

impl Places {
    /// In a file whose first row is `names`.
    fn find(columns: Option<&Columns>, names: &ByteRecord) -> io::Result<Self> {
        let given = columns.cloned().unwrap_or_default();
        let key = given.key.find(names)?;
        let sizes = given.sizes.iter().map(|column| column.find(names));
        let mut sizes: Vec<usize> = sizes.collect::<io::Result<_>>()?;
        // Without --columns a column of this name is the size.
        if columns.is_none() {
            sizes.extend(place_of(names, "size"));
        }
        let op = match given.op {
            Some(column) => Some(column.find(names)?),
            // With columns named by the user or not: recordings have it, and the files of CacheLib.
            None => place_of(names, "op"),
        };
        Ok(Self { key, sizes, op })
    }

    /// The request of a row. Errors: what is wrong with it.
    fn request<'a>(&self, row: &'a ByteRecord) -> Result<Found<'a>, String> {
        // A quote that is not closed takes the rows behind it into its cell. No trace has a line end in a cell otherwise.
        let ends = line_ends(row.as_slice());
        if ends > 0 {
            return Err(format!("{ends} line ends in it: a quote is not closed"));
        }
        let key = match cell(row, self.key)? {
            [] => return Err("an empty key".to_owned()),
            key => key,
        };
        let writes = match self.op {
            Some(column) => operation::writes(cell(row, column)?)?,
            None => false,
        };
        let size = self.size(row)?;
        Ok(Found { key, size, writes })
    }

    /// The sum of the sizes that are there.
    fn size(&self, row: &ByteRecord) -> Result<Option<u32>, String> {
        let mut sum: Option<u32> = None;
        for &column in &self.sizes {
            let cell = cell(row, column)?;
            if cell.is_empty() {
                continue;
            }
            let size = parse_size(cell)?;
            let more = sum.unwrap_or(0).checked_add(size);
            sum = Some(more.ok_or("a size of more than 2^32 - 1 bytes")?);
        }
        Ok(sum)
    }
}

/// Where the column of this name is, if there is one; `Op` is `op`.
fn place_of(names: &ByteRecord, name: &str) -> Option<usize> {
    let same = |found: &[u8]| found.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    names.iter().position(same)
}

fn cell(row: &ByteRecord, column: usize) -> Result<&[u8], String> {
    let cell = row.get(column).map(<[u8]>::trim_ascii);
    cell.ok_or_else(|| format!("{} columns", row.len()))
}

/// Line ends in the cells of a row.
fn line_ends(row: &[u8]) -> usize {
    let count = |end: u8| row.iter().filter(|&&byte| byte == end).count();
    count(b'\n').max(count(b'\r'))
}

/// True for a number above 0.
fn is_above_zero(cell: &[u8]) -> bool {
    parse_number::<f64>(cell.trim_ascii()).is_some_and(|number| number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ReadOptions;
    use crate::trace::tests::{options, read, requests};

    fn with(columns: &str) -> ReadOptions {
        ReadOptions {
            columns: Some(columns.parse().unwrap()),
            ..options()
        }
    }

    fn expect(text: &str, options: &ReadOptions, expected: &[(&str, u32)]) {
        let trace = read("t.csv", text.as_bytes(), options).unwrap();
        let found = requests(&trace);
        let found: Vec<_> = found.iter().map(|(key, size)| (&**key, *size)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn columns_are_found_by_name_or_number() {
        let text = "time,key,size\n1,a,10\n2,\"b,c\",20\n";
        // A key with a comma is fine for a memcached.
        expect(text, &options(), &[("a", 10), ("b,c", 20)]);
        expect(text, &with("key=key"), &[("a", 100), ("b,c", 100)]);
        expect(text, &with("key=time,size=size"), &[("1", 10), ("2", 20)]);
        expect("1,a,10,5\n", &with("key=2,size=3+4"), &[("a", 15)]);
        expect("key\na\n", &options(), &[("a", 100)]);
    }

    #[test]
    fn a_recording_has_operations_and_may_lack_sizes() {
        let text = "time,op,key,size,ttl\n1.5,get,a,10,60\n1.6,set,b,20,0\n1.7,get,c,,0\n";
        expect(text, &options(), &[("a", 10), ("b", 20), ("c", 100)]);
        let trace = read("t.csv", text.as_bytes(), &options()).unwrap();
        let writes: Vec<_> = trace.requests.iter().map(|one| one.writes).collect();
        assert_eq!(writes, [false, true, false]);
    }

    #[test]
    fn operations_are_read_by_any_spelling_and_others_are_broken() {
        // As CacheLib has its files, and one of them in other letters.
        let text = "key,Op,size,op_count\n\
            a,GET,10,1\na, Set ,10,1\nb,DELETE,10,1\nb,GET_LEASE,10,1\nb,SET_LEASE,10,1\nc,,10,1\nc\na,cas,7,2\n";
        let trace = read("t.csv", text.as_bytes(), &options()).unwrap();
        let writes: Vec<_> = trace.requests.iter().map(|one| one.writes).collect();
        assert_eq!(writes, [false, true, false, true, true]);
        let places: Vec<u64> = trace.broken.first.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [4, 7, 8]);
        let words = trace.broken.in_words();
        let reason = "4 (`DELETE` is an operation that is neither get nor set)";
        assert!(words.contains(reason), "{words}");
        assert_eq!(trace.notes.len(), 1, "{:?}", trace.notes);
        assert!(trace.notes[0].contains("op_count"), "{:?}", trace.notes);
    }

    #[test]
    fn the_column_of_operations_may_be_given() {
        // As Twitter has its files.
        let text = b"0,a,1,10,9,get,0\n0,a,1,10,9,add,60\n0,a,1,10,9,incr,60\n";
        let trace = read("t.csv", text, &with("key=2,size=3+4,op=6")).unwrap();
        let found = trace.requests.iter().map(|one| (one.size, one.writes));
        assert!(found.eq([(11, false), (11, true)]), "{trace:?}");
        assert_eq!(trace.broken.count, 1);
        let text = b"op,key,what\nx,a,set\n";
        let trace = read("t.csv", text, &with("key=key,op=what")).unwrap();
        assert!(trace.requests[0].writes);
        assert!(read("t.csv", text, &with("key=key,op=which")).is_err());
    }

    #[test]
    fn a_quote_that_is_not_closed_breaks_its_row() {
        for text in [
            "key,size\na,1\n\"b,1\nc,1\nd,1\n",
            "key,size\na,1\n\"b,1\nc,1\nd\",1\n",
            "key,size\na,1\nb,\"1\nc,1\nd,1\n",
            "key,size\r\na,1\r\n\"b,1\r\nc,1\r\nd\",1\r\n",
        ] {
            let trace = read("t.csv", text.as_bytes(), &options()).unwrap();
            assert_eq!(requests(&trace), [("a".to_owned(), 1)], "{text:?}");
            assert_eq!(trace.broken.count, 1, "{text:?}");
            let words = trace.broken.in_words();
            assert!(words.contains(" line ends in it: "), "{text:?}: {words}");
        }
        // A line end at an edge of the cell is one, too.
        let trace = read("t.csv", b"key\na\n\"\nb\"\nc\n", &options()).unwrap();
        assert_eq!((trace.requests.len(), trace.broken.count), (2, 1));
    }

    #[test]
    fn lifetimes_are_noted_once_if_there_are_any() {
        for (lifetimes, notes) in [(["0", "", "-1"], 0), (["0", " 60", "0.5"], 1)] {
            let rows = lifetimes.map(|lifetime| format!("a,{lifetime}\n"));
            let text = format!("key,ttl\n{}", rows.concat());
            let trace = read("t.csv", text.as_bytes(), &options()).unwrap();
            assert_eq!(trace.notes.len(), notes, "{text:?}");
        }
    }

    #[test]
    fn broken_rows_are_named_by_their_lines() {
        let text = "key,size\na\n,5\nb,x\nc,4000000000\nd,7\n";
        let trace = read("t.csv", text.as_bytes(), &with("key=key,size=size+size")).unwrap();
        assert_eq!(requests(&trace), [("d".to_owned(), 14)]);
        let places: Vec<u64> = trace.broken.first.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [2, 3, 4, 5]);
    }

    #[test]
    fn a_column_that_is_not_there_is_an_error() {
        assert!(read("t.csv", b"a,b\n1,2\n", &options()).is_err());
        assert!(read("t.csv", b"key,b\n1,2\n", &with("key=key,size=size")).is_err());
    }

    #[test]
    fn columns_as_typed() {
        for wrong in [
            "",
            "key",
            "key=",
            "key=0",
            "key=1,size=name",
            "key=1,op=name",
            "ttl=3",
        ] {
            assert!(wrong.parse::<Columns>().is_err(), "{wrong}");
        }
        let columns: Columns = "size=a+b,key=k".parse().unwrap();
        assert_eq!(columns.sizes.len(), 2);
    }
}
