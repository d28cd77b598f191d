//! Why a line is refused.

use crate::error::Error;

/// The refusal of a line, with what its command's parser can tell.
#[derive(Debug)]
pub(crate) struct Reject {
    pub(crate) error: Error,
    pub(crate) quiet: bool,
    pub(crate) close: bool,
}

impl Reject {
    /// Reports `error` unless the client asked for no reply.
    pub(crate) fn unless(quiet: bool, error: Error) -> Self {
        Self {
            error,
            quiet,
            close: false,
        }
    }
}

impl From<Error> for Reject {
    fn from(error: Error) -> Self {
        Self::unless(false, error)
    }
}
