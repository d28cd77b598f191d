//! The file of settings: TOML, whose keys are the long names of flags.

use std::path::Path;

use clap::{Args, Command};
use serde::de::{DeserializeOwned, DeserializeSeed};
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};

use crate::engine::EngineFlags;
use crate::flags::{Flags, FromFile};

/// A file, of which each set of flags takes its own keys.
pub struct File<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
}

/// Reads the flags of every server, and a program's own. Errors name the file, and the line.
pub fn read<E: EngineFlags>(path: &Path) -> Result<(Flags, E), String> {
    let text = nuthatch_base::file::check_no_fifo(path)
        .and_then(|()| std::fs::read_to_string(path))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}{error}", path.display()))
}

/// The same, of the file's text. Errors begin with the line.
pub fn parse<E: EngineFlags>(text: &str) -> Result<(Flags, E), String> {
    let table = DeTable::parse(text).map_err(|error| in_a_line(text, &error))?;
    let mut file = File { text, table };
    let own = E::take_from(&mut file)?;
    // The rest, in which an unknown key is an error.
    let flags = FromFile.deserialize(Deserializer::from(file.table));
    Ok((flags.map_err(|error| in_a_line(text, &error))?, own))
}

impl File<'_> {
    /// Takes the keys of these flags. Errors: a value has no valid form.
    pub fn take<F: Args + DeserializeOwned>(&mut self) -> Result<F, String> {
        let mut own = DeTable::new();
        for argument in F::augment_args(Command::new("")).get_arguments() {
            let name = argument.get_long().unwrap_or_default();
            if let Some((key, value)) = self.table.get_mut().remove_entry(name) {
                own.insert(key, value);
            }
        }
        let own = Deserializer::from(Spanned::new(self.table.span(), own));
        F::deserialize(own).map_err(|error| in_a_line(self.text, &error))
    }

    /// Errors: the file has a key about which `why` has something to say.
    pub fn refuse(&self, why: fn(&str) -> Option<&'static str>) -> Result<(), String> {
        for key in self.table.get_ref().keys() {
            if let Some(why) = why(key.get_ref()) {
                let line = line(self.text, key.span().start);
                return Err(format!(":{line}: {}: {why}", key.get_ref()));
            }
        }
        Ok(())
    }
}

/// The error and its place, in one line: the log has a line an event.
fn in_a_line(text: &str, error: &Error) -> String {
    let message = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => format!(":{}: {message}", line(text, span.start)),
        None => format!(": {message}"),
    }
}

/// The number of the line in which this byte is.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn wrong(text: &str) -> String {
        parse::<DefaultEngine>(text).unwrap_err()
    }

    #[test]
    fn what_is_wrong_with_a_file_is_a_line() {
        for (text, line) in [
            ("port = 1\nthreads = [\n", 2),
            ("port = 1\n\nprot = 1\n", 3),
            ("threads = 1\nport = \"x\"\n", 2),
        ] {
            let said = wrong(text);
            assert!(said.starts_with(&format!(":{line}: ")), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = wrong("prot = 1");
        assert!(error.contains("unknown field `prot`"), "{error}");
        assert!(error.contains("`port`"), "{error}");
    }

    /// Class of bug: a setting that another program has, told as if it were misspelled.
    #[test]
    fn a_key_of_the_laboratory_says_where_it_went() {
        for key in [
            "engine",
            "eviction",
            "partitions",
            "server-threads",
            "pin",
            "cpserver",
        ] {
            let error = wrong(&format!("port = 1\n\n{key} = 1"));
            assert!(error.starts_with(&format!(":3: {key}: ")), "{error}");
            assert!(error.contains("`nuthatch-lab serve`"), "{error}");
        }
    }
}
