//! A touch under a condition, which memcached's protocol does not have: the item is stored again as it is, with its new end, if
//! nobody has changed it meanwhile. A stale item is marked again, with its new end.

use nuthatch_client::meta::{Answer, Command, Flags, Kind, Verb};
use nuthatch_engine::{Engine, Expiry, Item, Op, Read, Reply, Request, Time, TouchIf};

use crate::copies;
use crate::engine::{Upstream, name_of};
use crate::handle::Times;
use crate::translate::{self, Found, number_of};

/// How often it is tried again because another has changed the item.
const ATTEMPTS: usize = 16;

/// Carries out the touch: [`Reply::Found`], [`Reply::Exists`] if the condition does not hold, [`Reply::Miss`].
pub fn touch<E: Engine>(
    engine: &Upstream<E>,
    near: &mut E::Handle,
    times: Times,
    request: &Request<'_>,
) -> Reply {
    let Op::Read(Read {
        touch: Some(to),
        touch_if,
        ..
    }) = request.op
    else {
        return Reply::Miss;
    };
    let _change = engine.table.change(&request.key);
    copies::remove(near, times.present, request.key);
    for _ in 0..ATTEMPTS {
        let found = match ask(
            engine,
            request,
            Verb::Get,
            Flags::default().bare("vfct"),
            &[],
        ) {
            Ok(answer) => translate::found(answer, times.turn),
            Err(reply) => return reply,
        };
        let (value, item) = match found {
            Ok(Some(Found {
                value: Some(value),
                item,
            })) => (value, item),
            Ok(_) => return Reply::Miss,
            Err(reply) => return reply,
        };
        if !holds(touch_if, &item, to) {
            if item.won {
                engine.give_back(&[(request.key, item.cas)]);
            }
            return Reply::Exists;
        }
        let mut flags = Flags::default();
        flags
            .number('C', item.cas)
            .number('T', number_of(to, times.turn));
        let changed = match item.stale {
            // Who comes next wins the right to renew it, as the look above may have.
            true => ask(engine, request, Verb::Delete, flags.bare("I"), &[]),
            false => {
                flags.number('F', item.flags);
                ask(engine, request, Verb::Set, &flags, &value)
            }
        };
        match changed {
            Ok(Answer {
                kind: Kind::Done, ..
            }) => {
                return Reply::Found(Item { expiry: to, ..item });
            }
            Ok(Answer {
                kind: Kind::NotFound,
                ..
            }) => return Reply::Miss,
            Ok(_) => {}
            Err(reply) => return reply,
        }
    }
    Reply::Exists
}

/// Whether an item is as the touch demands it.
fn holds(touch_if: TouchIf, item: &Item, to: Expiry) -> bool {
    // For ever is the latest end.
    let end = |expiry| match expiry {
        Expiry::Never => Time(u32::MAX),
        Expiry::At(end) => end,
    };
    let expires = item.expiry != Expiry::Never;
    match touch_if {
        TouchIf::Always => true,
        TouchIf::Cas(cas) => item.cas == cas,
        TouchIf::Lasting => !expires,
        TouchIf::Expiring => expires,
        TouchIf::Prolonged => end(item.expiry) < end(to),
        TouchIf::Shortened => end(item.expiry) > end(to),
        TouchIf::ExpiringShortened => expires && end(item.expiry) > end(to),
    }
}

/// One command on the request's key. Errors: the reply to the request.
fn ask<E: Engine>(
    engine: &Upstream<E>,
    request: &Request<'_>,
    verb: Verb,
    flags: &Flags,
    value: &[u8],
) -> Result<Answer, Reply> {
    let command = Command {
        verb,
        key: name_of(&request.key),
        flags,
        value,
        is_read: verb == Verb::Get,
    };
    let answer = engine.client.commands(&[command]).complete();
    let answer = answer.map(|mut answers| answers.swap_remove(0));
    answer.map_err(|error| {
        translate::failed(&request.op, &error).unwrap_or_else(|reply| {
            engine.note_failure(&request.key, &error);
            reply
        })
    })
}
