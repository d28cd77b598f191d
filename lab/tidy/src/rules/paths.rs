//! Files that documents, comments, scripts and settings name exist: a map that cannot rot.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Fault, Tree};

/// What tells of the past, where files were elsewhere.
pub const HISTORY: &[&str] = &["CHANGELOG.md", "docs/notebook.md"];

/// What is made while something is built, or is only an example.
pub const MADE: &[&str] = &["fuzz/artifacts"];

/// Endings of files that a person writes.
const WRITTEN: [&str; 11] = [
    "md", "rs", "sh", "toml", "yml", "py", "c", "h", "service", "socket", "in",
];

/// The names of files that do not exist: what begins with a folder of the root, a `/` and more.
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let folders: BTreeSet<&str> = tree
        .files
        .keys()
        .filter(|path| path.components().count() > 1)
        .filter_map(|path| path.iter().next()?.to_str())
        .chain(["src"])
        .collect();
    let mut faults = Vec::new();
    for (path, text) in tree.texts() {
        let is_written = path.file_name().is_some_and(|name| name == "Makefile")
            || path
                .extension()
                .is_some_and(|is| WRITTEN.iter().any(|written| is == *written));
        if !is_written || HISTORY.iter().any(|history| path == Path::new(history)) {
            continue;
        }
        let mut judge = |line, text| {
            for named in missing(tree, path, names(text, &folders)) {
                faults.push(Fault::new(path, line, format!("`{named}` does not exist")));
            }
        };
        match tree.sources().get(path) {
            // What the code itself names, its compiler or its test looks for.
            Some(source) => source
                .comments
                .iter()
                .for_each(|(&line, text)| judge(line, text)),
            None => (1..)
                .zip(text.lines())
                .for_each(|(line, text)| judge(line, text)),
        }
    }
    faults
}

/// All that looks like a path from the root in a line.
fn names<'a>(line: &'a str, folders: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let mut found = Vec::new();
    // `<` and the like stand for a name: what has one is a pattern.
    for word in line.split(|letter: char| !is_part(letter) && !"*{}<>$~@:".contains(letter)) {
        let word = word.trim_end_matches(['.', ':']);
        let path = word.split_once(':').map_or(word, |(path, _)| path);
        let Some((first, rest)) = path.split_once('/') else {
            continue;
        };
        if folders.contains(first) && !rest.is_empty() && path.chars().all(is_part) {
            found.push(path.trim_end_matches('/'));
        }
    }
    found
}

/// Those names of a line that exist neither from the root, nor in a folder that the file is in (a package's tests say
/// `tests/`), nor in a package that the line names (a map's table says `src/` beside it).
fn missing<'a>(tree: &Tree, from: &Path, names: Vec<&'a str>) -> Vec<&'a str> {
    // Modules are often named without the ending.
    let exists = |path: &Path| tree.exists(path) || tree.exists(&path.with_extension("rs"));
    let packages: Vec<&Path> = tree
        .packages
        .iter()
        .map(|package| package.folder.as_path())
        .filter(|folder| names.iter().any(|named| Path::new(named) == *folder))
        .collect();
    let is_there = |named: &str| {
        let path = Path::new(named);
        let around = from.ancestors().skip(1);
        MADE.iter().any(|made| path.starts_with(made))
            || (path.starts_with("src") && packages.is_empty())
            || around
                .chain(packages.iter().copied())
                .any(|folder| exists(&folder.join(path)))
    };
    names
        .iter()
        .copied()
        .filter(|named| !is_there(named))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Package;
    use crate::rules::{made, said};

    #[test]
    fn what_does_not_exist_is_found() {
        let mut tree = made(&[
            (
                "README.md",
                "See `docs/a.md:3`, docs/gone.md. And https://a.b/docs/x, docs/*.rs, docs/NAME{a}, src/x.rs\n",
            ),
            ("docs/a.md", "| `lab/x` | `src/y.rs` | `src/z.rs` |\n"),
            (
                "lab/x/src/x.rs",
                "// lab/x/src/y and tests/t.rs\nconst NONE: &str = \"docs/none\";\n",
            ),
            ("lab/x/src/y.rs", "// As in lab/y.\n"),
            ("lab/x/tests/t.rs", ""),
            ("tests/t.rs", ""),
        ]);
        tree.packages.push(Package {
            name: "x".into(),
            folder: "lab/x".into(),
            targets: Vec::new(),
        });
        let expected = [
            "README.md:1: `docs/gone.md` does not exist",
            "docs/a.md:1: `src/z.rs` does not exist",
            "lab/x/src/y.rs:1: `lab/y` does not exist",
        ];
        assert_eq!(said(faults(&tree)), expected);
    }
}
