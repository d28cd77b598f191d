//! Parsing the names of layouts, evictions, entries and comparisons.

use std::error::Error;
use std::fmt;

/// A name that no layout, eviction or entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, name: &str, known: &[&str]) -> Self {
        Self {
            what,
            name: name.to_owned(),
            known: known.join(", "),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, known } = self;
        write!(out, "no {what} is called {name:?}: there are {known}")
    }
}

impl Error for UnknownName {}

/// The value in `all` with this name.
pub(crate) fn by_name<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    match all.iter().find(|&&one| name_of(one) == name) {
        Some(&one) => Ok(one),
        None => {
            let known: Vec<_> = all.iter().map(|&one| name_of(one)).collect();
            Err(UnknownName::new(what, name, &known))
        }
    }
}
