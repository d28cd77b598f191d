//! Tables of what caches hold, and JSON.

use std::fmt::Write;

use nuthatch_program::Failure;
use serde::Serialize;

use super::ValueSizes;
use crate::live::MemoryUse;
use crate::size::bytes_in_words;

/// What one cache held of values of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Different items written.
    pub written: u64,
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    pub memory: MemoryUse,
}

/// What one cache held of each kind.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub cells: Vec<Cell>,
}

/// What all caches held.
#[derive(Clone, Debug)]
pub struct Report {
    mib: u64,
    values: Vec<String>,
    pub rows: Vec<Row>,
}

/// Width of a column of numbers, at least.
const COLUMN: usize = 10;

impl Report {
    pub fn new(mib: u64, values: &[ValueSizes]) -> Self {
        Self {
            mib,
            values: values.iter().map(ValueSizes::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// For people: a table for each question.
    pub fn text(&self) -> String {
        let mib = self.mib;
        let limit = (mib << 20) as f64;
        let mut text = String::new();
        self.table(&mut text, &format!("items that {mib} MiB hold"), |cell| {
            Some(cell.items.to_string())
        });
        self.table(
            &mut text,
            "their keys and values, % of the memory",
            |cell| Some(format!("{:.2}", 100.0 * cell.bytes as f64 / limit)),
        );
        self.table(&mut text, "resident memory", |cell| {
            cell.memory.resident.map(bytes_in_words)
        });
        self.table(
            &mut text,
            "used of the memory, as the engine says",
            |cell| cell.memory.used.map(bytes_in_words),
        );
        text
    }

    /// A table, unless all its cells are empty.
    fn table(&self, text: &mut String, title: &str, of: impl Fn(&Cell) -> Option<String>) {
        let known = |row: &&Row| row.cells.iter().any(|cell| of(cell).is_some());
        let rows: Vec<&Row> = self.rows.iter().filter(known).collect();
        if rows.is_empty() {
            return;
        }
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let width = names.max().unwrap_or(0);
        // Writing to a String does not fail.
        let _ = write!(text, "{title}\n  {:width$}", "");
        for values in &self.values {
            let _ = write!(text, " {values:>COLUMN$}");
        }
        text.push('\n');
        for row in rows {
            let _ = write!(text, "  {:width$}", row.name);
            for (cell, values) in row.cells.iter().zip(&self.values) {
                let column = values.len().max(COLUMN);
                let number = of(cell).unwrap_or_else(|| "-".to_owned());
                let _ = write!(text, " {number:>column$}");
            }
            text.push('\n');
        }
        text.push('\n');
    }

    /// For programs: a line for each cache and kind of values.
    pub fn json(&self) -> Result<String, Failure> {
        let mut text = String::new();
        for row in &self.rows {
            for (cell, values) in row.cells.iter().zip(&self.values) {
                let line = Line {
                    name: &row.name,
                    memory_mib: self.mib,
                    values,
                    written: cell.written,
                    items: cell.items,
                    bytes: cell.bytes,
                    resident: cell.memory.resident,
                    resident_peak: cell.memory.resident_peak,
                    used: cell.memory.used,
                };
                let line = serde_json::to_string(&line);
                text += &line.map_err(|error| Failure::run(error.to_string()))?;
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    memory_mib: u64,
    values: &'a str,
    written: u64,
    items: u64,
    bytes: u64,
    resident: Option<u64>,
    resident_peak: Option<u64>,
    used: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_table_for_what_is_known() {
        let values = ["100", "uniform:1-30000"].map(|text| text.parse().unwrap());
        let mut report = Report::new(1, &values);
        let cell = Cell {
            written: 9,
            items: 5,
            bytes: 1 << 19,
            memory: MemoryUse::default(),
        };
        report.rows.push(Row {
            name: "a".to_owned(),
            cells: vec![cell, cell],
        });
        let expected = "\
items that 1 MiB hold
           100 uniform:1-30000
  a          5               5

their keys and values, % of the memory
           100 uniform:1-30000
  a      50.00           50.00

";
        assert_eq!(report.text(), expected);
        assert_eq!(report.json().unwrap().lines().count(), 2);
    }
}
