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

/// Only what is wrong with the documentation matters.
fn document(words: &[OsString]) -> i32 {
    let pages = env::temp_dir().join(format!("nuthatch-pages-{}", process::id()));
    let mut document = Command::new("rustdoc");
    document.args([
        "--document-private-items",
        "-A",
        "rustdoc::private_intra_doc_links",
    ]);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // What comes out, and what is linked.
        if word == "--out-dir" || word == "-l" {
            words.next();
        } else if !starts(word, "--emit=") {
            document.arg(word);
        }
    }
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
