//! A figure's verdict in a word.

use std::fmt;

use crate::figure::Size;
use crate::found::{Found, Verdict};

use super::gather::State;

/// What became of a figure, in the order in which a summary counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// All its statements hold.
    Holds,
    /// Some do, and some do not or were not judged.
    Partly,
    /// None does.
    Differs,
    /// None is judged, and of at least one the spreads overlap.
    Noise,
    /// There is nothing to judge: no statement, no points for one, or a smoke run.
    Unjudged,
    /// There is no run of it.
    NotRun,
    /// It cannot be run, and says why.
    Impossible,
    /// Its file cannot be used.
    Unusable,
}

impl Word {
    /// Of a figure.
    pub fn of(state: &State) -> Self {
        match state {
            State::Found(found) => Self::of_run(found),
            State::NotRun => Self::NotRun,
            State::Impossible => Self::Impossible,
            State::Unusable { .. } => Self::Unusable,
        }
    }

    fn of_run(found: &Found) -> Self {
        let count = |holds| {
            let verdicts = found.verdicts.iter();
            verdicts.filter(|verdict| verdict.holds == holds).count()
        };
        match (count(Some(true)), count(Some(false)), count(None)) {
            (0, 0, _) if found.verdicts.iter().any(|verdict| verdict.noise) => Self::Noise,
            (0, 0, _) => Self::Unjudged,
            (_, 0, 0) => Self::Holds,
            (0, _, _) => Self::Differs,
            _ => Self::Partly,
        }
    }

    /// The name of its class in the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Self::Holds => "good",
            Self::Partly => "middling",
            Self::Differs | Self::Unusable => "bad",
            Self::Noise | Self::Unjudged | Self::NotRun | Self::Impossible => "open",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Differs => "differs",
            Self::Noise => "within the noise",
            Self::Unjudged => "unjudged",
            Self::NotRun => "not run",
            Self::Impossible => "cannot be run",
            Self::Unusable => "unusable",
        })
    }
}

/// A statement's outcome, and its class in the style sheet.
pub fn outcome(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict.holds {
        Some(true) => ("holds", "good"),
        Some(false) => ("does not hold", "bad"),
        None if verdict.noise => ("within the noise", "open"),
        None => ("not judged", "open"),
    }
}

/// A size of a run in words.
pub fn size(size: Size) -> &'static str {
    match size {
        Size::Full => "full",
        Size::Quick => "quick",
        Size::Smoke => "smoke",
    }
}
