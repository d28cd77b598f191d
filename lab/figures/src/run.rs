//! Runs a figure's commands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::command::{self, Programs};
use crate::figure::{Figure, Run, Size};
use crate::found::{FORMAT, Found, Gap, Point, X};
use crate::needs::lacking;
use crate::plan::{Planned, plan};
use crate::read::{Reading, readings};
use crate::statement::judge;

/// What a run is told beside the figure.
pub struct Setting<'s> {
    /// How much is run.
    pub size: Size,
    /// Where programs are.
    pub programs: &'s Programs,
    /// Program, machine and system.
    pub machine: &'s BTreeMap<String, String>,
    /// Set by Ctrl-C.
    pub interrupted: &'s AtomicBool,
    /// Told each command before it runs.
    pub progress: &'s dyn Fn(&str),
}

/// The values of one point, a round each.
struct Rounds {
    series: String,
    x: X,
    modelled: bool,
    values: Vec<f64>,
    ends: Option<(f64, f64)>,
}

/// Runs the figure called `name`. Commands that fail or cannot run leave gaps.
///
/// # Errors
/// In words, if the figure's file is wrong: nothing has been run then.
pub fn run(name: &str, figure: &Figure, setting: &Setting<'_>) -> Result<Found, String> {
    let planned = plan(figure, setting.size, setting.programs)?;
    #[expect(clippy::disallowed_methods, reason = "the file tells the moment")]
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock = Instant::now();
    let mut rounds = Vec::new();
    let mut gaps = Vec::new();
    let (able, unable): (Vec<_>, Vec<_>) = planned
        .iter()
        .map(|one| {
            (
                one,
                lacking(figure, one.run, setting.size, setting.programs),
            )
        })
        .partition(|(_, lacking)| lacking.is_none());
    for (one, reason) in unable {
        note(&mut gaps, one, reason.unwrap_or_default(), true);
    }
    'rounds: for _ in 0..*figure.rounds.of(setting.size) {
        for (one, _) in &able {
            // Relaxed: a flag alone, which the signal's handler sets.
            if setting.interrupted.load(Ordering::Relaxed) {
                break 'rounds;
            }
            (setting.progress)(&command::typed(&one.line));
            let found = command::output(&one.line)
                .and_then(|output| readings(&output, one, setting.programs));
            match found {
                Ok(found) => keep(&mut rounds, found),
                // The command has the signal, too.
                Err(_) if setting.interrupted.load(Ordering::Relaxed) => break 'rounds,
                Err(reason) => note(&mut gaps, one, reason, false),
            }
        }
    }
    let mut found = Found {
        format: FORMAT,
        figure: name.to_owned(),
        source: figure.source.clone(),
        size: setting.size,
        command: again(name, setting.size),
        machine: setting.machine.clone(),
        versions: versions(
            figure,
            able.iter().map(|(one, _)| one.run),
            setting.programs,
        ),
        began: began.map_or(0, |time| time.as_secs()),
        took: clock.elapsed().as_secs_f64(),
        interrupted: setting.interrupted.load(Ordering::Relaxed),
        points: rounds.into_iter().map(point).collect(),
        gaps,
        verdicts: Vec::new(),
    };
    if setting.size != Size::Smoke {
        found.verdicts = judge(figure, &found);
    }
    Ok(found)
}

/// The versions of the programs of others that these runs of a figure need.
fn versions<'f>(
    figure: &'f Figure,
    runs: impl Iterator<Item = &'f Run>,
    programs: &Programs,
) -> BTreeMap<String, String> {
    let needs = runs.map(|run| &run.needs).chain([&figure.needs]);
    let names: BTreeSet<&String> = needs.flat_map(|needs| &needs.programs).collect();
    let known = names
        .into_iter()
        .filter_map(|name| Some((name.clone(), programs.version(name)?)));
    known.collect()
}

/// The command that runs a figure again, by its name or its file.
pub fn again(argument: &str, size: Size) -> String {
    let mut words = vec![
        "nuthatch-lab".to_owned(),
        "figure".to_owned(),
        argument.to_owned(),
    ];
    match size {
        Size::Full => {}
        Size::Quick => words.push("--quick".to_owned()),
        Size::Smoke => words.push("--smoke".to_owned()),
    }
    command::typed(&words)
}

fn note(gaps: &mut Vec<Gap>, planned: &Planned<'_>, reason: String, skipped: bool) {
    let gap = Gap {
        command: command::typed(&planned.line),
        reason,
        skipped,
    };
    // The same in each round is one gap.
    if !gaps.contains(&gap) {
        gaps.push(gap);
    }
}

fn keep(rounds: &mut Vec<Rounds>, found: Vec<Reading>) {
    for reading in found {
        let Reading {
            series,
            x,
            y,
            ends,
            modelled,
        } = reading;
        let same = |one: &&mut Rounds| one.series == series && one.x == x;
        match rounds.iter_mut().find(same) {
            Some(one) => {
                one.values.push(y);
                one.ends = ends.or(one.ends);
            }
            None => rounds.push(Rounds {
                series,
                x,
                modelled,
                values: vec![y],
                ends,
            }),
        }
    }
}

fn point(rounds: Rounds) -> Point {
    let mut values = rounds.values;
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    let (upper, lower) = (values[values.len() / 2], values[(values.len() - 1) / 2]);
    // A single round has the spread that its command measured.
    let (low, high) = match rounds.ends {
        Some(ends) if values.len() == 1 => ends,
        _ => (first, last),
    };
    Point {
        series: rounds.series,
        x: rounds.x,
        y: (upper + lower) / 2.0,
        low,
        high,
        modelled: rounds.modelled,
    }
}
