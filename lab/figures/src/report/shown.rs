//! What was found of a figure, in Markdown for a document in docs/: a table, what became of the statements, and where the
//! numbers come from.

use std::fmt::Write as _;

use crate::draw;
use crate::figure::{Figure, Size};
use crate::found::{Found, Point, short};

use super::gather::{Entry, State};
use super::papers::{cell, here};
use super::{moment, verdict, versions};

/// The figure.
///
/// # Errors
/// In words, if there is nothing that a document could show: no run, one that was only tried, a file that cannot be used.
pub fn shown(entry: &Entry) -> Result<String, String> {
    let found = match &entry.state {
        State::Found(found) if found.size == Size::Smoke => {
            return Err("a smoke run, whose numbers are worthless".to_owned());
        }
        State::Found(found) if found.points.is_empty() => {
            return Err("its run has no points".to_owned());
        }
        State::Found(found) => found,
        State::NotRun => return Err("it was not run".to_owned()),
        State::Impossible => return Err("it cannot be run".to_owned()),
        State::Unusable { reason, .. } => return Err(reason.clone()),
    };
    let Entry { name, figure, .. } = entry;
    let mut text = format!(
        "[{}](../lab/figures/{name}.toml): {}.\n\n",
        cell(&figure.title),
        cell(&figure.y.label)
    );
    text.push_str(&table(figure, found));
    if !found.verdicts.is_empty() || !found.gaps.is_empty() || !found.notes.is_empty() {
        let _ = write!(text, "\nStatements: {}.\n", cell(&here(entry)));
    }
    let _ = write!(text, "\n{}\n", origin(found));
    Ok(text)
}

/// A row for each place, a column for each series.
fn table(figure: &Figure, found: &Found) -> String {
    let series = draw::names(found);
    let points = found.by_name(draw::shown);
    let mut text = format!("| {} |", cell(&figure.x.label));
    for name in &series {
        let _ = write!(text, " {} |", cell(name));
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(series.len()));
    for x in found.places() {
        let _ = write!(text, "| {} |", cell(&x.to_string()));
        for name in &series {
            let point = points.get(&(name.clone(), x.key())).copied();
            let _ = write!(text, " {} |", value(point));
        }
        text.push('\n');
    }
    text
}

fn value(point: Option<&Point>) -> String {
    let Some(point) = point else {
        return String::new();
    };
    match point.low < point.high {
        true => format!(
            "{} ({} to {})",
            short(point.y),
            short(point.low),
            short(point.high)
        ),
        false => short(point.y),
    }
}

/// Which run it was: its size, its moment, the program, the machine, and the programs of others.
fn origin(found: &Found) -> String {
    let of = |name: &str| found.machine.get(name).map_or("?", String::as_str);
    let mut text = format!(
        "(A {} run, {}: nuthatch {} of commit {} on {} cores of {}, {}",
        verdict::size(found.size),
        moment(found.began),
        of("nuthatch"),
        of("commit"),
        of("cores"),
        of("processor"),
        of("kernel"),
    );
    if !found.versions.is_empty() {
        let _ = write!(text, "; {}", versions(found));
    }
    text.push_str(".)");
    cell(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::X;

    fn entry(state: State) -> Entry {
        let text = "source = \"A\"\ntitle = \"T\"\npaper = \"P\"\nx = { label = \"size\" }\ny = { label = \"ns\" }\n\
                    [[run]]\nwords = \"\"\nread = [{ series = \"s\", x = \"1\", y = \"1\" }]\n";
        Entry {
            name: "a/1".to_owned(),
            figure: Figure::parse(text).unwrap(),
            state,
        }
    }

    fn found(size: Size) -> Found {
        let point = |series: &str, x: f64, y: f64, low: f64| Point {
            series: series.to_owned(),
            x: X::Number(x),
            y,
            low,
            high: y,
            modelled: false,
        };
        let points = [
            point("a|b", 1024.0, 2.5, 1.5),
            point("c", 1024.0, 7.0, 7.0),
            point("c", 2048.0, 8.0, 8.0),
        ];
        let mut found = Found::of_points(points);
        found.size = size;
        found.machine.insert("commit".to_owned(), "abc".to_owned());
        let version = ("memcached".to_owned(), "memcached 1.6.45".to_owned());
        found.versions.extend([version]);
        found
    }

    #[test]
    fn a_figure_is_a_table_with_its_origin() {
        let found = State::Found(Box::new(found(Size::Quick)));
        let text = shown(&entry(found)).unwrap();
        let table = "[T](../lab/figures/a/1.toml): ns.\n\n\
                     | size | a\\|b | c |\n|---|---|---|\n| 1K | 2.50 (1.50 to 2.50) | 7 |\n| 2K |  | 8 |\n";
        assert!(text.starts_with(table), "{text}");
        assert!(text.contains("A quick run, 1 January 1970"), "{text}");
        assert!(text.contains("of commit abc on ? cores"), "{text}");
        assert!(text.contains("memcached 1.6.45"), "{text}");
    }

    #[test]
    fn what_is_no_measurement_is_not_shown() {
        for state in [
            State::NotRun,
            State::Impossible,
            State::Found(Box::new(found(Size::Smoke))),
            State::Found(Box::new(Found::of_points([]))),
        ] {
            assert!(shown(&entry(state)).is_err());
        }
    }
}
