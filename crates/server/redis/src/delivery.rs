//! How what a connection is sent unasked is put between its answers.
//!
//! A mailbox is emptied into the output only between two requests, when every answer before is in the output: so a
//! message that a key has changed comes behind the answer that had the key's old value.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_resp::{Error, command_at, front};

use crate::mail::Mail;
use crate::phase::Phase;
use crate::reader::RequestReader;

/// Bytes of frames that a step puts into the output.
const STEP: usize = 64 << 10;

/// The connection's mail, made if it has none.
pub fn mail<'p>(cx: &Context<'_, '_>, turn: &Turn, phase: &'p mut Phase) -> &'p mut Mail {
    phase.open_mail(cx.shared, cx.worker, turn.id, cx.info)
}

/// Puts frames that wait into the output, if that is allowed here. `Some` if the turn goes on without a request now.
pub fn deliver(turn: &mut Turn, phase: &mut Phase) -> Option<Flow> {
    if !phase.is_at_request() {
        return None;
    }
    let session = phase.session.as_ref()?;
    let mail = session.mail.as_ref().filter(|_| !session.has_replay())?;
    if mail.mailbox.is_empty() {
        return None;
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

/// Refuses the request at the front, of such a client. `None` if it is allowed.
pub fn refuse(turn: &mut Turn, phase: &mut Phase, reader: &mut RequestReader<'_>) -> Option<Flow> {
    if !phase.is_at_request() || !phase.is_restricted() {
        return None;
    }
    let front = front(reader.left()).filter(|front| !ALLOWED.contains(&front.name))?;
    if turn.in_batch > 0 {
        return Some(Flow::Barrier);
    }
    if !phase.is_muted() {
        let named = command_at(reader.left());
        let name = named.as_deref().unwrap_or(front.name);
        phase.writer(turn).error(&Error::Subscribed(name));
    }
    if let Some(session) = &mut phase.session {
        session.unwanted.end();
    }
    reader.used += front.consumed;
    phase.drop_rest(front.rest);
    turn.spend(Work::COMMAND);
    Some(Flow::Next)
}
