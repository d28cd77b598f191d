//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: a client is told when what it has read changes. See
//! [`nuthatch_channels::tracking`] for what must hold.

use std::sync::Arc;

use nuthatch_channels::tracking::{Options, Tracker};
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_resp::{Error, Tracking};
use nuthatch_state::changes;
use nuthatch_state::worker::{Errand, What};

use crate::answered::status;
use crate::busy;
use crate::delivery;
use crate::mail::Tracked;
use crate::phase::Phase;

/// The most prefixes of a connection: every write is compared with all of them.
const PREFIXES_MAX: usize = 100;

/// The most bytes of a prefix.
const PREFIX_LEN_MAX: usize = 1024;

/// A request begins, or goes on: what it reads is tracked from here on.
pub fn begin(cx: &mut Context<'_, '_>, phase: &Phase) {
    let tracked = phase.mail().and_then(|mail| mail.tracked.as_ref());
    let wanted = tracked.filter(|tracked| tracked.is_wanted());
    cx.tracker = wanted.map(|tracked| Arc::clone(&tracked.tracker));
}

/// It has joined the batch from index `from` on, or has been executed.
pub fn end(cx: &mut Context<'_, '_>, phase: &mut Phase, from: usize, flow: Flow) {
    remember(cx, from);
    cx.tracker = None;
    let is_over = flow == Flow::Next && phase.is_at_request() && !phase.has_transaction();
    if !is_over {
        return;
    }
    if let Some(session) = &mut phase.session
        && !session.has_replay()
        && let Some(mail) = &mut session.mail
        && let Some(tracked) = &mut mail.tracked
        && !std::mem::take(&mut tracked.announces)
    {
        tracked.announced = false;
    }
}

/// Remembers what the requests of the batch from index `from` on read, before they do.
pub fn remember(cx: &Context<'_, '_>, from: usize) {
    let Some(tracker) = &cx.tracker else {
        return;
    };
    let requests = &cx.batch.requests[from.min(cx.batch.requests.len())..];
    cx.shared
        .tracking
        .remember(tracker, changes::reads(requests));
}

/// CLIENT TRACKING.
pub fn switch(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, asked: &Tracking<'_>) {
    let tracked = phase.mail().and_then(|mail| mail.tracked.as_ref());
    let set = tracked.map_or_else(Vec::new, |it| cx.shared.tracking.prefixes_of(&it.tracker));
    let outcome = switch_beside(cx, turn, phase, asked, &set);
    status(turn, phase, outcome);
}

/// The client has set these prefixes already.
fn switch_beside<'a>(
    cx: &mut Context<'_, '_>,
    turn: &Turn,
    phase: &mut Phase,
    asked: &Tracking<'a>,
    set: &'a [Box<[u8]>],
) -> Result<(), Error<'a>> {
    let redirect = match asked.redirect {
        Some(id) => Some(existing(cx, id).ok_or(Error::REDIRECT_NOBODY)?),
        None => None,
    };
    if !asked.on {
        if let Some(session) = &mut phase.session
            && let Some(mail) = &mut session.mail
        {
            mail.tracked = None;
        }
        return Ok(());
    }
    let before = phase.mail().and_then(|mail| mail.tracked.as_ref());
    if let Some(before) = before {
        let options = before.tracker.options;
        if options.broadcast != asked.broadcast {
            return Err(Error::SWITCH_BROADCAST);
        }
        if options.opt_in && asked.opt_out || options.opt_out && asked.opt_in {
            return Err(Error::SWITCH_OPTIONS);
        }
    }
    let mut prefixes = set.to_vec();
    for (at, prefix) in asked.prefixes().enumerate() {
        if prefix.len() > PREFIX_LEN_MAX {
            return Err(Error::PREFIX_TOO_LONG);
        }
        if let Some(error) = asked.overlap(at, prefix, set) {
            return Err(error);
        }
        if prefixes.len() == PREFIXES_MAX {
            return Err(Error::PREFIXES_TOO_MANY);
        }
        prefixes.push(prefix.into());
    }
    if asked.broadcast && prefixes.is_empty() {
        prefixes.push(Box::default());
    }
    let options = Options {
        broadcast: asked.broadcast,
        opt_in: asked.opt_in,
        opt_out: asked.opt_out,
        no_loop: asked.no_loop,
        redirect,
    };
    begin_tracking(cx, turn, phase, options, prefixes)
}

