//! A figure on the page.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use nuthatch_plot::WIDTH;

use crate::draw;
use crate::figure::{Chart, Figure, Size};
use crate::found::{Found, Point, X, short};
use crate::run::again;

use super::gather::{Entry, Source, State};
use super::page::{anchor, badge};
use super::verdict::{Word, outcome, size};
use super::{duration, moment, versions};

/// The figure: what the source says, what was found, and how to repeat it.
pub fn article(entry: &Entry, source: &Source, machines: &[&BTreeMap<String, String>]) -> Markup {
    let Entry {
        name,
        figure,
        state,
    } = entry;
    html! {
        article aria-labelledby=(anchor(name)) {
            h3 id=(anchor(name)) { (figure.title) " " (badge(Word::of(state))) }
            p.muted { (figure.source) " · " code { (name) } }
            p { strong { (source.says) ": " } (figure.paper) }
            @if !figure.note.is_empty() { p { (figure.note) } }
            @match state {
                State::Found(found) => (found_part(figure, found, machines)),
                State::NotRun => (not_run(name)),
                State::Impossible => p.note {
                    strong { "It cannot be run here: " } (figure.why.as_deref().unwrap_or_default())
                },
                State::Unusable { path, reason } => {
                    p.warning { "Its file " code { (path.display()) } " cannot be used: " (reason) "." }
                    (command(&again(name, Size::Quick)))
                },
            }
            (parameters(figure, source))
        }
    }
}

fn not_run(name: &str) -> Markup {
    html! {
        p.warning { "It was not run. This runs it; without " code { "--quick" } " at its full size:" }
        (command(&again(name, Size::Quick)))
    }
}

fn command(line: &str) -> Markup {
    html! { pre { code { (line) } } }
}

fn found_part(figure: &Figure, found: &Found, machines: &[&BTreeMap<String, String>]) -> Markup {
    html! {
        (warnings(found))
        (picture(figure, found))
        (statements(found))
        (gaps(found))
        @if figure.chart != Chart::Table && !found.points.is_empty() {
            details {
                summary { "The numbers" }
                (numbers(figure, found))
            }
        }
        p.muted {
            "A " (size(found.size)) " run, begun on " (moment(found.began)) ", took " (duration(found.took))
            @if machines.len() > 1
                && let Some(number) = machines.iter().position(|one| **one == found.machine) {
                ", on " a href={ "#machine-" (number + 1) } { "machine " (number + 1) }
            }
            @if !found.versions.is_empty() { ", with " (versions(found)) }
            ". To repeat it:"
        }
        (command(&found.command))
    }
}

fn warnings(found: &Found) -> Markup {
    html! {
        @if found.size == Size::Smoke {
            p.warning { "A smoke run: it shows that the commands work. Its numbers are worthless, and nothing is judged." }
        }
        @if found.interrupted {
            p.warning { "The run was interrupted: what was measured until then is here, and the rest is missing." }
        }
        @if found.points.is_empty() {
            p.warning { "The run has no points." }
        }
        @for note in &found.notes {
            p.warning { "A command warns: " (note) }
        }
        @if found.points.iter().any(|point| point.modelled) {
            p.note {
                strong { "Modelled: " }
                "what is called “(model)” and drawn with broken lines comes from a model, not from a measurement."
            }
        }
    }
}

/// The drawings, of which the style sheet shows one: for a page and for a phone, with their widths in pixels.
const DRAWINGS: [(&str, f64); 2] = [("wide", WIDTH), ("narrow", 345.0)];

/// The drawing, made anew from the points; of a table, the table.
fn picture(figure: &Figure, found: &Found) -> Markup {
    if figure.chart == Chart::Table && !found.points.is_empty() {
        return numbers(figure, found);
    }
    let label = format!("{}: {} by {}", figure.title, figure.y.label, figure.x.label);
    html! {
        @for (class, width) in DRAWINGS {
            @match draw::untitled(figure, found, width) {
                Ok(Some(svg)) => div class={ "chart " (class) } role="img" aria-label=(label) { (PreEscaped(svg)) },
                Ok(None) => {},
                Err(error) => p class={ "warning " (class) } { "It cannot be drawn: " (error) "." },
            }
        }
    }
}

fn statements(found: &Found) -> Markup {
    html! {
        @if !found.verdicts.is_empty() {
            h4 { "Statements" }
            ul.statements {
                @for verdict in &found.verdicts {
                    @let (word, class) = outcome(verdict);
                    li {
                        span class={ "badge " (class) } { (word) } " " (verdict.statement) ": "
                        span.because { (verdict.because) }
                        @if let Some(known) = &verdict.known {
                            span.known { "Known reason: " (known) "." }
                        }
                    }
                }
            }
        }
    }
}

fn gaps(found: &Found) -> Markup {
    html! {
        @if !found.gaps.is_empty() {
            h4 { "What is missing" }
            ul.gaps {
                @for gap in &found.gaps {
                    li {
                        strong { @if gap.skipped { "Left out: " } @else { "Failed: " } }
                        (gap.reason)
                        (command(&gap.command))
                    }
                }
            }
        }
    }
}

/// The points: a row for each place, a column for each series.
fn numbers(figure: &Figure, found: &Found) -> Markup {
    let series = draw::names(found);
    let points = found.by_name(draw::shown);
    let at = |name: &String, x: &X| points.get(&(name.clone(), x.key())).copied();
    html! {
        // Outside of what scrolls: on a phone it would be cut.
        p.caption { (figure.y.label) ": median" @if found.points.iter().any(is_spread) { ", and the range of the rounds" } }
        div.scrolls tabindex="0" role="group" aria-label={ "Numbers of " (figure.title) } {
            table.numbers {
                thead {
                    tr {
                        th scope="col" { (figure.x.label) }
                        @for name in &series { th scope="col" { (name) } }
                    }
                }
                tbody {
                    @for x in found.places() {
                        tr {
                            th scope="row" { (x) }
                            @for name in &series { td { (value(at(name, x))) } }
                        }
                    }
                }
            }
        }
    }
}

fn is_spread(point: &Point) -> bool {
    point.low < point.high
}

fn value(point: Option<&Point>) -> Markup {
    html! {
        @match point {
            None => span.muted { "none" },
            Some(point) => {
                (short(point.y))
                @if is_spread(point) {
                    span.range { (short(point.low)) " to " (short(point.high)) }
                }
            },
        }
    }
}

fn parameters(figure: &Figure, source: &Source) -> Markup {
    let differs = figure.parameter.iter().any(|one| one.here.is_some());
    html! {
        @if !figure.parameter.is_empty() {
            details {
                summary { "Parameters" @if differs { ", and what differs here" } }
                div.scrolls tabindex="0" role="group" aria-label={ "Parameters of " (figure.title) } {
                    table.parameters {
                        thead {
                            tr {
                                th scope="col" { "Parameter" } th scope="col" { "In the " (source.origin) }
                                th scope="col" { "Here" } th scope="col" { "Why" }
                            }
                        }
                        tbody {
                            @for one in &figure.parameter {
                                tr {
                                    th scope="row" { (one.name) }
                                    // On a phone each is a line with its heading.
                                    td data-heading={ "In the " (source.origin) ": " } { (one.paper) }
                                    td data-heading="Here: " { (one.here.as_deref().unwrap_or("the same")) }
                                    td data-heading="Why: " { (one.why.as_deref().unwrap_or("")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
