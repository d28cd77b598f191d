//! A package is small enough to be read: a limit for its lines, without blank ones, comments and tests.

use std::collections::BTreeMap;

use crate::Tree;
use crate::allowance::{Found, Limit};

/// The most lines of code of a package.
pub const LIMIT: Limit = Limit {
    most: 6000,
    slack: 500,
    unit: "lines",
};

/// The list of those that may have more.
pub const LIST: &str = "ceilings.txt";

/// The lines of each package.
pub fn found(tree: &Tree) -> BTreeMap<String, Found> {
    let mut found = BTreeMap::new();
    for package in &tree.packages {
        let parts = tree.parts(package);
        let number = parts
            .iter()
            .filter(|part| !part.test)
            .map(|part| part.source.code.len())
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
    use crate::allowance::Allowances;
    use crate::rules::made;

    #[test]
    fn a_large_package_is_found() {
        let code = "const A: u8 = 1;\n".repeat(LIMIT.most + 1);
        let tree = made(&[("src/lib.rs", &code), ("tests/t.rs", &code)]);
        assert_eq!(found(&tree)["p"].number, LIMIT.most + 1);
        assert_eq!(Allowances::default().faults(&found(&tree), LIMIT).len(), 1);
        let comments = format!(
            "{}{}",
            "// a\n\n".repeat(LIMIT.most),
            "const A: u8 = 1;\n".repeat(LIMIT.most)
        );
        let tree = made(&[("src/lib.rs", &comments)]);
        assert!(
            Allowances::default()
                .faults(&found(&tree), LIMIT)
                .is_empty()
        );
    }
}
