//! The files of a figure's result, and which of them a new run may replace.
//!
//! A result that took hours is worth more than one of seconds: a run replaces what was found by one of its own size or of
//! a smaller one. A run that was interrupted does not replace a whole one.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nuthatch_program::output::Output;
use nuthatch_program::{Failure, output};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::draw;
use crate::figure::{Figure, Size};
use crate::found::Found;
use crate::report::{moment, size};

/// Stands behind the name of a run that was interrupted, where there is a whole one.
const BESIDE: &str = "interrupted.";

/// True if this file is such a run's.
pub fn is_beside(path: &Path) -> bool {
    let name = path.file_stem().and_then(|stem| stem.to_str());
    name.is_some_and(|name| format!("{name}.").ends_with(&format!(".{BESIDE}")))
}

/// The files of a figure's result.
pub struct Files {
    /// Their path without its end.
    base: PathBuf,
}

/// Where a result was written.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// In the figure's own files.
    Own,
    /// In this one and its like, since the figure's own have a whole run.
    Beside(PathBuf),
    /// Nowhere: it has no points. These are the figure's own, which stay.
    Nowhere(PathBuf),
}

/// What decides whether a result may be replaced.
#[derive(Deserialize)]
struct Kept {
    size: Size,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    points: Vec<IgnoredAny>,
}

impl Files {
    /// Those of the figure of this name.
    pub fn of(folder: &Path, name: &str) -> Self {
        Self {
            base: folder.join(name),
        }
    }

    fn path(&self, end: &str) -> PathBuf {
        self.base.with_added_extension(end)
    }

    /// Before a run: refuses to replace the result of a larger one.
    ///
    /// # Errors
    /// Of the command line: there is one.
    pub fn refuse_smaller(&self, wanted: Size) -> Result<(), Failure> {
        match self.kept() {
            Some(kept) if kept.size > wanted => Err(Failure::Usage(format!(
                "{} has a {} run, which a {} run does not replace; --output names another folder",
                self.path("json").display(),
                size(kept.size),
                size(wanted)
            ))),
            _ => Ok(()),
        }
    }

    /// Before a run: makes the folder, and looks whether a file can be made in it.
    ///
    /// # Errors
    /// Of the command line: it names no such folder.
    pub fn prepare(&self) -> Result<(), Failure> {
        if let Some(parent) = self.base.parent() {
            let made = fs::create_dir_all(parent);
            made.map_err(|error| refused(&format!("{}: {error}", parent.display())))?;
        }
        // Dropped, it never appears.
        let opened = Output::open(Some(&self.path("json")));
        opened.map_err(|failure| refused(&failure)).map(drop)
    }

    /// Writes a run's result, unless that would destroy a better one.
    ///
    /// # Errors
    /// Those of the file system, and of the drawing. What was drawn of an older result is gone then.
    pub fn write(&self, figure: &Figure, found: &Found) -> Result<Place, Failure> {
        let own = || self.path("json");
        let kept = self.kept();
        match kept {
            _ if found.points.is_empty() && found.interrupted => Ok(Place::Nowhere(own())),
            Some(_) if found.points.is_empty() => Ok(Place::Nowhere(own())),
            Some(kept) if found.interrupted && !kept.interrupted => {
                let path = self.write_as(BESIDE, figure, found)?;
                Ok(Place::Beside(path))
            }
            _ => self.write_as("", figure, found).map(|_| Place::Own),
        }
    }

    /// The result that is there, if it has points.
    fn kept(&self) -> Option<Kept> {
        let path = self.path("json");
        // Not a device, which may have no end.
        let is_file = fs::metadata(&path).is_ok_and(|there| there.is_file());
        let text = is_file.then(|| fs::read_to_string(&path).ok()).flatten()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (!kept.points.is_empty()).then_some(kept)
    }

    /// Writes the files. Returns that of the result.
    fn write_as(&self, infix: &str, figure: &Figure, found: &Found) -> Result<PathBuf, Failure> {
        let path = |end: &str| self.path(&format!("{infix}{end}"));
        let json = serde_json::to_vec_pretty(found).map_err(Failure::run)?;
        output::save(&path("json"), &json)?;
        let table = table(found).map(Some);
        let table = replace(&path("csv"), table);
        let drawn = draw::svg(figure, found).map(|svg| svg.map(String::into_bytes));
        let drawn = drawn.map_err(|error| Failure::run(format!("{}: {error}", found.figure)));
        table.and(replace(&path("svg"), drawn))?;
        Ok(path("json"))
    }
}

fn refused(why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("--output: {why}"))
}

/// Writes what there is. If there is nothing, or it cannot be written, an older file goes: it is of another run.
fn replace(path: &Path, content: Result<Option<Vec<u8>>, Failure>) -> Result<(), Failure> {
    let outcome = match content {
        Ok(Some(bytes)) => match output::save(path, &bytes) {
            Ok(()) => return Ok(()),
            Err(failure) => Err(failure),
        },
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            outcome.and(Err(Failure::run(format!("{}: {error}", path.display()))))
        }
        _ => outcome,
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
