//! The contenders of a comparison: simulated policies, engines, servers and libraries, as typed behind `--policies`.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::live::EngineChoice;
use crate::policy::{self, PolicyName};

/// The prefix of an engine's name, which distinguishes it from a policy's.
const ENGINE: &str = "engine:";

/// Something that a trace is replayed on in this process.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// A simulated policy.
    Policy(PolicyName),
    /// An engine with a real memory limit.
    Engine(EngineChoice),
}

impl Contender {
    /// True if it must know the future of the trace.
    pub fn is_offline(&self) -> bool {
        matches!(self, Self::Policy(policy) if policy.is_offline())
    }

    /// True if it is simulated and does not know the future: a policy that a cache could have.
    pub fn is_online_policy(&self) -> bool {
        matches!(self, Self::Policy(policy) if !policy.is_offline() && !policy.is_library())
    }
}

impl Display for Contender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => policy.fmt(out),
            Self::Engine(engine) => write!(out, "{ENGINE}{engine}"),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(ENGINE) {
            Some(engine) => engine.parse().map(Self::Engine),
            None => text.parse().map(Self::Policy),
        }
    }
}

/// The help on `--policies`.
pub fn help() -> String {
    format!(
        "The policies, with their parameters: {}. SMALL, HOT, WARM, NEW, HIR, WINDOW are shares of the size, GHOSTS is \
         a multiple of the size. engine:NAME and engine:NAME:EVICTION are engines with the size as their memory limit",
        policy::names()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_engines_are_told_apart() {
        for text in [
            "lru",
            "s3-fifo:0.2",
            "engine:cuckoo",
            "engine:lockhash:random",
        ] {
            let contender: Contender = text.parse().unwrap();
            assert_eq!(contender.to_string(), text);
            assert_eq!(contender.is_online_policy(), !text.starts_with(ENGINE));
        }
        assert!(!"lib:moka".parse::<Contender>().unwrap().is_online_policy());
        for wrong in [
            "lib",
            "lib:lru",
            "lib:moka:1",
            "engine:",
            "engine:lru",
            "cuckoo",
        ] {
            assert!(wrong.parse::<Contender>().is_err(), "{wrong}");
        }
    }
}
