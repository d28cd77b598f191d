//! The values of a script.

use std::rc::Rc;

use crate::number;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// True or false. A command answers false for what Redis answers with null.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Bytes.
    Text(Rc<[u8]>),
    /// A status: `{ok = ...}`.
    Status(Rc<[u8]>),
    /// An error that the script keeps: `{err = ...}`.
    Error(Rc<[u8]>),
    /// An answer of several values.
    List(Vec<Value>),
}

impl Value {
    /// The value of these bytes.
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(bytes.into())
    }

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

    /// The text that it is, or that its number is written as.
    pub(crate) fn written(&self, digits: usize) -> Option<Rc<[u8]>> {
        match self {
            Self::Number(number) => Some(number::written(*number, digits).into_bytes().into()),
            Self::Text(text) => Some(Rc::clone(text)),
            _ => None,
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
