//! The repository obeys each rule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs};

use nuthatch_tidy::allowance::{Allowances, Change, Found, Limit};
use nuthatch_tidy::{Fault, Tree, rules};

/// Where git does not know what is part of the repository, as in a source tarball, nothing is checked.
static REPOSITORY: LazyLock<Option<Tree>> =
    LazyLock::new(|| Tree::of_repository(Path::new(FOLDER)).expect("cargo metadata and the files"));

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

#[track_caller]
fn assert_clean(faults: &[Fault]) {
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(said.is_empty(), "\n{}\n", said.join("\n"));
}

/// Checks what was found against a list, or writes that anew: `TIDY=shrink`, `TIDY=raise`.
#[track_caller]
fn assert_allowed(list: &str, limit: Limit, found: &BTreeMap<String, Found>) {
    let path: PathBuf = [FOLDER, "allowances", list].iter().collect();
    let text = fs::read_to_string(&path).expect("the list");
    let allowances = Allowances::read(&Path::new("lab/tidy/allowances").join(list), &text);
    let change = match env::var("TIDY").as_deref() {
        Ok("shrink") => Change::Shrink,
        Ok("raise") => Change::Raise,
        _ => return assert_clean(&allowances.faults(found, limit)),
    };
    let changed = allowances.changed(found, limit, change);
    fs::write(path, changed).expect("the list can be written");
}

#[test]
fn each_rust_file_belongs_to_a_target() {
    if let Some(tree) = &*REPOSITORY {
        assert!(tree.files.len() > 500 && tree.packages.len() > 20);
        assert_clean(&rules::orphans::faults(tree));
    }
}

#[test]
fn functions_are_short() {
    if let Some(tree) = &*REPOSITORY {
        use rules::functions::{LIMIT, LIST, found};
        assert_allowed(LIST, LIMIT, &found(tree));
    }
}

#[test]
fn orderings_name_their_partners() {
    if let Some(tree) = &*REPOSITORY {
        use rules::orderings::{LIMIT, LIST, found};
        assert_allowed(LIST, LIMIT, &found(tree));
    }
}

#[test]
fn unsafe_becomes_rarer() {
    if let Some(tree) = &*REPOSITORY {
        use rules::unsafes::{LIMIT, LIST, found};
        assert_allowed(LIST, LIMIT, &found(tree));
    }
}

#[test]
fn packages_are_small() {
    if let Some(tree) = &*REPOSITORY {
        use rules::ceilings::{LIMIT, LIST, found};
        assert_allowed(LIST, LIMIT, &found(tree));
    }
}

#[test]
fn imports_run_in_one_direction() {
    if let Some(tree) = &*REPOSITORY {
        for name in rules::circles::WITHOUT {
            assert!(tree.packages.iter().any(|package| package.name == *name));
        }
        assert_clean(&rules::circles::faults(tree));
    }
}

#[test]
fn links_lead_somewhere() {
    if let Some(tree) = &*REPOSITORY {
        assert_clean(&rules::links::faults(tree));
    }
}

#[test]
fn named_files_exist() {
    if let Some(tree) = &*REPOSITORY {
        assert_clean(&rules::paths::faults(tree));
    }
}

#[test]
fn checks_share_one_build() {
    if let Some(tree) = &*REPOSITORY {
        assert_clean(&rules::builds::faults(tree));
    }
}

#[test]
fn texts_are_clean() {
    if let Some(tree) = &*REPOSITORY {
        assert_clean(&rules::text::faults(tree));
    }
}
