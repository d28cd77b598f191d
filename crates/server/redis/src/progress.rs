//! How far a command of many keys is.

use nuthatch_resp::{Error, Many, Rest};

/// A command in progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub verb: Many,
    /// Elements that are still to come.
    pub left: u32,
    /// The rest of an element that was refused.
    pub rest: Rest,
    /// Number of keys found.
    pub tally: i64,
    /// The error of the first element that failed.
    pub failed: Option<Error<'static>>,
    /// For an MGET: the number of values of the answer, until its first value is answered.
    pub announced: u32,
}

impl Progress {
    pub fn new(verb: Many, arguments: u32) -> Self {
        let left = match verb {
            Many::Mset => arguments / 2,
            _ => arguments,
        };
        Self {
            verb,
            left,
            rest: Rest::default(),
            tally: 0,
            failed: None,
            announced: left,
        }
    }

    /// Records that an element is refused, and the rest of it that is still to come.
    pub fn has_refused(&mut self, error: Error<'static>, rest: Rest) {
        self.has_stored(Err(error));
        self.rest = rest;
    }

    /// Records the outcome of a pair that arrived piece by piece.
    pub fn has_stored(&mut self, outcome: Result<(), Error<'static>>) {
        self.left -= 1;
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }
}
