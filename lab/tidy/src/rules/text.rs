//! No work that is left for later, no tab and no space at the end of a line in what people write, and no large file.

use std::path::Path;

use crate::{Fault, Tree};

/// The most bytes of a file.
pub const SIZE: usize = 1 << 20;

/// Words that say that something is not finished. (In two parts, so that this is none of them.)
const LATER: [&str; 3] = [
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("X", "XX"),
];

/// Endings of what people write.
const WRITTEN: [&str; 13] = [
    "md", "rs", "sh", "toml", "yml", "py", "c", "h", "js", "php", "rb", "java", "service",
];

/// Files whose tables have tabs between their columns.
pub const TABS: &[&str] = &["tests/clients/test_redis.py"];

/// What a text must not have.
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, bytes) in &tree.files {
        if bytes.len() > SIZE {
            faults.push(Fault::new(
                path,
                0,
                format!("has {} bytes; at most {SIZE}", bytes.len()),
            ));
        }
        let is_written = path
            .extension()
            .is_some_and(|is| WRITTEN.iter().any(|written| is == *written));
        if let Some(text) = tree.text(path).filter(|_| is_written) {
            for (line, text) in (1..).zip(text.lines()) {
                faults.extend(of_line(path, text).map(|why| Fault::new(path, line, why)));
            }
        }
    }
    faults
}

fn of_line(path: &Path, line: &str) -> Option<String> {
    if line.ends_with([' ', '\t', '\r']) {
        return Some("ends with white space".into());
    }
    if line.contains('\t') && !TABS.iter().any(|tabs| path == Path::new(tabs)) {
        return Some("has a tab".into());
    }
    let mut words = line.split(|letter: char| !letter.is_alphanumeric());
    let later = words.find(|word| LATER.contains(word))?;
    Some(format!(
        "{later}: do it, or say in docs/ that it is not done, and why"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{made, said};

    #[test]
    fn each_is_found() {
        let later = format!(
            "// {}: later\n// {0}S {}{2} mktemp\n",
            LATER[1], LATER[2], LATER[2]
        );
        let tree = made(&[
            ("src/lib.rs", &later),
            ("a.md", "a \nb\tc\n"),
            ("Makefile", "a:\n\tb\n"),
            ("large", &"x".repeat(SIZE + 1)),
        ]);
        let found = said(faults(&tree));
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "a.md:1: ends with white space");
        assert_eq!(found[1], "a.md:2: has a tab");
        assert_eq!(found[2], "large: has 1048577 bytes; at most 1048576");
        assert!(found[3].starts_with("src/lib.rs:1: "));
    }
}
