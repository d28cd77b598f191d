//! Reading the words of a command line.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{Command, FromArgMatches};

use crate::{Failure, output};

/// Parses the words of a command line, the program's name first. Ends the process after an error of these words, the
/// help or the version. Errors: the help or the version could not be written.
pub fn parse<C: FromArgMatches>(
    definition: Command,
    words: impl IntoIterator<Item = OsString>,
) -> Result<C, Failure> {
    parse_or(definition, words, |_| None)
}

/// The same, but `explain` may have better words for an error.
pub fn parse_or<C: FromArgMatches>(
    definition: Command,
    words: impl IntoIterator<Item = OsString>,
    explain: impl Fn(&clap::Error) -> Option<Failure>,
) -> Result<C, Failure> {
    let matches = definition.try_get_matches_from(words);
    let message = match matches.and_then(|matches| C::from_arg_matches(&matches)) {
        Ok(line) => return Ok(line),
        Err(error) if let Some(failure) = explain(&error) => return Err(failure),
        Err(error) if error.use_stderr() => error.exit(),
        Err(message) => message,
    };
    // `exit` would not say that it could not be written.
    let written = message.print().and_then(|()| io::stdout().flush());
    output::judge_standard(written)?;
    std::process::exit(0)
}
