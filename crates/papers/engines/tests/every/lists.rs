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

/// What a file should have in a row, and has not.
fn missing<'w>(path: &str, wanted: impl IntoIterator<Item = [&'w str; 2]>) -> Vec<String> {
    let words = words(path);
    let lacks = |wanted: &[&str; 2]| {
        let wanted: Vec<_> = wanted.iter().filter(|word| !word.is_empty()).collect();
        !words
            .windows(wanted.len())
            .any(|words| words.iter().eq(wanted.iter().copied()))
    };
    let wanted = wanted.into_iter().filter(lacks);
    wanted
        .map(|words| format!("{path}: {}", words.join(" ")))
        .collect()
}

/// Class of fault: an engine that is left out of long checks, which nobody notices.
#[test]
fn long_checks_include_every_engine() {
    let mut lacks = Vec::new();
    for engine in &engines() {
        let suite = format!("lab/check/tests/{engine}.rs");
        lacks.extend(missing(&suite, [["suite!", ""]]));
        lacks.extend(missing("scripts/tsan.sh", [["--test", engine]]));
        lacks.extend(missing("scripts/soak.sh", [[engine, ""]]));
        lacks.extend(missing("scripts/test-clients.sh", [[engine, ""]]));
        lacks.extend(missing("fuzz/Cargo.toml", [["name", engine]]));
    }
    for package in &crates() {
        let profile = |kind| format!("[profile.{kind}.package.{package}]");
        lacks.extend(missing("scripts/tsan.sh", [["-p", package]]));
        lacks.extend(missing("scripts/aarch64.sh", [["-p", package]]));
        lacks.extend(missing("Cargo.toml", [[profile("dev").as_str(), ""]]));
        lacks.extend(missing(
            "fuzz/Cargo.toml",
            [[profile("release").as_str(), ""]],
        ));
    }
    assert!(lacks.is_empty(), "\n{}\n", lacks.join("\n"));
}
