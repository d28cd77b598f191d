//! `nuthatch-lab figure`: its options, its files, and what it prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use nuthatch_program::{Failure, output};

use crate::command::Programs;
use crate::draw;
use crate::figure::{Figure, Size};
use crate::found::Found;
use crate::report::moment;
use crate::run::{self, Setting};
use crate::store;

/// What `figure` without anything else prints; not a figure's name.
const LIST: &str = "list";

/// Which figures are run, and how.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The figures, as `cphash/5`, or all of a paper, as `cphash`, or a file of your own, as `mine/5.toml`; `list` lists
    /// them
    #[arg(value_name = "FIGURE", required_unless_present = "all")]
    figures: Vec<String>,
    /// All figures
    #[arg(long, conflicts_with = "figures")]
    all: bool,
    /// In about a minute each at most: shapes can be seen
    #[arg(long, conflicts_with = "smoke")]
    quick: bool,
    /// In seconds: the commands work, the numbers are worthless
    #[arg(long)]
    smoke: bool,
    /// Folder of the results: for each figure JSON, CSV and SVG
    #[arg(long, value_name = "FOLDER", default_value = "figures")]
    output: PathBuf,
}

/// Runs the figures one after the other, writes their files, and prints what became of their statements. `machine` is
/// the program, the machine and its system.
///
/// # Errors
/// A name that no figure has; a folder that cannot be written, a full disk: what was written before stays. A figure
/// whose commands failed is an error at the end, when all others have run; one that cannot run here is none.
pub fn run(options: &Options, machine: &BTreeMap<String, String>) -> Result<(), Failure> {
    let figures = store::all()?;
    if options.figures == [LIST] {
        let lines = figures.iter().map(|(name, figure)| {
            let not = figure.why.as_ref().map_or("", |_| " (cannot be run here)");
            format!("{name:<22} {}: {}{not}\n", figure.source, figure.title)
        });
        return output::print(&lines.collect::<String>());
    }
    let chosen = chosen(figures, &options.figures)?;
    let programs = Programs::find()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted))?;
    let setting = Setting {
        size: match (options.quick, options.smoke) {
            (_, true) => Size::Smoke,
            (true, _) => Size::Quick,
            _ => Size::Full,
        },
        programs: &programs,
        machine,
        interrupted: &interrupted,
        progress: &|command| output::note(&format!("$ {command}")),
    };
    let mut failed = Vec::new();
    for Chosen {
        argument,
        name,
        figure,
    } in chosen
    {
        if let Some(why) = &figure.why {
            output::print(&not_here(&name, &figure, why))?;
            continue;
        }
        let mut found = run::run(&name, &figure, &setting)?;
        found.command = run::again(&argument, setting.size);
        // First: it is not lost if the disk is full.
        output::print(&summary(&figure, &found))?;
        write(&options.output, &figure, &found)?;
        if found.interrupted {
            return Err(Failure::run("interrupted: what was measured is kept"));
        }
        if found.gaps.iter().any(|gap| !gap.skipped) {
            failed.push(name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Run(format!(
            "commands failed: {}",
            failed.join(", ")
        ))),
    }
}

/// A figure that is run.
struct Chosen {
    /// What chooses it on the command line.
    argument: String,
    name: String,
    figure: Figure,
}

/// The figures of these names, of these papers, and in these files; all if there is no name.
fn chosen(figures: Vec<(String, Figure)>, wanted: &[String]) -> Result<Vec<Chosen>, Failure> {
    let (files, names): (Vec<&String>, Vec<&String>) =
        wanted.iter().partition(|wanted| wanted.ends_with(".toml"));
    let is_meant = |name: &str, wanted: &str| {
        name == wanted
            || name
                .split_once('/')
                .is_some_and(|(paper, _)| paper == wanted)
    };
    for wanted in &names {
        if !figures.iter().any(|(name, _)| is_meant(name, wanted)) {
            let words = format!("{wanted}: no figure; `nuthatch-lab figure list` shows all");
            return Err(Failure::Usage(words));
        }
    }
    let meant = figures
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || names.iter().any(|wanted| is_meant(name, wanted)));
    let mut chosen: Vec<Chosen> = meant
        .map(|(name, figure)| Chosen {
            argument: name.clone(),
            name,
            figure,
        })
        .collect();
    for file in files {
        let (name, figure) = store::read(Path::new(file)).map_err(Failure::Usage)?;
        chosen.push(Chosen {
            argument: file.clone(),
            name,
            figure,
        });
    }
    Ok(chosen)
}