fn begin_tracking(
    cx: &mut Context<'_, '_>,
    turn: &Turn,
    phase: &mut Phase,
    options: Options,
    prefixes: Vec<Box<[u8]>>,
) -> Result<(), Error<'static>> {
    // Who executes requests looks behind its lock whether somebody tracks: who does so from here on knows of this client.
    let isolation = busy::isolate(cx)?;
    let number = cx.shared.number_of(cx.info);
    let mail = delivery::mail(cx, turn, phase);
    let mailbox = Arc::clone(&mail.mailbox);
    let tracker = Arc::new(Tracker::new(mailbox, options, number));
    let memory = prefixes.iter().map(|it| size_of_val(it) + it.len()).sum();
    let tracking = Arc::clone(&cx.shared.tracking);
    if !tracking.begin(&tracker, prefixes) {
        return Err(Error::PREFIXES_OF_ALL_TOO_MANY);
    }
    if let Some(tracked) = &mut mail.tracked {
        // It does not end in between: what it has read stays in the table.
        tracked.tracker = tracker;
        tracked.memory = memory;
        (tracked.announced, tracked.announces) = (false, false);
        return Ok(());
    }
    mail.tracked = Some(Tracked {
        tracker,
        tracking,
        memory,
        announced: false,
        announces: false,
    });
    drop(isolation);
    // Steps behind the scenes may not know that somebody tracks: they are over before this client's next read. Another client
    // that tracks already may be waiting for them, too.
    drop(cx.shared.pause.step_behind_the_scenes());
    Ok(())
}

/// Places of the list of connections that are looked at in one go: none can be accepted or closed meanwhile.
const STEP: usize = 64;

/// The number of an open connection, if it is one's. It gets a mailbox.
fn existing(cx: &mut Context<'_, '_>, id: i64) -> Option<u64> {
    let id = u64::try_from(id).ok()?;
    let registry = &cx.shared.telemetry.registry;
    registry.had(id).then_some(())?;
    // Before it is looked for: so who takes or closes it meanwhile knows of this.
    let is_new = cx.shared.tracking.expect(id);
    let Some(seat) = seat_of(cx, id) else {
        cx.shared.tracking.leave(id);
        return None;
    };
    if let Some((worker, connection)) = seat
        && is_new
    {
        let worker = &cx.shared.workers[worker];
        worker.send(Errand {
            connection,
            serial: id,
            what: What::OpenMail,
        });
        worker.wake();
    }
    Some(id)
}

/// The worker of an open connection, and its id there, if a worker has taken it already.
fn seat_of(cx: &mut Context<'_, '_>, id: u64) -> Option<Option<(usize, usize)>> {
    let registry = &cx.shared.telemetry.registry;
    let (mut place, mut found) = (Some(0), None);
    while let (Some(from), None) = (place, found) {
        cx.work.add(Work::of_commands(STEP));
        place = registry.some(from, STEP, |info| {
            if info.serial() == id {
                found = Some(info.seat());
            }
        });
    }
    found
}

/// CLIENT CACHING.
pub fn announce(phase: &mut Phase, yes: bool) -> Result<(), Error<'static>> {
    let session = phase.session.as_mut();
    let mail = session.and_then(|session| session.mail.as_mut());
    let tracked = mail.and_then(|mail| mail.tracked.as_mut());
    let tracked = tracked.ok_or(Error::CACHING_WITHOUT_TRACKING)?;
    let options = tracked.tracker.options;
    match yes {
        true if !options.opt_in => return Err(Error::CACHING_YES),
        false if !options.opt_out => return Err(Error::CACHING_NO),
        _ => {}
    }
    (tracked.announced, tracked.announces) = (true, true);
    Ok(())
}

/// CLIENT GETREDIR: -1 if the client does not track, 0 if it is told itself.
pub fn redirection(phase: &Phase) -> i64 {
    let tracked = phase.mail().and_then(|mail| mail.tracked.as_ref());
    tracked.map_or(-1, |it| it.tracker.options.redirect.unwrap_or(0) as i64)
}

/// CLIENT TRACKINGINFO.
pub fn info(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase) {
    let tracked = phase.mail().and_then(|mail| mail.tracked.as_ref());
    let mut flags = vec![if tracked.is_some() { "on" } else { "off" }];
    let mut prefixes = Vec::new();
    if let Some(tracked) = tracked {
        let options = tracked.tracker.options;
        let announced = |word| if tracked.announced { word } else { "" };
        for (is_set, word) in [
            (options.broadcast, "bcast"),
            (options.opt_in, "optin"),
            (options.opt_in, announced("caching-yes")),
            (options.opt_out, "optout"),
            (options.opt_out, announced("caching-no")),
            (options.no_loop, "noloop"),
            (tracked.tracker.is_broken(), "broken_redirect"),
        ] {
            if is_set && !word.is_empty() {
                flags.push(word);
            }
        }
        prefixes = cx.shared.tracking.prefixes_of(&tracked.tracker);
    }
    let redirection = redirection(phase);
    let mut writer = phase.writer(turn);
    writer.map(3);
    writer.bulk(b"flags");
    writer.set(flags.len());
    flags.iter().for_each(|flag| writer.bulk(flag.as_bytes()));
    writer.bulk(b"redirect");
    writer.integer(redirection);
    writer.bulk(b"prefixes");
    writer.array(prefixes.len());
    prefixes.iter().for_each(|prefix| writer.bulk(prefix));
}
