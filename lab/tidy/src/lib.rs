//! Rules about the source itself that no compiler knows. `cargo test -p nuthatch-tidy` checks the repository by them
//! (`tests/repository.rs`), and each rule's own tests show on a tree made for it that it finds what it is for.
//!
//! * [`orphans`](rules::orphans): each Rust file belongs to a target
//! * [`functions`](rules::functions): no function is longer than a screen
//! * [`orderings`](rules::orderings): an atomic operation that orders other memory names its ordering and its partner
//! * [`unsafes`](rules::unsafes): `unsafe` becomes rarer in each package
//! * [`ceilings`](rules::ceilings): a package is small enough to be read
//! * [`circles`](rules::circles): where imports are to run in one direction, they do
//! * [`links`](rules::links): links in documents and comments lead somewhere
//! * [`paths`](rules::paths): files that documents and comments name exist
//! * [`builds`](rules::builds): the checks share one build
//! * [`text`](rules::text): no work left for later, no tabs, no space at the end of a line, no large file
//!
//! What offended a rule when it was made stands in a list of `allowances/`, with its number. The list is a ratchet: a number
//! may fall and must then be lowered, which `TIDY=shrink cargo test -p nuthatch-tidy` does. (`TIDY=raise` writes the lists as
//! all is now: for a change whose reviewers agree to what grows, and for new names.) Nothing here depends on the
//! folders that packages lie in: they come from `cargo metadata`, and the lists name packages and files within them.

#![forbid(unsafe_code)]

pub mod allowance;
pub mod rules;
mod rust;
mod tree;

use std::fmt;
use std::path::PathBuf;

pub use rust::{Function, Module, Source};
pub use tree::{Package, Target, Tree};

/// What offends a rule, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, from the repository's root.
    pub path: PathBuf,
    /// The line, counted from 1; 0 if it is the whole file.
    pub line: usize,
    /// What is wrong, and what helps.
    pub text: String,
}

impl Fault {
    fn new(path: impl Into<PathBuf>, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.text)
    }
}
