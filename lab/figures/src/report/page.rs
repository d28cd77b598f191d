//! The page: what was run where, an index by paper, and the figures.

use std::collections::BTreeMap;

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::entry;
use super::gather::{Entry, Gathered, Section, State};
use super::verdict::{Word, size};

/// Colours and sizes for screens, phones and paper; in a light and a dark scheme. Nothing in it leads elsewhere.
const STYLE: &str = include_str!("style.css");

/// The page. It needs no network, no script, and no other file.
pub fn page(gathered: &Gathered, now: Timestamp) -> String {
    let machines = gathered.machines();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Nuthatch: figures" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Nuthatch: figures" }
                    p {
                        "Every figure is run, drawn and judged by " code { "nuthatch-lab" } ". A statement is the shape that "
                        "the source has, not the one that we would like. Written on "
                        (now.strftime("%-d %B %Y").to_string()) "."
                    }
                    (legend())
                }
                main {
                    (machines_part(&machines))
                    (strangers(gathered))
                    (index(gathered))
                    @for section in &gathered.sections {
                        (section_part(section, &machines))
                    }
                }
            }
        }
    };
    page.into_string()
}

fn legend() -> Markup {
    let words = [
        (Word::Holds, "all statements hold"),
        (Word::Partly, "some do"),
        (Word::Differs, "none does"),
        (Word::Noise, "the spreads overlap: nothing can be said"),
        (
            Word::Unjudged,
            "there is nothing to judge, or too little was run",
        ),
        (Word::NotRun, "there is no run"),
        (Word::Impossible, "it says why"),
    ];
    html! {
        ul.legend {
            @for (word, meaning) in words {
                li { (badge(word)) " " (meaning) }
            }
        }
    }
}

/// A verdict's word.
pub fn badge(word: Word) -> Markup {
    html! { span class={ "badge " (word.class()) } { (word) } }
}

fn machines_part(machines: &[&BTreeMap<String, String>]) -> Markup {
    html! {
        @if machines.is_empty() {
            p.warning { "No figure has been run." }
        } @else if let [one] = machines {
            h2 #machines { "The machine" }
            (machine(one))
        } @else {
            h2 #machines { "The machines" }
            p.warning {
                "These figures come from " (machines.len()) " different machines or programs. Numbers from different ones "
                "cannot be compared."
            }
            @for (number, one) in (1..).zip(machines) {
                h3 id={ "machine-" (number) } { "Machine " (number) }
                (machine(one))
            }
        }
    }
}

fn machine(fields: &BTreeMap<String, String>) -> Markup {
    html! {
        table.fields {
            tbody {
                @for (name, value) in fields {
                    tr { th scope="row" { (name) } td { (value) } }
                }
            }
        }
    }
}

fn strangers(gathered: &Gathered) -> Markup {
    html! {
        @if !gathered.strangers.is_empty() {
            div.warning {
                p { "Files of no figure that this program has; they are not shown:" }
                ul {
                    @for path in &gathered.strangers {
                        li { code { (path.display()) } }
                    }
                }
            }
        }
    }
}

fn index(gathered: &Gathered) -> Markup {
    html! {
        nav aria-labelledby="index" {
            h2 #index { "All figures" }
            @for section in &gathered.sections {
                h3 { a href={ "#" (anchor(section.source.heading)) } { (section.source.heading) } }
                table.index {
                    thead {
                        tr { th scope="col" { "Figure" } th scope="col" { "Shows" } th scope="col" { "Verdict" } }
                    }
                    tbody {
                        @for entry in &section.entries { (index_row(entry)) }
                    }
                }
            }
        }
    }
}

fn index_row(entry: &Entry) -> Markup {
    let run = match &entry.state {
        State::Found(found) => format!(" ({} run)", size(found.size)),
        State::NotRun | State::Impossible | State::Unusable { .. } => String::new(),
    };
    html! {
        tr {
            td { a href={ "#" (anchor(&entry.name)) } { (breakable(&entry.name)) } }
            td { (entry.figure.title) span.muted { (run) } }
            td { (badge(Word::of(&entry.state))) }
        }
    }
}

/// A figure's name, which a narrow screen may break behind the paper's.
fn breakable(name: &str) -> Markup {
    html! {
        @for part in name.split_inclusive('/') { (part) wbr; }
    }
}

fn section_part(section: &Section, machines: &[&BTreeMap<String, String>]) -> Markup {
    let source = &section.source;
    html! {
        section aria-labelledby=(anchor(source.heading)) {
            h2 id=(anchor(source.heading)) { (source.heading) }
            p.muted { (source.about) }
            @for entry in &section.entries {
                (entry::article(entry, source, machines))
            }
        }
    }
}

/// The name of a place in the page: letters, digits and hyphens.
pub fn anchor(name: &str) -> String {
    let letters = name.chars().map(|character| match character {
        character if character.is_ascii_alphanumeric() => character.to_ascii_lowercase(),
        _ => '-',
    });
    letters.collect()
}
