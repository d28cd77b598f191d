//! A function is no longer than a screen. Blank lines and comments are not counted, so a reason costs nothing.

use std::collections::BTreeMap;

use crate::Tree;
use crate::allowance::{Found, Limit};

/// The most lines of code of a function.
pub const LIMIT: Limit = Limit {
    most: 70,
    slack: 0,
    unit: "lines",
};

/// The list of what is longer.
pub const LIST: &str = "functions.txt";

/// The long functions, by package, file and name. Those of one name in one file count together.
pub fn found(tree: &Tree) -> BTreeMap<String, Found> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for package in &tree.packages {
        for part in tree.parts(package) {
            // Another package's file, which a test borrows.
            if !part.path.starts_with(&package.folder) {
                continue;
            }
            for function in part
                .source
                .functions
                .iter()
                .filter(|function| function.lines > LIMIT.most)
            {
                let key = format!("{} {}", package.key(&part.path), function.name);
                let at = found.entry(key).or_insert_with(|| Found {
                    number: 0,
                    path: part.path.clone(),
                    line: function.line,
                });
                at.number += function.lines;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::made;

    #[test]
    fn a_long_function_is_found_and_a_long_comment_is_not() {
        let long = format!("fn long() {{\n{}}}\n", "    go();\n".repeat(LIMIT.most - 1));
        let short = format!(
            "fn short() {{\n{}{}}}\n",
            "    go();\n".repeat(LIMIT.most - 2),
            "    // why\n\n".repeat(9)
        );
        let tree = made(&[("src/lib.rs", &format!("{short}{long}"))]);
        let found = found(&tree);
        assert_eq!(found.len(), 1);
        let at = &found["p src/lib.rs long"];
        assert_eq!((at.number, at.line), (LIMIT.most + 1, LIMIT.most + 19));
    }
}
