//! CONFIG: the settings that Redis' clients see, and change.

use nuthatch_channels::tracking;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::Engine;
use nuthatch_resp::{Config, Error, Glob, Values, Writer, bytes, hard_limit, integer};
use nuthatch_settings::administration::Action;
use nuthatch_settings::key_events::KeyEvents;

use crate::phase::Phase;
use crate::transfer::databases;

/// Executes `command`.
pub fn command(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase, command: Config<'_>) {
    let mut writer = phase.writer(turn);
    match command {
        Config::Get(patterns) => get(cx, &mut writer, patterns),
        Config::Set(pairs) => set(cx, &mut writer, pairs),
        Config::ResetStat if !cx.may(Action::ResetStats) => writer.error(&Error::RESET_FORBIDDEN),
        Config::ResetStat => {
            cx.shared.reset_stats();
            writer.ok();
        }
    }
}

/// Redis' limits on what waits for a client, by kind. Here only the hard limit of `pubsub` can be set: it is for all that a
/// client is sent unasked.
const OUTPUT_LIMIT: &str = "client-output-buffer-limit";

/// Redis' limit on the keys that clients track. Here it is one on pairs of a key and a client.
const TABLE_LIMIT: &str = "tracking-table-max-keys";

/// Redis' letters for events about keys.
const KEY_EVENTS: &str = "notify-keyspace-events";

fn output_limit(bytes: usize) -> String {
    format!("normal 0 0 0 slave 0 0 0 pubsub {bytes} 0 0")
}

/// The settings that CONFIG GET shows, in alphabetical order.
fn settings(cx: &Context<'_, '_>) -> Vec<(&'static str, String)> {
    let shared = cx.shared;
    let policy = match shared.engine.evicts() {
        true => "allkeys-lru",
        false => "noeviction",
    };
    let timeout = shared
        .live
        .load()
        .idle_timeout
        .map_or(0, |limit| limit.as_secs());
    let memory = shared.engine.stats().memory_limit;
    let mut settings = vec![
        ("appendonly", "no".into()),
        ("databases", databases(&shared.config).to_string()),
        ("maxclients", shared.live.load().connections_max.to_string()),
        ("maxmemory", memory.to_string()),
        ("maxmemory-policy", policy.into()),
        ("proto-max-bulk-len", cx.limits.value_max.to_string()),
        ("save", String::new()),
        ("timeout", timeout.to_string()),
    ];
    settings.push((OUTPUT_LIMIT, output_limit(shared.mail_bounds.each_max())));
    let pairs = shared.tracking.pairs_max();
    if shared.config.lua {
        let busy = shared.live.load().lua_busy.as_millis().to_string();
        settings.push(("busy-reply-threshold", busy.clone()));
        settings.push(("lua-time-limit", busy));
    }
    settings.push((TABLE_LIMIT, pairs.to_string()));
    settings.push((KEY_EVENTS, shared.key_events.asked().to_string()));
    settings.extend(shared.noted.all());
    settings.sort_unstable_by_key(|(name, _)| *name);
    settings
}

fn get(cx: &Context<'_, '_>, writer: &mut Writer<'_>, patterns: Values<'_>) {
    let mut left = settings(cx);
    let mut found = Vec::new();
    for pattern in patterns {
        let pattern = Glob::new(&pattern.to_ascii_lowercase());
        found.extend(left.extract_if(.., |(name, _)| pattern.matches(name.as_bytes())));
        if left.is_empty() {
            break;
        }
    }
    found.sort_unstable_by_key(|(name, _)| *name);
    writer.map(found.len());
    for (name, value) in found {
        writer.bulk(name.as_bytes());
        writer.bulk(value.as_bytes());
    }
}

/// CONFIG SET: all of its settings are changed, or none. A setting that cannot be changed must be given the value that it
/// has.
fn set(cx: &Context<'_, '_>, writer: &mut Writer<'_>, pairs: Values<'_>) {
    let outcome = try_set(cx, pairs, |error| writer.error(error));
    if outcome.is_some() {
        writer.ok();
    }
}

