//! CLIENT PAUSE and CLIENT UNPAUSE.

use std::time::Duration;

use nuthatch_resp::{Error, Pause};
use nuthatch_settings::administration::Action;
use nuthatch_state::hold::{HOLD_MAX, Held};

use super::phase::Phase;
use crate::context::Context;
use crate::turn::Turn;

/// CLIENT PAUSE: the answer is sent, and then the requests wait.
pub fn begin(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase, pause: Pause) {
    let mut writer = phase.writer(turn);
    if !cx.may(Action::KillClients) {
        return writer.error(&Error::PAUSE_FORBIDDEN);
    }
    let time = Duration::from_millis(pause.milliseconds);
    if time > HOLD_MAX {
        return writer.error(&Error::PAUSE_TOO_LONG);
    }
    let held = match pause.writes_only {
        true => Held::Writes,
        false => Held::All,
    };
    cx.shared.hold.begin(held, cx.now.after(time));
    writer.ok();
}

/// CLIENT UNPAUSE.
pub fn end(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase) {
    let mut writer = phase.writer(turn);
    if !cx.may(Action::KillClients) {
        return writer.error(&Error::PAUSE_FORBIDDEN);
    }
    cx.shared.hold.end();
    cx.shared.wake_workers();
    writer.ok();
}
