//! Each Rust file belongs to a target: what no `mod` declares is compiled by nobody.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::{Fault, Tree};

/// What is compiled by itself, by a script.
pub const ALONE: &[&str] = &["scripts/compile.rs"];

/// The Rust files that no target has.
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let sources = tree.sources();
    let mut known: BTreeSet<PathBuf> = ALONE.iter().map(PathBuf::from).collect();
    for package in &tree.packages {
        known.extend(tree.parts(package).into_iter().map(|part| part.path));
    }
    let mut faults = Vec::new();
    for (path, source) in sources {
        if let Some(error) = &source.error {
            faults.push(Fault::new(path, 0, format!("cannot be read: {error}")));
        } else if !known.contains(path) {
            faults.push(Fault::new(path, 0, "no `mod` declares this file"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{made, said};

    #[test]
    fn what_nothing_declares_is_found() {
        let tree = made(&[
            (
                "src/lib.rs",
                "mod a;\n#[cfg(test)]\nmod tests;\ninclude!(\"table.rs\");\n",
            ),
            ("src/a.rs", "mod b { mod c; }\n"),
            ("src/a/b/c.rs", ""),
            ("src/tests.rs", ""),
            ("src/table.rs", ""),
            ("src/a/mod.rs", "mod gone;\n"),
            ("src/security/mod.rs", ""),
            (
                "tests/wire.rs",
                "#[path = \"common/mod.rs\"]\nmod common;\n",
            ),
            ("tests/common/mod.rs", "mod client;\n"),
            ("tests/common/client.rs", ""),
            ("tests/lost/mod.rs", ""),
        ]);
        let found = ["src/security/mod.rs", "tests/lost/mod.rs"]
            .map(|path| format!("{path}: no `mod` declares this file"));
        assert_eq!(said(faults(&tree)), found);
    }

    #[test]
    fn what_is_no_rust_is_found() {
        let tree = made(&[("src/lib.rs", "fn f() {")]);
        assert!(said(faults(&tree))[0].starts_with("src/lib.rs: cannot be read"));
    }
}
