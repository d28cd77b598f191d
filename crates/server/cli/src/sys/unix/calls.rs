//! The system calls of a running server: all, as [`super::check`] has seen to.

use nuthatch_log::LogTo;
use nuthatch_server::Config;

/// Calls that a few settings need: not looked at.
pub struct LaterCalls;

impl LaterCalls {
    /// For any server.
    pub fn new(_server: &Config, _log: &LogTo) -> Self {
        Self
    }
}

/// Errors: no call can be given up.
pub fn give_up(_later: &LaterCalls) -> Result<(), String> {
    Err(super::files::REFUSED.to_owned())
}
