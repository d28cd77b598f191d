//! What is known of a setting besides its value: its names, its bounds, its words for people.

use std::ffi::OsStr;

use nuthatch_security::tls::TlsSettings;

use crate::{Config, Live};

/// A setting, of the values `S`: [`Flags`](crate::Flags) or [`Options`](crate::Options).
pub struct Setting<S: 'static> {
    /// What its declaration says.
    pub about: &'static About,
    /// The form of its value.
    pub kind: Kind,
    /// A change of it is applied when the settings are read again.
    pub reload: Reload,
    /// Takes what was typed or written in a file. Several in turn: the last counts, or they add up, by its form. `None`
    /// is an option without a value.
    pub read: fn(&mut S, Option<&OsStr>) -> Result<(), String>,
    /// The value as in a file of settings, if one was said.
    pub show: fn(&S) -> Option<String>,
}

/// What a declaration says of a setting. A field that it leaves out is as in [`About::NOTHING`].
pub struct About {
    /// The long name of a flag, which is its key in the file; or the name of an option of `-o`.
    pub name: &'static str,
    /// It is an option of `-o`.
    pub is_option: bool,
    /// The flag in one letter.
    pub short: Option<char>,
    /// Another long name, of memcached's.
    pub alias: Option<&'static str>,
    /// The word for its value in the help.
    pub value: &'static str,
    /// The value if nothing is said, as typed. Where no single field of [`Config`] takes it, it may be a word for people.
    /// Empty: none.
    pub default: &'static str,
    /// The bounds of a number.
    pub range: Option<Range>,
    /// What it does: one sentence without a full stop.
    pub help: &'static str,
    /// The same for docs/running.md, with links, where that says more. Empty: the help.
    pub manual: &'static str,
    /// The default in docs/running.md, if it is not `default`.
    pub manual_default: &'static str,
    /// A value in dist/nuthatch.toml, where the default is none. Empty: the default.
    pub example: &'static str,
    /// The values that there are, each with its meaning, if only names are values.
    pub choices: &'static [(&'static str, &'static str)],
    /// How a change is applied, if not by the running server's [`Live`] settings.
    pub reload: Reload,
    /// The lines of `stats settings` that show it. What the engine or another part of the server knows better is shown by
    /// that part.
    pub stats: &'static [Stat],
}

/// A line of `stats settings`: its name, and its value in a running server.
pub type Stat = (&'static str, fn(&Now<'_>) -> String);

/// The settings of a running server.
pub struct Now<'s> {
    /// Those of its start.
    pub config: &'s Config,
    /// Those that can change.
    pub live: &'s Live,
    /// Those of its certificates, or nothing.
    pub tls: &'s TlsSettings,
}

/// The bounds of a number, both included.
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most, if there is one.
    pub most: Option<u64>,
    /// The word behind the numbers in an error. Empty: none.
    pub unit: &'static str,
}

/// How a change in the file is applied to a running server, at SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Not at all: it needs a restart.
    Restart,
    /// With all others that are [`Live`].
    Live,
    /// With the certificates, which are read again in any case.
    Certificates,
    /// By itself, since clients can change it too.
    Own,
}

/// The form of a value, for those who read it: a command line, a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false; said without a value it is true.
    Switch,
    /// A whole number, which may be below zero.
    Signed,
    /// A whole number.
    Number,
    /// A number.
    Real,
    /// A number, or a text such as `64m`.
    NumberOrText,
    /// A text.
    Text,
    /// A name of a file, of any bytes.
    Path,
    /// One of the [`About::choices`].
    Choice,
    /// Texts, with commas between.
    List,
    /// A level, which rises each time that it is said without a value.
    Level,
}

impl About {
    /// The beginning of a declaration.
    pub const NOTHING: Self = Self {
        name: "",
        is_option: false,
        short: None,
        alias: None,
        value: "",
        default: "",
        range: None,
        help: "",
        manual: "",
        manual_default: "",
        example: "",
        choices: &[],
        reload: Reload::Restart,
        stats: &[],
    };

    /// Its name as a user types it: `-t`, `--batch`, `-o idle_timeout`.
    pub fn typed(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}"),
            None if self.is_option => format!("-o {}", self.name),
            None => format!("--{}", self.name),
        }
    }

    /// Its key where settings are compared: as in the file; of an option, behind `-o`.
    pub fn key(&self) -> String {
        match self.is_option {
            true => self.typed(),
            false => self.name.to_owned(),
        }
    }

    /// Errors: the number is out of bounds.
    pub fn check(&self, number: Option<u64>) -> Result<(), String> {
        let (Some(range), Some(number)) = (&self.range, number) else {
            return Ok(());
        };
        match number >= range.least && range.most.is_none_or(|most| number <= most) {
            true => Ok(()),
            false => Err(format!("{}: {}", self.typed(), range.words(self.is_option))),
        }
    }
}

impl Range {
    /// From here to there.
    pub const fn new(least: u64, most: u64) -> Self {
        Self {
            least,
            most: Some(most),
            unit: "",
        }
    }

    /// From here on.
    pub const fn from(least: u64) -> Self {
        Self {
            least,
            most: None,
            unit: "",
        }
    }

    /// The same in this unit.
    pub const fn of(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    fn words(&self, is_option: bool) -> String {
        let from = if is_option { "from " } else { "" };
        let bounds = match (self.least, self.most) {
            (least, Some(most)) => format!("{from}{least} to {most}"),
            (least, None) => format!("at least {least}"),
        };
        match self.unit {
            "" => bounds,
            unit => format!("{bounds} {unit}"),
        }
    }
}
