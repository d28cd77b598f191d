//! The table of all figures in Markdown.

use std::fmt::Write as _;

use super::gather::{Entry, Gathered, Section, State};
use super::verdict::{Word, outcome, size};

/// A table for each paper, and one for the product's claims.
pub fn tables(gathered: &Gathered) -> String {
    let tables: Vec<String> = gathered.sections.iter().map(table).collect();
    let mut text = tables.join("\n");
    text.push('\n');
    text.push_str(&runs(gathered));
    text
}

fn table(section: &Section) -> String {
    let mut text = format!("## {}\n\n", cell(section.source.heading));
    if !section.source.about.is_empty() {
        let _ = writeln!(text, "{}\n", cell(section.source.about));
    }
    let origin = section.source.origin;
    let _ = writeln!(
        text,
        "| figure | the {origin} | here | verdict |\n|---|---|---|---|"
    );
    for entry in &section.entries {
        let Entry {
            name,
            figure,
            state,
        } = entry;
        let source = figure.source.split_once(", ");
        let source = source.map_or(figure.source.as_str(), |(_, rest)| rest);
        let _ = writeln!(
            text,
            "| [{}](../lab/figures/{name}.toml): {} | {} | {} | {} |",
            cell(source),
            cell(&figure.title),
            cell(&figure.paper),
            cell(&here(entry)),
            Word::of(state)
        );
    }
    text
}

/// What was found, in a cell's words.
pub fn here(entry: &Entry) -> String {
    let found = match &entry.state {
        State::Found(found) => found,
        State::NotRun => return "no run".to_owned(),
        State::Impossible => return entry.figure.why.clone().unwrap_or_default(),
        State::Unusable { reason, .. } => return reason.clone(),
    };
    let mut words = Vec::new();
    for verdict in &found.verdicts {
        let (outcome, _) = outcome(verdict);
        let mut one = format!("{outcome}: {} ({})", verdict.statement, verdict.because);
        if let Some(known) = &verdict.known {
            let _ = write!(one, ", since {known}");
        }
        words.push(one);
    }
    if words.is_empty() {
        words.push(format!(
            "{} points, and no statement was judged",
            found.points.len()
        ));
    }
    if !found.gaps.is_empty() {
        words.push(format!("gaps: {}", found.gaps.len()));
    }
    for note in &found.notes {
        words.push(format!("a command warns: {note}"));
    }
    if found.points.iter().any(|point| point.modelled) {
        words.push("modelled in part".to_owned());
    }
    if found.interrupted {
        words.push("interrupted".to_owned());
    }
    words.join("; ")
}

/// In which sizes and on which machines.
fn runs(gathered: &Gathered) -> String {
    let mut sizes: Vec<&str> = Vec::new();
    for entry in gathered.entries() {
        if let State::Found(found) = &entry.state
            && !sizes.contains(&size(found.size))
        {
            sizes.push(size(found.size));
        }
    }
    if sizes.is_empty() {
        return "No figure was run.\n".to_owned();
    }
    let mut text = format!("Size of the runs: {}.", sizes.join(", "));
    for machine in gathered.machines() {
        let fields = machine
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        let fields: Vec<String> = fields.collect();
        let _ = write!(text, " Machine: {}.", cell(&fields.join(", ")));
    }
    text.push('\n');
    text
}

/// A text that stays in its cell and is no markup.
pub fn cell(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                safe.push('\\');
                safe.push(character);
            }
            character if character.is_control() => safe.push(' '),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_what_it_gets() {
        assert_eq!(cell("a|b\nc <i>"), "a\\|b c &lt;i&gt;");
        assert_eq!(cell("[x](y) `z`"), "\\[x\\](y) \\`z\\`");
    }
}
