//! An atomic operation that orders other memory names its ordering and its partner in a comment: in the lines above it, on
//! its own, or where its function is documented. `// Acquire: pairs with the Release in `publish`.`

use std::collections::BTreeMap;

use crate::Tree;
use crate::allowance::{Found, Limit};
use crate::rust::{ORDERINGS, Ordered, Source};

/// None needs no allowance.
pub const LIMIT: Limit = Limit {
    most: 0,
    slack: 0,
    unit: "operations whose ordering and partner no comment names",
};

/// The list of files with operations whose partner is not named.
pub const LIST: &str = "orderings.txt";

/// How far above an operation its comment may be, in lines.
const NEAR: usize = 10;

/// The operations without a named partner, by package and file.
pub fn found(tree: &Tree) -> BTreeMap<String, Found> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for package in &tree.packages {
        for part in tree.parts(package).into_iter().filter(|part| !part.test) {
            for operation in &part.source.orderings {
                if is_named(part.source, operation) {
                    continue;
                }
                let at = found
                    .entry(package.key(&part.path))
                    .or_insert_with(|| Found {
                        number: 0,
                        path: part.path.clone(),
                        line: operation.line,
                    });
                at.number += 1;
            }
        }
    }
    found
}

fn is_named(source: &Source, operation: &Ordered) -> bool {
    let near = operation.line.saturating_sub(NEAR).max(operation.first);
    let above = source.comments.range(near..=operation.line);
    let documentation = source.comments.range(operation.first..=operation.function);
    above
        .chain(documentation)
        .any(|(_, comment)| ORDERINGS.iter().any(|ordering| comment.contains(ordering)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::made;

    fn number(body: &str) -> usize {
        let tree = made(&[("src/lib.rs", body)]);
        found(&tree).values().map(|at| at.number).sum()
    }

    #[test]
    fn an_operation_without_a_partner_is_found() {
        assert_eq!(
            number("fn f() {\n    // Now.\n    x.load(Ordering::Acquire);\n}\n"),
            1
        );
        // The comment of another function.
        assert_eq!(
            number(
                "// Acquire: pairs with `g`.\nfn e() {}\nfn f() {\n    x.load(Ordering::Acquire);\n}\n"
            ),
            1
        );
        let far = format!(
            "fn f() {{\n    // Acquire: pairs with `g`.\n{}    x.load(Ordering::Acquire);\n}}\n",
            "    go();\n".repeat(NEAR)
        );
        assert_eq!(number(&far), 1);
    }

    #[test]
    fn one_with_a_partner_is_not() {
        assert_eq!(
            number(
                "fn f() {\n    // Acquire: pairs with `g`.\n    x\n        .load(Ordering::Acquire);\n}\n"
            ),
            0
        );
        assert_eq!(
            number("fn f() {\n    fence(Ordering::SeqCst); // SeqCst: with `g`\n}\n"),
            0
        );
        assert_eq!(
            number(
                "/// Release: pairs with `g`.\nfn f() {\n    x.store(1, Ordering::Release);\n}\n"
            ),
            0
        );
        assert_eq!(number("fn f() {\n    x.load(Ordering::Relaxed);\n}\n"), 0);
    }
}
