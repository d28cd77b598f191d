//! Why a command ended early.

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be meant so.
    Usage(String),
    /// The keys, or the files they are in, do not allow it.
    Data(String),
}

impl Failure {
    /// Something about the data.
    pub fn data(words: impl Into<String>) -> Self {
        Self::Data(words.into())
    }

    /// Something about the command line.
    pub fn usage(words: impl Into<String>) -> Self {
        Self::Usage(words.into())
    }
}
