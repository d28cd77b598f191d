//! Who competes: as typed behind `--policies`.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::policy::{self, PolicyName};

/// Something that a trace is replayed on.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// A simulated policy.
    Policy(PolicyName),
}

impl Contender {
    /// True if it must know the future of the trace.
    pub fn is_offline(&self) -> bool {
        match self {
            Self::Policy(policy) => policy.is_offline(),
        }
    }

    /// True if it is simulated and does not know the future: a policy that a cache could have.
    pub fn is_online_policy(&self) -> bool {
        match self {
            Self::Policy(policy) => !policy.is_offline(),
        }
    }
}

impl Display for Contender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => policy.fmt(out),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Policy)
    }
}

/// The help on `--policies`.
pub fn help() -> String {
    format!(
        "Which policies, with their parameters: {}. SMALL, HOT, WARM, NEW, HIR, WINDOW are shares of the size, GHOSTS \
         is a number of sizes",
        policy::names()
    )
}
