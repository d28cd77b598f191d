//! Commands about channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE and their like, PUBSUB.

use nuthatch_channels::subscriptions::Full;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_resp::{ChannelCommand, ChannelKind, Error, Publish, Values, Writer};

use crate::channel_names::ChannelNames;
use crate::delivery;
use crate::phase::Phase;
use crate::walk::Walk;

/// Executes `command`.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ChannelCommand<'_>,
) {
    match command {
        ChannelCommand::Subscribe(kind, names) => subscribe(cx, turn, phase, kind, names),
        ChannelCommand::Unsubscribe(kind, names) => unsubscribe(cx, turn, phase, kind, names),
        ChannelCommand::Publish(message) => publish(cx, turn, phase, &message, message.text),
        ChannelCommand::Names(kind, pattern) => {
            let names = cx.shared.channels.names(kind);
            cx.work.add(Work::of_places(names.len()));
            if let Some(pattern) = pattern {
                return phase.begin_walk(Walk::Channels(ChannelNames::new(names, pattern)));
            }
            cx.work.add(Work::of_commands(names.len()));
            let mut writer = phase.writer(turn);
            writer.array(names.len());
            names.iter().for_each(|name| writer.bulk(name));
        }
        ChannelCommand::Subscribers(kind, names) => {
            let mut writer = phase.writer(turn);
            writer.array(2 * names.len());
            for name in names {
                writer.bulk(name);
                writer.integer(cx.shared.channels.subscribers(kind, name) as i64);
            }
        }
        ChannelCommand::Patterns => {
            let count = cx.shared.channels.count(ChannelKind::Pattern);
            phase.writer(turn).integer(count as i64);
        }
    }
}

/// PUBLISH of this text.
pub fn publish(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &Phase,
    message: &Publish<'_>,
    text: &[u8],
) {
    let published = cx
        .shared
        .channels
        .publish(message.kind, message.channel, text);
    let compared = message.channel.len().saturating_mul(published.words);
    cx.work.add(Work::of_bytes(text.len() + compared));
    cx.work
        .add(Work::of_places(published.receivers + published.compared));
    phase.writer(turn).integer(published.receivers as i64);
}

fn subscribe(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    kind: ChannelKind,
    names: Values<'_>,
) {
    keep(turn, phase);
    for name in names {
        cx.work.add(Work::COMMAND);
        let subscriptions = &mut delivery::mail(cx, turn, phase).subscriptions;
        let before = subscriptions.memory();
        let added = subscriptions.add(kind, name);
        let count = subscriptions.count(kind);
        // Most of it is what a pattern is compiled to.
        let made = subscriptions.memory() - before;
        cx.work.add(Work::of_bytes(made));
        let mut writer = phase.writer(turn);
        match added {
            Ok(()) => confirm(&mut writer, WORDS[kind as usize].0, Some(name), count),
            Err(Full::Connection) => writer.error(&Error::SUBSCRIPTIONS_TOO_MANY),
            Err(Full::Patterns) => writer.error(&Error::PATTERNS_OF_ALL_TOO_MANY),
        }
    }
    note(cx, phase);
}

fn unsubscribe(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    kind: ChannelKind,
    names: Values<'_>,
) {
    keep(turn, phase);
    let (_, word) = WORDS[kind as usize];
    let all = match (names.len(), phase.mail()) {
        (0, Some(mail)) => mail.subscriptions.names(kind),
        _ => Vec::new(),
    };
    let names: Vec<&[u8]> = match all.is_empty() {
        true => names.collect(),
        false => all.iter().map(|name| &**name).collect(),
    };
    cx.work.add(Work::of_commands(names.len()));
    if names.is_empty() {
        let count = phase
            .mail()
            .map_or(0, |mail| mail.subscriptions.count(kind));
        confirm(&mut phase.writer(turn), word, None, count);
    }
    for name in names {
        let mail = phase
            .session
            .as_mut()
            .and_then(|session| session.mail.as_mut());
        let count = mail.map_or(0, |mail| {
            mail.subscriptions.remove(kind, name);
            mail.subscriptions.count(kind)
        });
        confirm(&mut phase.writer(turn), word, Some(name), count);
    }
    note(cx, phase);
}

/// What a client is sent of its subscriptions is no answer: it comes behind CLIENT REPLY OFF and SKIP, too.
fn keep(turn: &mut Turn, phase: &mut Phase) {
    if let Some(session) = &mut phase.session {
        session.keep_what_follows(turn);
    }
}

/// The first word of the answers, by kind.
const WORDS: [(&str, &str); 3] = [
    ("subscribe", "unsubscribe"),
    ("psubscribe", "punsubscribe"),
    ("ssubscribe", "sunsubscribe"),
];

fn confirm(writer: &mut Writer<'_>, word: &str, name: Option<&[u8]>, count: usize) {
    writer.push(3);
    writer.bulk(word.as_bytes());
    match name {
        Some(name) => writer.bulk(name),
        None => writer.null(),
    }
    writer.integer(count as i64);
}

/// Notes whether the connection has subscribed to something, for CLIENT LIST and CLIENT KILL.
fn note(cx: &Context<'_, '_>, phase: &Phase) {
    let numbers = phase
        .mail()
        .map_or([0; 3], |mail| mail.subscriptions.numbers());
    cx.info.set_subscriptions(numbers);
    let is_one = phase.is_subscriber();
    if let Some(mail) = phase.mail() {
        mail.mailbox.set_subscribed(is_one);
    }
}
