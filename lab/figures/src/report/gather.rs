//! The figures, each with its run, paper by paper.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::figure::{Figure, Size};
use crate::files::is_beside;
use crate::found::{FORMAT, Found};
use crate::statement::judge;
use crate::store;

/// Where figures come from.
#[derive(Clone, Copy)]
pub struct Source {
    /// The folder of their files.
    folder: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What claims what its figures show: a word for a column.
    pub origin: &'static str,
    /// What stands in front of the claim.
    pub says: &'static str,
}

const fn paper(folder: &'static str, heading: &'static str, about: &'static str) -> Source {
    Source {
        folder,
        heading,
        about,
        origin: "paper",
        says: "The paper concludes",
    }
}

/// The sources in the order of the report.
const SOURCES: [Source; 8] = [
    Source {
        folder: "nuthatch",
        heading: "What the README says",
        about: "The product's own claims, each with its measurement.",
        origin: "README",
        says: "The README says",
    },
    Source {
        folder: "engines",
        heading: "The engines",
        about: "The tables of docs/engines.md: all engines side by side, alone and behind a server.",
        origin: "document",
        says: "docs/engines.md says",
    },
    Source {
        folder: "workloads",
        heading: "Published workloads",
        about: "YCSB, Facebook's pools and Twitter's clusters, by their published statistics, on real servers.",
        origin: "statistics",
        says: "What is expected",
    },
    paper(
        "memc3",
        "MemC3",
        "Fan, Andersen, Kaminsky: MemC3: compact and concurrent MemCache with dumber caching and smarter hashing (NSDI 2013).",
    ),
    paper(
        "cphash",
        "CPHash",
        "Metreveli, Zeldovich, Kaashoek: CPHash: a cache-partitioned hash table (PPoPP 2012).",
    ),
    paper(
        "shmemcache",
        "SHMEMCache",
        "Fu, Venkata, Choudhury, Imam, Yu: High-performance key-value store on OpenSHMEM (CCGrid 2017).",
    ),
    paper(
        "blp",
        "Bounded linear probing",
        "Bounded linear probing and probabilistic bubble LRU, for the caches of network appliances (ATC 2020).",
    ),
    paper(
        "linux",
        "Linux' hash tables",
        "Lever: Linux kernel hash table behavior: analysis and improvements (ALS 2000).",
    ),
];

/// The source of the figures in a folder, and its place in the order.
fn source(folder: &str) -> (usize, Source) {
    let place = SOURCES.iter().position(|source| source.folder == folder);
    match place {
        Some(place) => (place, SOURCES[place]),
        None => (SOURCES.len(), paper("", "Others", "")),
    }
}

/// All figures, and the files of none.
pub struct Gathered {
    /// Paper by paper.
    pub sections: Vec<Section>,
    /// Files in the folder that belong to no figure of this program.
    pub strangers: Vec<PathBuf>,
}

/// The figures of a source.
pub struct Section {
    /// The source.
    pub source: Source,
    /// Its figures.
    pub entries: Vec<Entry>,
}

/// A figure and its run.
pub struct Entry {
    /// As `cphash/5`.
    pub name: String,
    /// What its file says.
    pub figure: Figure,
    /// What became of it.
    pub state: State,
}

/// What became of a figure.
pub enum State {
    /// It was run.
    Found(Box<Found>),
    /// There is no file of it.
    NotRun,
    /// It cannot be run, and says why.
    Impossible,
    /// There is, and it cannot be used.
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Gathered {
    /// All figures.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sections.iter().flat_map(|section| &section.entries)
    }

    /// The figure of this name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries().find(|entry| entry.name == name)
    }

    /// The files that cannot be used, and why.
    pub fn unusable(&self) -> Vec<(&Path, &str)> {
        let unusable = self.entries().filter_map(|entry| match &entry.state {
            State::Unusable { path, reason } => Some((path.as_path(), reason.as_str())),
            State::Found(_) | State::NotRun | State::Impossible => None,
        });
        let strangers = self.strangers.iter();
        let strangers =
            strangers.map(|path| (path.as_path(), "of no figure that this program has"));
        unusable.chain(strangers).collect()
    }

    /// The machines on which figures ran, each once, in the order of the figures.
    pub fn machines(&self) -> Vec<&BTreeMap<String, String>> {
        let mut machines = Vec::new();
        for entry in self.entries() {
            if let State::Found(found) = &entry.state
                && !machines.contains(&&found.machine)
            {
                machines.push(&found.machine);
            }
        }
        machines
    }
}

/// The figures of this program, with what the folder has of them.
///
/// # Errors
/// In words: a figure's own file is wrong, or the folder cannot be read.
pub fn gather(folder: &Path) -> Result<Gathered, String> {
    let mut sections: BTreeMap<usize, Section> = BTreeMap::new();
    for (name, figure) in store::all()? {
        let (place, source) = source(name.split('/').next().unwrap_or_default());
        let state = read(folder, &name, &figure);
        let section = sections.entry(place).or_insert_with(|| Section {
            source,
            entries: Vec::new(),
        });
        section.entries.push(Entry {
            name,
            figure,
            state,
        });
    }
    let sections: Vec<Section> = sections.into_values().collect();
    let strangers = strangers(folder, &sections);
    let strangers = strangers.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(Gathered {
        sections,
        strangers,
    })
}

fn read(folder: &Path, name: &str, figure: &Figure) -> State {
    if figure.why.is_some() {
        return State::Impossible;
    }
    let path = folder.join(name).with_added_extension("json");
    let parsed = match fs::read_to_string(&path) {
        Ok(text) => parse(&text, name),
        Err(error) if error.kind() == ErrorKind::NotFound => return State::NotRun,
        Err(error) => Err(error.to_string()),
    };
    match parsed {
        Ok(mut found) => {
            // The statements that the report shows are today's.
            found.verdicts = match found.size {
                Size::Smoke => Vec::new(),
                Size::Quick | Size::Full => judge(figure, &found),
            };
            State::Found(Box::new(found))
        }
        Err(reason) => State::Unusable { path, reason },
    }
}

/// What every format has.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: u32,
}

fn parse(text: &str, name: &str) -> Result<Found, String> {
    let head: Head =
        serde_json::from_str(text).map_err(|error| format!("no result of a figure: {error}"))?;
    if head.format != FORMAT {
        let of = if head.format < FORMAT {
            "an older"
        } else {
            "a newer"
        };
        return Err(format!(
            "of {of} nuthatch-lab: format {}, and this one reads {FORMAT}; run the figure again",
            head.format
        ));
    }
    let found: Found =
        serde_json::from_str(text).map_err(|error| format!("no result of a figure: {error}"))?;
    match found.figure == name {
        true => Ok(found),
        false => Err(format!("of another figure: {}", found.figure)),
    }
}

/// The files of results that no figure has.
fn strangers(folder: &Path, sections: &[Section]) -> std::io::Result<Vec<PathBuf>> {
    let entries = sections.iter().flat_map(|section| &section.entries);
    let known: Vec<PathBuf> = entries
        .map(|entry| folder.join(&entry.name).with_added_extension("json"))
        .collect();
    let mut strangers = Vec::new();
    for paper in fs::read_dir(folder)? {
        let paper = paper?.path();
        if !paper.is_dir() {
            continue;
        }
        for file in fs::read_dir(paper)? {
            let file = file?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "json")
                && !known.contains(&file)
                && !is_beside(&file)
            {
                strangers.push(file);
            }
        }
    }
    strangers.sort();
    Ok(strangers)
}
