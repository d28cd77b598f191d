//! The rules: each gets a repository and says what offends it.

pub mod builds;
pub mod ceilings;
pub mod circles;
pub mod functions;
pub mod links;
pub mod orderings;
pub mod orphans;
pub mod paths;
pub mod text;
pub mod unsafes;

/// A tree for a rule's own test: files with their text, all in one package `p` at the root, with a library, a program
/// and the tests that there are.
#[cfg(test)]
fn made(files: &[(&str, &str)]) -> crate::Tree {
    let mut tree = crate::Tree::default();
    let mut package = crate::Package {
        name: "p".into(),
        folder: "".into(),
        targets: Vec::new(),
    };
    for &(path, text) in files {
        tree.files.insert(path.into(), text.into());
        let test =
            path.starts_with("tests/") && path.matches('/').count() == 1 && path.ends_with(".rs");
        if test || ["src/lib.rs", "src/main.rs"].contains(&path) {
            let path = path.into();
            package.targets.push(crate::Target { path, test });
        }
    }
    tree.packages.push(package);
    tree
}

/// What a rule says, as text.
#[cfg(test)]
fn said(faults: Vec<crate::Fault>) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
