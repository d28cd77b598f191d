//! CSV: a row a request, whose columns are named.

use std::io::{self, BufRead};
use std::str::FromStr;

use csv::{ByteRecord, ReaderBuilder};

use super::{Reader, parse_size};

/// Which columns hold what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    key: Column,
    /// Their sum is the size.
    sizes: Vec<Column>,
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
                _ => return Err(format!("`{part}` is neither key=… nor size=…")),
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
        std::iter::once(&self.key).chain(&self.sizes)
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

pub(super) fn read(
    input: Box<dyn BufRead>,
    columns: Option<&Columns>,
    reader: &mut Reader,
) -> io::Result<()> {
    let given = columns.cloned().unwrap_or_default();
    let named = given.key.is_name();
    let mut rows = ReaderBuilder::new()
        .has_headers(named)
        .flexible(true)
        .from_reader(input);
    let names = if named {
        rows.byte_headers()?.clone()
    } else {
        ByteRecord::new()
    };
    let key = given.key.find(&names)?;
    let mut sizes = Vec::new();
    for column in &given.sizes {
        sizes.push(column.find(&names)?);
    }
    // Without --columns a column of this name is the size.
    if columns.is_none()
        && let Ok(size) = Column::Name("size".to_owned()).find(&names)
    {
        sizes.push(size);
    }
    // So it is in a recording, with columns named by the user or not.
    let op = Column::Name("op".to_owned()).find(&names).ok();
    let mut row = ByteRecord::new();
    while !reader.is_full() && rows.read_byte_record(&mut row)? {
        let line = row.position().map_or(0, csv::Position::line);
        match request(&row, key, &sizes) {
            Ok((key, size)) => {
                let writes = op.and_then(|op| row.get(op)) == Some(b"set");
                reader.bytes(key, size, writes)?;
            }
            Err(reason) => reader.broken(line, reason),
        }
    }
    Ok(())
}

fn request<'a>(
    row: &'a ByteRecord,
    key: usize,
    sizes: &[usize],
) -> Result<(&'a [u8], Option<u32>), String> {
    let cell = |column: usize| {
        let cell = row.get(column).map(<[u8]>::trim_ascii);
        cell.ok_or_else(|| format!("{} columns", row.len()))
    };
    let key = match cell(key)? {
        [] => return Err("an empty key".to_owned()),
        key => key,
    };
    let mut sum: Option<u32> = None;
    for &column in sizes {
        let cell = cell(column)?;
        if cell.is_empty() {
            continue;
        }
        let size = parse_size(cell)?;
        let more = sum.unwrap_or(0).checked_add(size);
        sum = Some(more.ok_or("a size of more than 2^32 - 1 bytes")?);
    }
    Ok((key, sum))
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
        for wrong in ["", "key", "key=", "key=0", "key=1,size=name", "ttl=3"] {
            assert!(wrong.parse::<Columns>().is_err(), "{wrong}");
        }
        let columns: Columns = "size=a+b,key=k".parse().unwrap();
        assert_eq!(columns.sizes.len(), 2);
    }
}
