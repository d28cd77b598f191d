//! `nuthatch-lab figure`: its options, its files, and what it prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use nuthatch_program::{Failure, child, output};

use crate::command::Programs;
use crate::figure::{Figure, Size};
use crate::files::{Files, Place};
use crate::found::Found;
use crate::plan::plan;
use crate::read::promised;
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
    /// Folder of the results: for each figure JSON, CSV and SVG. A run replaces what is there of its own size or smaller
    #[arg(long, value_name = "FOLDER", default_value = "figures")]
    output: PathBuf,
}

/// Runs the figures one after the other, writes their files, and prints what became of their statements. `machine` is
/// the program, the machine and its system.
///
/// # Errors
/// Of the command line, before anything runs: a name that no figure has, a file of a figure that is wrong, a folder that
/// cannot be written, or that has a larger run. At the end, when all figures have run: files and standard output that could
/// not be written, drawings that could not be made, commands that failed. One that cannot run here is none.
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
    let size = options.size();
    prepare(&chosen, size, &programs, &options.output)?;
    let interrupted = child::end_on_signals()?;
    let setting = Setting {
        size,
        programs: &programs,
        machine,
        interrupted: &interrupted,
        progress: &|command| output::note(&format!("$ {command}")),
    };
    let mut troubles = Troubles::default();
    for one in &chosen {
        // Relaxed: a flag alone.
        if interrupted.load(Ordering::Relaxed) {
            troubles.tell(format!("{} and those behind it did not run", one.name));
            break;
        }
        match &one.figure.why {
            Some(why) => troubles.keep(output::print(&not_here(&one.name, &one.figure, why))),
            None => run_one(one, &setting, &options.output, &mut troubles),
        }
    }
    troubles.end()
}

impl Options {
    fn size(&self) -> Size {
        match (self.quick, self.smoke) {
            (_, true) => Size::Smoke,
            (true, _) => Size::Quick,
            _ => Size::Full,
        }
    }
}

/// Looks, before anything runs, at all that would be found out too late.
fn prepare(
    chosen: &[Chosen],
    size: Size,
    programs: &Programs,
    folder: &Path,
) -> Result<(), Failure> {
    let run_here = || chosen.iter().filter(|one| one.figure.why.is_none());
    for one in run_here() {
        let planned = plan(&one.figure, size, programs).and_then(|planned| {
            let promised = planned.iter().map(|one| promised(one, programs).map(drop));
            promised.collect::<Result<(), String>>()
        });
        planned.map_err(|error| Failure::Usage(format!("{}: {error}", one.argument)))?;
        Files::of(folder, &one.name).refuse_smaller(size)?;
    }
    run_here().try_for_each(|one| Files::of(folder, &one.name).prepare())
}

/// What is told at the end, since the figures behind it should run all the same.
#[derive(Default)]
struct Troubles {
    told: Vec<String>,
    failed: Vec<String>,
}

impl Troubles {
    fn keep(&mut self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.tell(failure.to_string());
        }
    }

    fn tell(&mut self, words: String) {
        // Standard output fails for each figure in the same way.
        if !self.told.contains(&words) {
            self.told.push(words);
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        if !self.failed.is_empty() {
            let failed = format!("commands failed: {}", self.failed.join(", "));
            self.told.push(failed);
        }
        match self.told.is_empty() {
            true => Ok(()),
            false => Err(Failure::Run(self.told.join("; "))),
        }
    }
}

/// Runs a figure, and writes and prints what it found.
fn run_one(one: &Chosen, setting: &Setting<'_>, folder: &Path, troubles: &mut Troubles) {
    let Chosen {
        argument,
        name,
        figure,
    } = one;
    let mut found = match run::run(name, figure, setting) {
        Ok(found) => found,
        Err(error) => return troubles.tell(format!("{name}: {error}")),
    };
    found.command = run::again(argument, setting.size);
    // First: what is not written is lost, and nobody may read what is printed.
    let written = Files::of(folder, name).write(figure, &found);
    if !found.interrupted || !found.points.is_empty() {
        troubles.keep(output::print(&summary(figure, &found)));
    }
    if !found.interrupted && found.gaps.iter().any(|gap| !gap.skipped) {
        troubles.failed.push(name.clone());
    }
    match written {
        Err(failure) => troubles.tell(failure.to_string()),
        Ok(place) if found.interrupted => troubles.tell(interrupted(&place)),
        Ok(Place::Nowhere(path)) => {
            let stays = format!("{name}: no points; {} stays as it was", path.display());
            output::note(&stays);
        }
        Ok(Place::Own | Place::Beside(_)) => {}
    }
}

/// What is told of a figure that was interrupted.
fn interrupted(place: &Place) -> String {
    match place {
        Place::Own => "interrupted: what was measured is kept".to_owned(),
        Place::Beside(path) => format!(
            "interrupted: what was measured is kept in {}; the whole run stays",
            path.display()
        ),
        Place::Nowhere(_) => "interrupted: nothing was measured, and nothing written".to_owned(),
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
