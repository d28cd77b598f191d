//! What a connection is sent unasked, and how that is put between its answers.
//!
//! A mailbox is emptied into the output only between two requests, when every answer before is in the output: so a
//! message that a key has changed comes behind the answer that had the key's old value.

use std::sync::Arc;

use nuthatch_channels::Call;
use nuthatch_channels::channels::Subscriptions;
use nuthatch_channels::mailbox::{Mailbox, Owner};
use nuthatch_protocol::resp::{Error, Version, front};
use nuthatch_state::telemetry::watch::Hub;

use super::advance_muted;
use super::phase::Phase;
use super::reader::RequestReader;
use super::tracking::Tracked;
use crate::context::Context;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// Bytes of frames that a step puts into the output.
const STEP: usize = 64 << 10;

/// What a connection has that is sent something unasked.
pub struct Mail {
    pub mailbox: Arc<Mailbox>,
    pub subscriptions: Subscriptions,
    /// If its client tracks keys.
    pub tracked: Option<Tracked>,
    hub: Arc<Hub>,
}

impl Drop for Mail {
    fn drop(&mut self) {
        self.hub.tracking.leave(self.mailbox.owner.serial);
    }
}

impl Mail {
    fn new(cx: &Context<'_, '_>, turn: &Turn, version: Version) -> Self {
        let owner = Owner {
            worker: Arc::clone(cx.worker) as Arc<dyn Call>,
            connection: turn.id,
            serial: cx.info.serial(),
        };
        let bounds = Arc::clone(&cx.shared.mail_bounds);
        let mailbox = Arc::new(Mailbox::new(owner, bounds, version));
        let channels = Arc::clone(&cx.shared.channels);
        let hub = Arc::clone(&cx.shared.telemetry.watchers);
        hub.tracking.enter(&mailbox);
        Self {
            subscriptions: Subscriptions::new(channels, Arc::clone(&mailbox)),
            mailbox,
            tracked: None,
            hub,
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        size_of::<Mailbox>() + self.mailbox.memory() + self.subscriptions.memory()
    }
}

/// The connection's mail, made if it has none.
pub fn of<'p>(cx: &Context<'_, '_>, turn: &Turn, phase: &'p mut Phase) -> &'p mut Mail {
    let version = phase.version;
    let mail = &mut phase.session().mail;
    mail.get_or_insert_with(|| Box::new(Mail::new(cx, turn, version)))
}

/// Puts frames that wait into the output, if that is allowed here. `Some` if the turn goes on without a request now.
pub fn deliver(turn: &mut Turn, phase: &mut Phase) -> Option<Flow> {
    if !phase.is_at_request() {
        return None;
    }
    let session = phase.session.as_ref()?;
    let mail = session.mail.as_ref().filter(|_| !session.has_replay())?;
    if mail.mailbox.memory() == 0 {
        // Also clears the call: what is put in later calls again.
        mail.mailbox.take(&mut Vec::new(), 0);
        if mail.mailbox.memory() == 0 {
            return None;
        }
    }
    if turn.in_batch > 0 {
        return Some(Flow::Barrier);
    }
    let out = turn.output.text();
    let before = out.len();
    let is_empty = mail.mailbox.take(out, before + STEP);
    let moved = out.len() - before;
    turn.spend(Work::of_bytes(moved));
    (!is_empty).then_some(Flow::Next)
}

/// Commands of a client of RESP2 that has subscribed: to other requests it could not tell answers from messages.
const ALLOWED: [&str; 9] = [
    "ping",
    "psubscribe",
    "punsubscribe",
    "quit",
    "reset",
    "ssubscribe",
    "subscribe",
    "sunsubscribe",
    "unsubscribe",
];

/// Takes the request at the front, of such a client.
pub fn take<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let refused = front(reader.left()).filter(|front| !ALLOWED.contains(&front.name));
    let Some(front) = refused.filter(|_| phase.is_restricted()) else {
        return advance_muted(cx, turn, phase, reader);
    };
    if turn.in_batch > 0 {
        return Flow::Barrier;
    }
    phase.writer(turn).error(&Error::Subscribed(front.name));
    reader.used += front.consumed;
    phase.drop_rest(front.rest);
    turn.spend(Work::COMMAND);
    Flow::Next
}
