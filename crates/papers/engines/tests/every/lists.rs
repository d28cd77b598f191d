//! Lists that name every engine, or the crate of each, and that no compiler reads: those of the long checks, of the
//! fuzzer, and of what is optimised in tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use nuthatch_engines::EngineName;

/// A file or folder, from the repository's root.
fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// The words of a file. What separates words in shell and TOML belongs to none.
fn words(path: &str) -> Vec<String> {
    let text = fs::read_to_string(at(path)).unwrap_or_default();
    let text = text.replace(":-", " ");
    let is_between = |c: char| c.is_whitespace() || ";{}()=\"".contains(c);
    let words = text.split(is_between).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The engines without their variants, which are checked where the engine is: `chained`, not `chained-global`.
fn engines() -> BTreeSet<String> {
    let names = EngineName::value_variants().iter().map(|name| name.name());
    names
        .map(|name| name.split('-').next().unwrap_or_default().to_owned())
        .collect()
}

/// The crates of papers, but for this one.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(at("crates/papers")).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name != "engines")
        .map(|name| format!("nuthatch-{name}"))
        .collect()
}

/// The words that a file should have in a row, if it has not.
fn missing(path: &str, wanted: &str) -> Option<String> {
    let words = words(path);
    let wanted_words: Vec<&str> = wanted.split(' ').collect();
    let mut rows = words.windows(wanted_words.len());
    let has = rows.any(|row| {
        row.iter()
            .zip(&wanted_words)
            .all(|(word, wanted)| word == wanted)
    });
    (!has).then(|| format!("{path}: {wanted}"))
}

/// Class of fault: an engine that is left out of long checks, which nobody notices.
#[test]
fn long_checks_include_every_engine() {
    let mut lacks = Vec::new();
    for engine in &engines() {
        lacks.extend(missing(&format!("lab/check/tests/{engine}.rs"), "suite!"));
        lacks.extend(missing("scripts/tsan.sh", &format!("--test {engine}")));
        lacks.extend(missing("scripts/soak.sh", engine));
        lacks.extend(missing("scripts/test-clients.sh", engine));
        lacks.extend(missing("fuzz/Cargo.toml", &format!("name {engine}")));
    }
    for package in &crates() {
        lacks.extend(missing("scripts/tsan.sh", &format!("-p {package}")));
        lacks.extend(missing("scripts/aarch64.sh", &format!("-p {package}")));
        let optimised = |profile| format!("[profile.{profile}.package.{package}]");
        lacks.extend(missing("Cargo.toml", &optimised("dev")));
        lacks.extend(missing("fuzz/Cargo.toml", &optimised("release")));
    }
    assert!(lacks.is_empty(), "they lack\n{}\n", lacks.join("\n"));
}
