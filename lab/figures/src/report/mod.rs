//! `nuthatch-lab report`: what was found, as one page in HTML that needs nothing else, and in the documents between marks.
//!
//! ```text
//!  figures compiled in, files of `nuthatch-lab figure`
//!      |  gather       each figure with its run, or why it has none; judged by today's statements
//!      v
//!  Section, Entry
//!      |  verdict      a word for each
//!      +-- page, entry     HTML
//!      +-- marks           the parts of a document that are written here
//!           +-- papers     the table of all figures: docs/papers.md
//!           +-- shown      figures by their names: docs/engines.md
//! ```

mod entry;
mod gather;
mod marks;
mod page;
mod papers;
mod shown;
mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use nuthatch_program::{Failure, output};

use crate::found::Found;

use gather::Gathered;
use marks::Part;
use verdict::Word;

pub(crate) use verdict::size;

/// What is reported, and where it is written.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Folder of the results, as `nuthatch-lab figure` wrote it
    #[arg(long, value_name = "FOLDER", default_value = "figures")]
    from: PathBuf,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Also write into this Markdown file, between its marks: the figures that they name, or the table of all. Repeat the
    /// option for each file
    #[arg(long, value_name = "FILE", alias = "papers")]
    into: Vec<PathBuf>,
}

/// Writes the page, and into the documents.
///
/// # Errors
/// A folder that is not there, a file that cannot be written, a document without the marks. Results that cannot be used
/// are an error at the end, when all is written: the page says of each why.
pub fn run(options: &Options) -> Result<(), Failure> {
    let from = options.from.display();
    if !options.from.is_dir() {
        let words = format!("--from {from}: no such folder; `nuthatch-lab figure` makes one");
        return Err(Failure::Usage(words));
    }
    let gathered = gather::gather(&options.from)?;
    let page = page::page(&gathered, Timestamp::now());
    output::save(&options.output, page.as_bytes())?;
    for path in &options.into {
        renew(path, &gathered)?;
    }
    output::print(&summary(&options.output, &gathered))?;
    let unusable = gathered.unusable();
    for (path, reason) in &unusable {
        output::note(&format!("{}: {reason}", path.display()));
    }
    match unusable.len() {
        0 => Ok(()),
        number => Err(Failure::Run(format!(
            "files that could not be used: {number}; the report has all others"
        ))),
    }
}

/// Writes into the document what its marks ask for. A part one of whose figures has nothing to show stays as it is, and a
/// note says so.
fn renew(path: &Path, gathered: &Gathered) -> Result<(), Failure> {
    let named =
        |error: &dyn std::fmt::Display| Failure::run(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    let text = marks::renewed(&text, |part| match part.names.is_empty() {
        true => Ok(Some(papers::tables(gathered))),
        false => figures(part, gathered, path),
    });
    output::save(path, text.map_err(|error| named(&error))?.as_bytes())
}

/// The figures that a part of a document names; nothing if one of them has nothing to show.
fn figures(part: &Part<'_>, gathered: &Gathered, path: &Path) -> Result<Option<String>, String> {
    let mut texts = Vec::new();
    for name in &part.names {
        let entry = gathered
            .find(name)
            .ok_or_else(|| format!("{name}: no figure; `nuthatch-lab figure list` shows all"))?;
        match shown::shown(entry) {
            Ok(text) => texts.push(text),
            Err(reason) => {
                let kept = "what stands there stays";
                output::note(&format!("{}: {name}: {reason}; {kept}", path.display()));
                return Ok(None);
            }
        }
    }
    Ok(Some(texts.join("\n")))
}

/// What is printed: how many figures got which word.
fn summary(page: &Path, gathered: &Gathered) -> String {
    let mut words: BTreeMap<Word, usize> = BTreeMap::new();
    for entry in gathered.entries() {
        *words.entry(Word::of(&entry.state)).or_default() += 1;
    }
    let mut text = format!("{}: figures", page.display());
    for (number, (word, count)) in words.iter().enumerate() {
        let between = if number == 0 { ": " } else { ", " };
        let _ = write!(text, "{between}{count} {word}");
    }
    text.push('\n');
    text
}

/// A moment as a reader wants it.
pub(crate) fn moment(seconds: u64) -> String {
    let time = i64::try_from(seconds).map(Timestamp::from_second);
    match time {
        Ok(Ok(time)) => time.strftime("%-d %B %Y, %H:%M UTC").to_string(),
        _ => "at no known time".to_owned(),
    }
}

/// The versions of the programs of others, as they tell them.
fn versions(found: &Found) -> String {
    let versions: Vec<&str> = found.versions.values().map(String::as_str).collect();
    versions.join(", ")
}

/// How long something took.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_readers() {
        assert_eq!(moment(0), "1 January 1970, 00:00 UTC");
        assert_eq!(moment(u64::MAX), "at no known time");
        assert_eq!(duration(31.4), "31 s");
        assert_eq!(duration(99.6), "2 min");
    }
}
