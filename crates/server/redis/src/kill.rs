//! CLIENT KILL: the workers of the connections that are meant close them.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_resp::{ClientKind, Error, Kill};
use nuthatch_settings::administration::Action;
use nuthatch_state::telemetry::connections::{Info, Peer};
use nuthatch_state::worker::{Errand, What};

use crate::clients::user;
use crate::phase::Phase;
use crate::session::DEFAULT_USER;

/// Places of the list of connections that are looked at in one go: none can be accepted or closed meanwhile.
const STEP: usize = 64;

/// CLIENT KILL.
pub fn kill(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, kill: &Kill<'_>) {
    if !cx.may(Action::KillClients) {
        return phase.writer(turn).error(&Error::KILL_FORBIDDEN);
    }
    if let Some(user) = kill.user
        && !exists(cx, user)
    {
        return phase.writer(turn).error(&Error::NoUser(user));
    }
    let own = cx.info.serial();
    let (mut others, mut own_too) = (0, false);
    let registry = &cx.shared.telemetry.registry;
    let mut place = Some(0);
    while let Some(from) = place {
        cx.work.add(Work::of_commands(STEP));
        place = registry.some(from, STEP, |info| {
            if !is_meant(cx, kill, info) {
                return;
            }
            match info.serial() == own {
                true => own_too = true,
                false => others += i64::from(end(cx, info)),
            }
        });
    }
    if others > 0 {
        cx.shared.wake_workers();
    }
    let mut writer = phase.writer(turn);
    match others + i64::from(own_too) {
        0 if kill.by_address => writer.error(&Error::NO_CLIENT),
        _ if kill.by_address => writer.ok(),
        count => writer.integer(count),
    }
    if own_too {
        end_own(turn, phase);
    }
}

/// Closes the connection after the answer, or after the transaction of which this is a part.
fn end_own(turn: &mut Turn, phase: &mut Phase) {
    match &mut phase.session {
        Some(session) if session.more => session.ends = true,
        _ => turn.closing = true,
    }
}

/// Has a connection closed by its worker. False if that is done already.
fn end(cx: &Context<'_, '_>, info: &Info) -> bool {
    info.end(|worker, connection| {
        cx.shared.workers[worker].send(Errand {
            connection,
            serial: info.serial(),
            what: What::Close,
        });
    })
}

/// True if there is such a user.
fn exists(cx: &Context<'_, '_>, user: &[u8]) -> bool {
    match cx.shared.security.users() {
        Some(users) => users.iter().any(|(name, _)| **name == *user),
        None => user == DEFAULT_USER,
    }
}

fn is_meant(cx: &Context<'_, '_>, kill: &Kill<'_>, info: &Info) -> bool {
    let is_address = |wanted| matches!(info.peer(), Peer::Tcp(address) if address == wanted);
    let is_kind = |kind| match kind {
        ClientKind::Normal => !info.is_subscriber(),
        ClientKind::PubSub => info.is_subscriber(),
        ClientKind::Other => false,
    };
    kill.id.is_none_or(|id| id == info.serial())
        && kill.address.is_none_or(is_address)
        && kill.local.is_none_or(|local| info.local() == Some(local))
        && kill.kind.is_none_or(is_kind)
        && kill.user.is_none_or(|name| user(&info.told().user) == name)
        && kill.age_min.is_none_or(|age| info.age(cx.now) >= age)
        && !(kill.others_only && info.serial() == cx.info.serial())
}
