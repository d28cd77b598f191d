//! The tables in docs/statistics.md are written from the tables of metrics: `DOCS=write cargo test -p nuthatch-state
//! document`. Otherwise the test compares.

use std::fmt::Write;
use std::path::Path;

use super::declared::{GENERAL, HITS_MEMORY, HITS_REMOVED, PAGE_ONLY};
use super::families::BY_HAND;
use super::{Family, Kind, Labels, Metric, NEVER, Unit};

fn kind(kind: Kind, unit: Unit, for_prometheus: bool) -> String {
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Text => "text",
    };
    match unit {
        Unit::Count => kind.to_owned(),
        Unit::Bytes => format!("{kind}, bytes"),
        Unit::Microseconds if !for_prometheus => format!("{kind}, µs"),
        Unit::Seconds | Unit::Microseconds => format!("{kind}, s"),
    }
}

fn sample(family: &Family, labels: Labels<'_>) -> String {
    let labels: Vec<_> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    match labels.is_empty() {
        true => format!("`{}`", family.sample_name()),
        false => format!("`{}{{{}}}`", family.sample_name(), labels.join(",")),
    }
}

/// The meaning of a metric, and its note.
fn meaning(metric: &Metric) -> String {
    let mut meaning = metric.help.to_owned();
    if !metric.note.is_empty() {
        let _ = write!(meaning, " {}", metric.note);
    }
    meaning
}

/// When a metric is shown, if not always.
fn only(metric: &Metric) -> String {
    match metric.when.words {
        "" => String::new(),
        words => format!(" (Only {words}.)"),
    }
}

/// The line above metrics that are shown then.
fn heading(when: &str) -> String {
    format!(
        "| *{}:* | | | |",
        if when.is_empty() { "always" } else { when }
    )
}

/// A table of metrics that `stats` shows. A line above neighbours says when they are shown.
fn stats_table<'m>(metrics: impl Iterator<Item = &'m Metric>) -> String {
    let mut table = "| name | kind | meaning | for Prometheus |\n|---|---|---|---|\n".to_owned();
    let mut never = Vec::new();
    let mut when = "";
    for metric in metrics {
        let name = metric.stat.unwrap();
        if metric.help == NEVER && metric.note.is_empty() {
            never.push(format!("`{name}`"));
            continue;
        }
        if metric.when.words != when {
            when = metric.when.words;
            let _ = writeln!(table, "{}", heading(when));
        }
        let family = metric.family();
        let place = family.map_or(String::new(), |family| sample(&family, metric.labels()));
        let kind = kind(metric.kind, metric.unit, false);
        let _ = writeln!(
            table,
            "| `{name}` | {kind} | {} | {place} |",
            meaning(metric)
        );
    }
    if !never.is_empty() {
        if !when.is_empty() {
            let _ = writeln!(table, "{}", heading(""));
        }
        let _ = writeln!(table, "| {} | counter | {NEVER} | |", never.join(", "));
    }
    table
}

/// The table of what only Prometheus gets.
fn page_table() -> String {
    let mut table = "| for Prometheus | kind | meaning |\n|---|---|---|\n".to_owned();
    for metric in PAGE_ONLY {
        let name = sample(&metric.family().unwrap(), metric.labels());
        let kind = kind(metric.kind, metric.unit, true);
        let _ = writeln!(
            table,
            "| {name} | {kind} | {}{} |",
            meaning(metric),
            only(metric)
        );
    }
    for family in BY_HAND {
        let kind = kind(family.kind, family.unit, true);
        let _ = writeln!(
            table,
            "| {} | {kind} | {} |",
            sample(family, &[]),
            family.help
        );
    }
    table
}

/// The document with this table between the marks of this name.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let begin =
        format!("<!-- {name}: written by DOCS=write cargo test -p nuthatch-state document -->\n");
    let end = format!("<!-- end of {name} -->");
    let (before, rest) = document.split_once(&begin).expect(&begin);
    let (_, after) = rest.split_once(&end).expect(&end);
    format!("{before}{begin}\n{table}\n{end}{after}")
}

#[test]
fn the_document_has_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/statistics.md");
    let present = std::fs::read_to_string(&path).unwrap();
    let mut right = with_table(&present, "stats", &stats_table(GENERAL.iter()));
    let hits = HITS_MEMORY.iter().chain(HITS_REMOVED);
    right = with_table(&right, "stats hits", &stats_table(hits));
    right = with_table(&right, "Prometheus", &page_table());
    if std::env::var_os("DOCS").is_some_and(|what| what == "write") {
        std::fs::write(&path, right).unwrap();
        return;
    }
    assert!(
        present == right,
        "docs/statistics.md is not what the metrics say: DOCS=write cargo test -p nuthatch-state document"
    );
}
