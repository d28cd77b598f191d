//! Recordings that are kept, so that one is made once for all figures that need it.
//!
//! A file's name says all that decides what is in it: the parameters, and which program was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nuthatch_program::{Failure, output};

use crate::record::{Wanted, record};
use crate::recording::Recording;

/// The files that are kept: the oldest ones go.
const KEPT: usize = 32;

/// The recording of `wanted` that is kept, or a new one, which is kept from now on.
pub fn recording(wanted: &Wanted) -> Result<Recording, Failure> {
    let Some(folder) = folder() else {
        return record(wanted);
    };
    let path = folder.join(name(wanted, &program()?));
    // What is broken or of an older program is made anew.
    if let Ok(recording) = Recording::read(&path) {
        return Ok(recording);
    }
    let recording = record(wanted)?;
    if let Err(failure) = keep(&recording, &folder, &path) {
        output::note(&format!("not kept: {failure}"));
    }
    Ok(recording)
}

/// The user's folder for what can be made anew.
fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")));
    Some(cache?.join("nuthatch-lab"))
}

/// This build of this program: its length, and when it was written.
fn program() -> Result<String, Failure> {
    let file = fs::metadata(std::env::current_exe()?)?;
    let written = file.modified()?.duration_since(UNIX_EPOCH);
    let nanos = written.map_or(0, |written| written.as_nanos());
    Ok(format!("{:x}-{nanos:x}", file.len()))
}

fn name(wanted: &Wanted, program: &str) -> String {
    let Wanted {
        engine,
        partitions,
        plan,
    } = wanted;
    format!(
        "{}-{partitions}-{}-{}-{}-{}x{}-{program}.json",
        engine.name(),
        plan.working_set,
        plan.insert_ratio,
        plan.batch,
        plan.pieces,
        plan.piece
    )
}

/// Writes a recording, and removes the oldest ones.
fn keep(recording: &Recording, folder: &Path, path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    // Another process may write the same: each writes its own file, and the last one stays.
    let unfinished = path.with_extension(std::process::id().to_string());
    recording.write(&unfinished)?;
    fs::rename(&unfinished, path)?;
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        files.push((file.metadata()?.modified()?, file.path()));
    }
    files.sort();
    for (_, oldest) in files.iter().rev().skip(KEPT) {
        fs::remove_file(oldest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorded;
    use crate::recorded::Plan;
    use crate::recording::tests::{piece, recording};

    #[test]
    fn a_name_has_every_parameter() {
        let wanted = |partitions, pieces| Wanted {
            engine: Recorded::Cphash,
            partitions,
            plan: Plan {
                working_set: 1 << 20,
                insert_ratio: 0.3,
                batch: 1000,
                piece: 500,
                pieces,
            },
        };
        let first = name(&wanted(80, 4), "a");
        assert_eq!(first, "cphash-80-1048576-0.3-1000-4x500-a.json");
        for other in [name(&wanted(40, 4), "a"), name(&wanted(80, 5), "a")] {
            assert_ne!(first, other);
        }
        assert_ne!(first, name(&wanted(80, 4), "b"));
    }

    #[test]
    fn what_is_kept_comes_back_and_the_oldest_go() {
        let folder = std::env::temp_dir().join(format!("nuthatch-kept-{}", std::process::id()));
        let whole = recording(&[], vec![piece(vec![], vec![])]);
        for number in 0..KEPT + 3 {
            keep(&whole, &folder, &folder.join(format!("{number}.json"))).unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), KEPT);
        let last = folder.join(format!("{}.json", KEPT + 2));
        assert_eq!(Recording::read(&last).unwrap(), whole);
        fs::remove_dir_all(&folder).unwrap();
    }
}