/// Writes the figure's files.
fn write(folder: &Path, figure: &Figure, found: &Found) -> Result<(), Failure> {
    let base = folder.join(&found.figure);
    if let Some(parent) = base.parent() {
        let made = fs::create_dir_all(parent);
        made.map_err(|error| Failure::run(format!("{}: {error}", parent.display())))?;
    }
    let json = serde_json::to_vec_pretty(found).map_err(Failure::run)?;
    output::save(&base.with_added_extension("json"), &json)?;
    output::save(&base.with_added_extension("csv"), &table(found)?)?;
    match draw::svg(figure, found) {
        Ok(Some(svg)) => output::save(&base.with_added_extension("svg"), svg.as_bytes()),
        Ok(None) => Ok(()),
        Err(error) => Err(Failure::run(format!("{}: {error}", found.figure))),
    }
}

/// The points as CSV, behind lines that say where they come from, each with `#` in front.
fn table(found: &Found) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(origin(found).into_bytes());
    let head = ["series", "x", "median", "least", "greatest", "kind"];
    writer.write_record(head).map_err(Failure::run)?;
    for point in &found.points {
        let kind = if point.modelled {
            "modelled"
        } else {
            "measured"
        };
        let x = match point.x.number() {
            Some(number) => number.to_string(),
            None => point.x.to_string(),
        };
        let numbers = [point.y, point.low, point.high].map(|value| value.to_string());
        let [y, low, high] = &numbers;
        let row = [&point.series, &x, y, low, high, kind];
        writer.write_record(row).map_err(Failure::run)?;
    }
    writer.into_inner().map_err(Failure::run)
}

/// Figure, command, moment, machine with the program's commit, and versions: a line each.
fn origin(found: &Found) -> String {
    let own = [
        ("figure", format!("{} ({})", found.figure, found.source)),
        ("command", found.command.clone()),
        ("began", moment(found.began)),
    ];
    let mut text = String::new();
    let own = own.iter().map(|(name, value)| (*name, value));
    let asked = found.machine.iter().chain(&found.versions);
    for (name, value) in own.chain(asked.map(|(name, value)| (name.as_str(), value))) {
        let line = format!("# {name}: {value}");
        let _ = writeln!(text, "{}", line.replace(char::is_control, " "));
    }
    text
}

/// What is printed of a figure that cannot be run.
fn not_here(name: &str, figure: &Figure, why: &str) -> String {
    let Figure { source, title, .. } = figure;
    format!("{name}: {source}, {title}\n  cannot be run here: {why}\n")
}

/// What is printed of a figure.
fn summary(figure: &Figure, found: &Found) -> String {
    let mut text = format!("{}: {}, {}\n", found.figure, figure.source, figure.title);
    for gap in &found.gaps {
        let what = if gap.skipped { "left out" } else { "failed" };
        let _ = writeln!(text, "  {what}: {}\n    {}", gap.reason, gap.command);
    }
    for note in &found.notes {
        let _ = writeln!(text, "  warning: {note}");
    }
    for verdict in &found.verdicts {
        let holds = match verdict.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None if verdict.noise => "within the noise",
            None => "not judged",
        };
        let _ = writeln!(
            text,
            "  {holds}: {} ({})",
            verdict.statement, verdict.because
        );
        if let Some(known) = &verdict.known {
            let _ = writeln!(text, "    {known}");
        }
    }
    let points = found.points.len();
    let _ = writeln!(text, "  {points} points in {:.0} s", found.took);
    text
}
