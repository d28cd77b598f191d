//! AUTH, and HELLO with AUTH: checks a client's name and password.

use nuthatch_resp::{Error, Login as Credentials};

use super::phase::Phase;
use super::session::DEFAULT_USER;
use crate::context::Context;
use crate::turn::Turn;

/// Counts an error of a client that has not logged in, or that tries other users' passwords.
pub fn count_error(turn: &mut Turn, phase: &mut Phase) {
    turn.closing |= phase.errors.is_enough();
}

/// Checks a client's name and password. If the server has no passwords, Redis' default user is admitted with any.
pub fn authenticate(
    cx: &Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    said: &Credentials<'_>,
) -> Result<(), Error<'static>> {
    if !cx.shared.security.has_passwords() {
        return match said.user {
            None => Err(Error::NO_PASSWORD),
            Some(DEFAULT_USER) => Ok(()),
            Some(_) => Err(Error::WRONG_PASSWORD),
        };
    }
    let user = said.user.unwrap_or(DEFAULT_USER);
    if cx.login(turn, Some((user, said.password))) {
        phase.login = false;
        phase.set_user(user);
        cx.info.tell(|told| told.user = user.into());
        return Ok(());
    }
    count_error(turn, phase);
    Err(Error::WRONG_PASSWORD)
}
