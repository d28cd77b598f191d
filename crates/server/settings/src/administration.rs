//! What clients may do to the server itself: commands that change it for all others.

use std::fmt;
use std::str::FromStr;

use crate::Live;

/// A kind of such commands, in every protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `verbosity`.
    Verbosity,
    /// `cache_memlimit`, CONFIG SET.
    MemoryLimit,
    /// `refresh_certs`.
    RefreshCertificates,
    /// `stats reset`, CONFIG RESETSTAT.
    ResetStats,
    /// `shutdown`.
    Shutdown,
    /// `flush_all`, FLUSHALL, FLUSHDB.
    Flush,
    /// CLIENT KILL.
    KillClients,
}

/// Each action with its names in a list of actions. The first one is the one to show.
const NAMES: [(Action, &[&str]); 7] = [
    (Action::Verbosity, &["verbosity"]),
    (Action::MemoryLimit, &["cache_memlimit", "config_set"]),
    (Action::RefreshCertificates, &["refresh_certs"]),
    (Action::ResetStats, &["stats_reset", "config_resetstat"]),
    (Action::Shutdown, &["shutdown"]),
    (Action::Flush, &["flush_all", "flushall", "flushdb"]),
    (Action::KillClients, &["client_kill"]),
];

impl Action {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Some of the actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actions(u8);

impl Actions {
    /// All of them.
    pub const ALL: Self = Self((1 << NAMES.len()) - 1);

    /// True if this one is among them.
    pub fn contains(self, action: Action) -> bool {
        self.0 & action.bit() != 0
    }
}

/// Names with colons between: `verbosity:flush_all`. Errors: one is no action's.
impl FromStr for Actions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(':').try_fold(Self::default(), |listed, word| {
            let mut all = NAMES.iter();
            match all.find(|(_, names)| names.contains(&word)) {
                Some((action, _)) => Ok(Self(listed.0 | action.bit())),
                None => Err(format!("`{word}` is none of {}", Self::ALL)),
            }
        })
    }
}

impl fmt::Display for Actions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = NAMES.iter().filter(|(action, _)| self.contains(*action));
        for (number, (_, names)) in listed.enumerate() {
            let colon = if number > 0 { ":" } else { "" };
            write!(out, "{colon}{}", names[0])?;
        }
        Ok(())
    }
}

impl Live {
    /// True if a client may do this, who administrates the server or does not.
    pub fn lets(&self, action: Action, is_administrator: bool) -> bool {
        let is_on = match action {
            Action::Flush => self.allow_flush,
            Action::Shutdown => self.allow_shutdown,
            Action::Verbosity
            | Action::MemoryLimit
            | Action::RefreshCertificates
            | Action::ResetStats
            | Action::KillClients => true,
        };
        is_on && (is_administrator || !self.disabled_actions.contains(action))
    }

    /// True if processes of this user may connect by unix sockets: see [`Config::unix_peers`](crate::Config::unix_peers).
    pub fn lets_user(&self, user: u32) -> bool {
        let users = self.unix_peers.as_ref();
        users.is_none_or(|users| users.contains(&user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_are_shown() {
        let all =
            "verbosity:cache_memlimit:refresh_certs:stats_reset:shutdown:flush_all:client_kill";
        assert_eq!(Actions::ALL.to_string(), all);
        assert_eq!(all.parse(), Ok(Actions::ALL));
        let some: Actions = "flushdb:config_set".parse().unwrap();
        assert!(some.contains(Action::Flush) && some.contains(Action::MemoryLimit));
        assert!(!some.contains(Action::Shutdown));
        assert_eq!(some.to_string(), "cache_memlimit:flush_all");
        for wrong in ["", "flush", "verbosity:", "verbosity,shutdown"] {
            assert!(wrong.parse::<Actions>().is_err(), "{wrong}");
        }
    }
}
