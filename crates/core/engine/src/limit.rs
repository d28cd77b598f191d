//! The error of a memory limit that an engine cannot have.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// A requested memory limit that is not possible, and the possible ones, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    asked: usize,
    least: usize,
    most: usize,
}

impl LimitError {
    /// The error, unless the limit lies between `least` and `most`, both included.
    pub fn check(asked: usize, least: usize, most: usize) -> Result<(), Self> {
        if (least..=most).contains(&asked) {
            Ok(())
        } else {
            Err(Self { asked, least, most })
        }
    }

    /// The requested limit, in bytes.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// The lowest possible limit, in bytes, at present: it includes the index, which grows.
    pub fn least(&self) -> usize {
        self.least
    }

    /// The highest possible limit, in bytes: no more address space was reserved.
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Display for LimitError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { asked, least, most } = self;
        write!(
            out,
            "a memory limit of {asked} bytes: at least {least}, at most {most}"
        )
    }
}

impl Error for LimitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_between_the_two_is_none_to_complain_of() {
        for asked in [5, 6, 7] {
            assert_eq!(LimitError::check(asked, 5, 7), Ok(()));
        }
        for asked in [0, 4, 8, usize::MAX] {
            let error = LimitError::check(asked, 5, 7).unwrap_err();
            assert_eq!((error.asked(), error.least(), error.most()), (asked, 5, 7));
            let words = format!("a memory limit of {asked} bytes: at least 5, at most 7");
            assert_eq!(error.to_string(), words);
        }
    }
}
