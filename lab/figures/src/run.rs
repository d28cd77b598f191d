//! Runs a figure's commands.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::command::{self, Programs};
use crate::figure::{Figure, Size};
use crate::found::{FORMAT, Found, Missing, X};
use crate::measured::Measured;
use crate::needs::lacking;
use crate::plan::{Planned, plan};
use crate::read::{promised, readings, warnings};
use crate::statement::judge;

/// What a run is told beside the figure.
pub struct Setting<'s> {
    /// How much is run.
    pub size: Size,
    /// Where programs are.
    pub programs: &'s Programs,
    /// Program, machine and system.
    pub machine: &'s BTreeMap<String, String>,
    /// Set by a signal that asks the program to end.
    pub interrupted: &'s AtomicBool,
    /// Told each command before it runs.
    pub progress: &'s dyn Fn(&str),
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
    let mut measured = Measured::default();
    let mut missing = Vec::new();
    let mut able = Vec::new();
    for one in &planned {
        // A wrong placeholder is found before anything runs.
        let promised = promised(one, setting.programs)?;
        match lacking(figure, one.run, setting.size, setting.programs) {
            Some(reason) => {
                measured.note(one, reason, true);
                missing.extend(because(promised, "it was left out"));
            }
            None => able.push((one, promised)),
        }
    }
    let commands: Vec<&Planned<'_>> = able.iter().map(|(one, _)| *one).collect();
    // First: a long run should not end with a program that does not tell.
    let versions = versions(figure, &commands, setting.programs);
    let outcomes = rounds(
        &commands,
        *figure.rounds.of(setting.size),
        setting,
        &mut measured,
    );
    for ((_, promised), outcome) in able.into_iter().zip(outcomes) {
        match outcome {
            Outcome::Gave => {}
            Outcome::Failed => missing.extend(because(promised, "its command failed")),
            Outcome::Waits => missing.extend(because(promised, "the run was interrupted")),
        }
    }
    let mut found = Found {
        format: FORMAT,
        figure: name.to_owned(),
        source: figure.source.clone(),
        size: setting.size,
        command: again(name, setting.size),
        machine: setting.machine.clone(),
        versions,
        began: began.map_or(0, |time| time.as_secs()),
        took: clock.elapsed().as_secs_f64(),
        interrupted: setting.interrupted.load(Ordering::Relaxed),
        gaps: mem::take(&mut measured.gaps),
        notes: mem::take(&mut measured.notes),
        points: measured.points(&mut missing),
        missing,
        verdicts: Vec::new(),
    };
    if setting.size != Size::Smoke {
        found.verdicts = judge(figure, &found);
    }
    Ok(found)
}

/// What became of a command.
#[derive(Clone, Copy)]
enum Outcome {
    /// It did not run to its end.
    Waits,
    /// It failed in each of its rounds.
    Failed,
    /// It gave points.
    Gave,
}

/// Runs the commands in turn, so many rounds. Returns what became of each.
fn rounds(
    commands: &[&Planned<'_>],
    rounds: usize,
    setting: &Setting<'_>,
    measured: &mut Measured,
) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Waits; commands.len()];
    for _ in 0..rounds {
        for (one, outcome) in commands.iter().zip(&mut outcomes) {
            // Relaxed: a flag alone, which the signal's handler sets before anything ends a command.
            if setting.interrupted.load(Ordering::Relaxed) {
                return outcomes;
            }
            (setting.progress)(&command::typed(&one.line));
            let found = command::output(&one.line).and_then(|output| {
                warnings(&output, &mut measured.notes);
                readings(&output, one, setting.programs)
            });
            match found {
                Ok(found) => {
                    measured.keep(one, found);
                    *outcome = Outcome::Gave;
                }
                // The command was ended, too.
                Err(_) if setting.interrupted.load(Ordering::Relaxed) => return outcomes,
                Err(reason) => {
                    measured.note(one, reason, false);
                    if matches!(outcome, Outcome::Waits) {
                        *outcome = Outcome::Failed;
                    }
                }
            }
        }
    }
    outcomes
}

/// The points that a command was to give, as missing for this reason.
fn because(promised: Vec<(String, X)>, why: &str) -> impl Iterator<Item = Missing> {
    promised.into_iter().map(move |(series, x)| Missing {
        series,
        x,
        why: why.to_owned(),
    })
}

/// The versions of the programs of others that these commands of a figure need.
fn versions(
    figure: &Figure,
    commands: &[&Planned<'_>],
    programs: &Programs,
) -> BTreeMap<String, String> {
    let needs = commands.iter().map(|one| &one.run.needs);
    let needs = needs.chain([&figure.needs]);
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
