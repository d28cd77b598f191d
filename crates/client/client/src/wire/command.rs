//! Meta commands of the caller's own.

use std::fmt::Write;

/// What a meta command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `mg`
    Get,
    /// `ms`
    Set,
    /// `md`
    Delete,
    /// `ma`
    Arithmetic,
}

/// A meta command.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// What it does.
    pub verb: Verb,
    /// Its key, as [`crate::Client::get`] takes it.
    pub key: &'a [u8],
    /// Its flags.
    pub flags: &'a Flags,
    /// The value of a [`Verb::Set`].
    pub value: &'a [u8],
    /// It changes nothing, so it may be sent once more if the connection ends before its reply.
    pub is_read: bool,
}

/// Flags of a meta command, as memcached's `protocol.txt` has them. Not `b`, `k`, `O` and `q`: those are the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(String);

impl Flags {
    /// Adds flags without a token. Panics if they are no letters.
    pub fn bare(&mut self, letters: &str) -> &mut Self {
        for letter in letters.chars() {
            self.flag(letter);
        }
        self
    }

    /// Adds a flag with a number. Panics if it is no letter.
    pub fn number(&mut self, letter: char, number: impl Into<i128>) -> &mut Self {
        self.flag(letter);
        let _ = write!(self.0, "{}", number.into());
        self
    }

    /// Adds the flag `M` with its mode. Panics if that is no letter.
    pub fn mode(&mut self, letter: char) -> &mut Self {
        assert!(letter.is_ascii_alphabetic(), "modes are letters");
        self.flag('M');
        self.0.push(letter);
        self
    }

    /// The line's end would follow from a line break.
    fn flag(&mut self, letter: char) {
        assert!(letter.is_ascii_alphabetic(), "flags are letters");
        self.0.push(' ');
        self.0.push(letter);
    }

    pub(crate) fn written(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Verb {
    pub(crate) fn word(self) -> &'static [u8] {
        match self {
            Self::Get => b"mg ",
            Self::Set => b"ms ",
            Self::Delete => b"md ",
            Self::Arithmetic => b"ma ",
        }
    }
}

impl AsRef<[u8]> for Command<'_> {
    fn as_ref(&self) -> &[u8] {
        self.key
    }
}
