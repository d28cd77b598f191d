//! Tells the program which rivals it has in itself, and which commit it was built from. The latter only in a release build:
//! the figures of others mean nothing, and the tests' programs would be built anew after each commit.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The rivals in process.
const RIVALS: [&str; 4] = ["lru", "moka", "papaya", "quick_cache"];

/// Where their versions are.
const LOCK: &str = "../../Cargo.lock";

/// What else may make a commit's build another one.
const SOURCES: [&str; 2] = ["../../crates", "../../lab"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    let commit = match is_release {
        true => commit().unwrap_or_else(|| "unknown".to_owned()),
        false => "unknown, since this is no release build".to_owned(),
    };
    println!("cargo:rustc-env=COMMIT={commit}");
    println!("cargo:rerun-if-changed={LOCK}");
    let lock = fs::read_to_string(LOCK).unwrap_or_default();
    let rivals = RIVALS.map(|rival| format!("{rival} {}", version(&lock, rival).unwrap_or("?")));
    println!("cargo:rustc-env=RIVALS={}", rivals.join(", "));
}

/// The version in a lock file of the first package of this name.
fn version<'l>(lock: &'l str, package: &str) -> Option<&'l str> {
    let (_, from) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    from.split('"').next()
}

/// The commit of the checkout, with a word behind it if files differ from it.
fn commit() -> Option<String> {
    // It grows at each commit and each change of the branch.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in SOURCES.into_iter().chain([log.as_str()]) {
        // What is not there would make each build a new one.
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ])
}

fn git(words: &[&str]) -> Option<String> {
    let told = Command::new("git").args(words).output().ok()?;
    let told = told.status.success().then_some(told.stdout)?;
    Some(String::from_utf8(told).ok()?.trim().to_owned())
}
