//! compile RUSTC WORD...: what compiles our crates for the checks. scripts/check-env.sh builds it.
//!
//! Clippy's driver is rustc with more lints; and rustdoc documents what has been compiled, private items too, from the
//! same libraries. So neither has a build of its own. What both of them say cargo keeps and repeats:
//! scripts/check-lints.sh.
//!
//! (Not a shell script: a shell drops variables like CARGO_BIN_EXE_nuthatch-lab. Nor one in Python, whose start 300 times
//! is half a minute on some machines.)

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{self, Command};

/// The exit code of a command that a signal ended, or that could not be started.
const FAILED: i32 = 101;

fn main() {
    let words: Vec<OsString> = env::args_os().skip(2).collect();
    let mut lint = Command::new("clippy-driver");
    lint.args(&words);
    if words.iter().any(|word| word == "staticlib") {
        // For scripts/install.sh.
        lint.args(["--print", "native-static-libs"]);
    }
    let mut status = run(lint);
    if status == 0 && is_library_or_program(&words) {
        status = document(&words);
    }
    process::exit(status);
}

/// Tests, build scripts, and what is asked of the compiler itself, are not documented.
fn is_library_or_program(words: &[OsString]) -> bool {
    let begins = |start: &str| words.iter().any(|word| starts(word, start));
    let name = words
        .iter()
        .skip_while(|word| *word != "--crate-name")
        .nth(1);
    !begins("--test") && !begins("--print") && name.is_some_and(|name| name != "build_script_build")
}

/// Only what is wrong with the documentation matters: the pages, which lie beside the library for a moment, do not.
fn document(words: &[OsString]) -> i32 {
    let mut document = Command::new("rustdoc");
    document.args([
        "--document-private-items",
        "-A",
        "rustdoc::private_intra_doc_links",
    ]);
    let mut pages = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--out-dir" {
            pages = words
                .next()
                .map(|out| Path::new(out).join(format!("pages-{}", process::id())));
        } else if word == "-l" {
            // What is linked.
            words.next();
        } else if !starts(word, "--emit=") {
            document.arg(word);
        }
    }
    let Some(pages) = pages else {
        eprintln!("compile: no --out-dir");
        return FAILED;
    };
    document.arg("--out-dir").arg(&pages);
    let status = run(document);
    let _ = fs::remove_dir_all(&pages);
    status
}

fn starts(word: &OsStr, start: &str) -> bool {
    word.as_encoded_bytes().starts_with(start.as_bytes())
}

/// Runs a command to its end.
fn run(mut command: Command) -> i32 {
    match command.status() {
        Ok(status) => status.code().unwrap_or(FAILED),
        Err(error) => {
            eprintln!("{}: {error}", command.get_program().display());
            FAILED
        }
    }
}