/// The same. `None` if it was refused.
fn try_set(
    cx: &Context<'_, '_>,
    pairs: Values<'_>,
    mut refuse: impl FnMut(&Error<'_>),
) -> Option<()> {
    let mut refused = |error: &Error<'_>| {
        refuse(error);
        None
    };
    if !cx.may(Action::MemoryLimit) {
        return refused(&Error::CONFIG_FORBIDDEN);
    }
    let words: Vec<&[u8]> = pairs.collect();
    let pairs = words.as_chunks::<2>().0;
    let settings = settings(cx);
    let mut asked = Asked::default();
    for (at, [word, value]) in pairs.iter().enumerate() {
        let name = word.to_ascii_lowercase();
        let why = |why| Error::Config { name: word, why };
        let known = settings.iter().find(|(known, _)| known.as_bytes() == name);
        let Some((known, now)) = known else {
            return refused(&Error::ConfigUnknown(word));
        };
        let mut before = pairs[..at].iter();
        if before.any(|[before, _]| before.eq_ignore_ascii_case(word)) {
            return refused(&why("duplicate parameter"));
        }
        let taken = match asked.take(cx, known, value) {
            Ok(false) if now.as_bytes() != *value => Err("it cannot be changed here"),
            taken => taken,
        };
        if let Err(reason) = taken {
            return refused(&why(reason));
        }
    }
    if let Err(why) = asked.apply(cx) {
        let name = b"maxmemory";
        return refused(&Error::Config { name, why });
    }
    Some(())
}

/// What a CONFIG SET asks for, checked.
#[derive(Default)]
struct Asked {
    memory: Option<usize>,
    output: Option<usize>,
    table: Option<usize>,
    key_events: Option<KeyEvents>,
    noted: Vec<(&'static str, String)>,
}

impl Asked {
    /// Takes a setting. False if it is none that can be changed. Errors: the reason.
    fn take(
        &mut self,
        cx: &Context<'_, '_>,
        name: &'static str,
        value: &[u8],
    ) -> Result<bool, &'static str> {
        let memory = cx.shared.engine.stats().memory_limit;
        match name {
            "maxmemory" => {
                let bytes = bytes(value).ok_or("argument must be a memory value")?;
                self.memory = Some(bytes);
            }
            OUTPUT_LIMIT => self.output = output_asked(value, memory)?,
            TABLE_LIMIT => self.table = table_asked(value, memory)?,
            KEY_EVENTS => self.key_events = Some(key_events_asked(value)?),
            _ => match cx.shared.noted.check(name, value) {
                Some(checked) => self.noted.push((name, checked?)),
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Changes the settings. Errors: the reason why the memory limit cannot be this; then nothing has changed.
    fn apply(self, cx: &Context<'_, '_>) -> Result<(), &'static str> {
        if let Some(bytes) = self.memory {
            set_memory(cx, bytes)?;
        }
        if let Some(bytes) = self.output {
            cx.shared.mail_bounds.set_each_max(bytes);
        }
        if let Some(pairs) = self.table {
            cx.shared.tracking.set_pairs_max(pairs);
        }
        if let Some(events) = self.key_events {
            cx.shared.key_events.ask(events);
        }
        cx.shared.note_settings(self.noted);
        Ok(())
    }
}

/// The hard limit for subscribers, if one was asked for. Errors: the reason.
fn output_asked(value: &[u8], memory: u64) -> Result<Option<usize>, &'static str> {
    match hard_limit(value) {
        Some(Some(hard)) if hard as u64 > memory => Err("the limit must not be above maxmemory"),
        Some(hard) => Ok(hard),
        None => Err("Wrong number of arguments in buffer limit configuration."),
    }
}

/// The most pairs of a key and a client, unless it is 0: that is no limit in Redis, and here there is one. Errors: the
/// reason.
fn table_asked(value: &[u8], memory: u64) -> Result<Option<usize>, &'static str> {
    match integer(value).and_then(|pairs| usize::try_from(pairs).ok()) {
        Some(pairs) if pairs > tracking::pairs_allowed(memory) => {
            Err("so many keys would take more memory than maxmemory")
        }
        Some(pairs) => Ok(Some(pairs).filter(|pairs| *pairs > 0)),
        None => Err("argument couldn't be parsed into an integer"),
    }
}

/// Errors: the reason.
fn key_events_asked(value: &[u8]) -> Result<KeyEvents, &'static str> {
    let text = std::str::from_utf8(value).unwrap_or("?");
    text.parse()
}

/// Errors: the reason.
fn set_memory(cx: &Context<'_, '_>, bytes: usize) -> Result<(), &'static str> {
    if !cx.may_limit_memory_to(bytes) {
        return Err("a limit below the memory in use is not allowed here");
    }
    if let Err(error) = cx.shared.engine.set_memory_limit(bytes) {
        tracing::warn!(%error, bytes, "CONFIG SET maxmemory");
        return Err("this limit is not possible");
    }
    cx.shared.follow_memory_limit();
    Ok(())
}
