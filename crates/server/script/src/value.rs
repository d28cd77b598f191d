//! The values of a script.

use crate::number;

/// A value. Its bytes are those of the script, of its arguments, of the key's value, or of the arena of the run: none is
/// copied when a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// True or false. A command answers false for what Redis answers with null.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Bytes.
    Text(&'a [u8]),
    /// A status: `{ok = ...}`.
    Status(&'a [u8]),
    /// An error that the script keeps: `{err = ...}`.
    Error(&'a [u8]),
    /// An answer of several values.
    List(Vec<Value<'a>>),
}

impl Value<'_> {
    /// False for nil and false, true for all others.
    pub(crate) fn is_true(&self) -> bool {
        !matches!(self, Self::Nil | Self::Bool(false))
    }

    /// The number that it is, or that its text is.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => number::parse(text),
            _ => None,
        }
    }

    /// Bytes of its text.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Status(text) | Self::Error(text) => text.len(),
            _ => 0,
        }
    }

    /// The name of its type.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Status(_) | Self::Error(_) | Self::List(_) => "table",
        }
    }
}
