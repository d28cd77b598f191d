//! Results: a table for people, or one JSON object a row for programs.

use std::path::Path;

use serde::Serialize;

use nuthatch_program::Failure;
use nuthatch_program::output::{print as print_text, save as save_file};

/// A row of a table.
pub trait Row {
    /// The columns' names.
    const COLUMNS: &'static [&'static str];

    /// The cells, as many as there are columns.
    fn cells(&self) -> Vec<String>;
}

/// Prints rows: `title` and a table, or with `json` one line of JSON a row.
pub fn print<R: Row + Serialize>(title: &str, rows: &[R], json: bool) -> Result<(), Failure> {
    if json {
        print_json(rows)
    } else {
        print_table(title, rows)
    }
}

/// Prints a line of JSON a row.
pub fn print_json<R: Serialize>(rows: &[R]) -> Result<(), Failure> {
    print_text(&json_lines(rows)?)
}

/// Prints a title and a table.
pub fn print_table<R: Row>(title: &str, rows: &[R]) -> Result<(), Failure> {
    print_text(&format!("{title}\n{}", table(rows)))
}

fn json_lines<R: Serialize>(rows: &[R]) -> Result<String, Failure> {
    let mut text = String::new();
    for row in rows {
        let line = serde_json::to_string(row).map_err(|error| Failure::Run(error.to_string()))?;
        text += &line;
        text.push('\n');
    }
    Ok(text)
}

fn table<R: Row>(rows: &[R]) -> String {
    let heads: Vec<String> = R::COLUMNS.iter().map(|&name| name.to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heads)
        .chain(rows.iter().map(Row::cells))
        .collect();
    let widths: Vec<usize> = (0..R::COLUMNS.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = String::new();
    for line in &lines {
        let mut row = String::new();
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            // Names on the left, numbers on the right.
            if column < 2 {
                row += &format!("  {cell:<width$}");
            } else {
                row += &format!("  {cell:>width$}");
            }
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

/// Writes a chart into a file.
pub fn save(path: &Path, svg: Result<String, nuthatch_plot::PlotError>) -> Result<(), Failure> {
    let name = path.display();
    let svg = svg.map_err(|error| Failure::Run(format!("{name}: {error}")))?;
    save_file(path, svg.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Pair {
        name: &'static str,
        number: f64,
    }

    impl Row for Pair {
        const COLUMNS: &'static [&'static str] = &["name", "of", "number"];

        fn cells(&self) -> Vec<String> {
            vec![
                self.name.to_owned(),
                "x".to_owned(),
                self.number.to_string(),
            ]
        }
    }

    const PAIRS: [Pair; 2] = [
        Pair {
            name: "a",
            number: 1.5,
        },
        Pair {
            name: "longer",
            number: 22.0,
        },
    ];

    #[test]
    fn columns_stand_under_their_names() {
        let expected = "  name    of  number\n  a       x      1.5\n  longer  x       22\n";
        assert_eq!(table(&PAIRS), expected);
    }

    #[test]
    fn a_row_is_a_line_of_json() {
        let lines = json_lines(&PAIRS).ok().unwrap();
        assert_eq!(lines.lines().next(), Some(r#"{"name":"a","number":1.5}"#));
        assert_eq!(lines.lines().count(), 2);
    }
}
