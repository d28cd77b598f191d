//! `unsafe` becomes rarer in each package: blocks, functions and implementations, outside of tests.

use std::collections::BTreeMap;

use crate::Tree;
use crate::allowance::{Found, Limit};

/// None needs no allowance.
pub const LIMIT: Limit = Limit {
    most: 0,
    slack: 0,
    unit: "times `unsafe`",
};

/// The list of packages that have some.
pub const LIST: &str = "unsafe.txt";

/// How often each package says `unsafe`.
pub fn found(tree: &Tree) -> BTreeMap<String, Found> {
    let mut found = BTreeMap::new();
    for package in &tree.packages {
        let parts = tree.parts(package);
        let number = parts
            .iter()
            .filter(|part| !part.test)
            .map(|part| part.source.unsafes.len())
            .sum();
        let path = package.folder.join("Cargo.toml");
        found.insert(
            package.name.clone(),
            Found {
                number,
                path,
                line: 0,
            },
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::made;

    #[test]
    fn each_is_counted() {
        let tree = made(&[
            (
                "src/lib.rs",
                "unsafe impl Send for A {}\n#[unsafe(no_mangle)]\nfn f() {\n    unsafe { g() }\n}\n",
            ),
            ("tests/t.rs", "fn f() { unsafe {} }\n"),
        ]);
        assert_eq!(found(&tree)["p"].number, 2);
    }
}
