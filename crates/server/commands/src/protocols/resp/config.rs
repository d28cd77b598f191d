//! CONFIG: the settings that Redis' clients see, and change.

use nuthatch_channels::tracking;
use nuthatch_engine::Engine;
use nuthatch_engine::namespace::DATABASES;
use nuthatch_resp::{Config, Error, Glob, Values, Writer, integer};
use nuthatch_settings::administration::Action;

use super::phase::Phase;
use crate::context::Context;
use crate::turn::Turn;

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

fn output_limit(bytes: usize) -> String {
    format!("normal 0 0 0 slave 0 0 0 pubsub {bytes} 0 0")
}

/// The hard limit of `pubsub` in groups of four words: kind, hard limit, soft limit, seconds. `None` if it is not such a
/// text.
fn hard_limit(text: &[u8]) -> Option<Option<usize>> {
    let text = std::str::from_utf8(text).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (groups, rest) = words.as_chunks::<4>();
    let mut limit = None;
    for [kind, hard, soft, seconds] in groups {
        let hard = bytes(hard.as_bytes())?;
        bytes(soft.as_bytes())?;
        seconds.parse::<u32>().ok()?;
        match kind.to_ascii_lowercase().as_str() {
            // 0 is no limit in Redis. A limit there is here.
            "pubsub" => limit = Some(hard).filter(|hard| *hard > 0),
            "normal" | "slave" | "replica" => {}
            _ => return None,
        }
    }
    (rest.is_empty() && !groups.is_empty()).then_some(limit)
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
        ("databases", DATABASES.to_string()),
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
    let (mut limit, mut noted, mut output, mut table) = (None, Vec::new(), None, None);
    let memory = cx.shared.engine.stats().memory_limit;
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
        if *known == "maxmemory" {
            match bytes(value) {
                Some(bytes) => limit = Some(bytes),
                None => return refused(&why("argument must be a memory value")),
            }
        } else if *known == OUTPUT_LIMIT {
            match output_asked(value, memory) {
                Ok(hard) => output = hard,
                Err(reason) => return refused(&why(reason)),
            }
        } else if *known == TABLE_LIMIT {
            match table_asked(value, memory) {
                Ok(pairs) => table = pairs,
                Err(reason) => return refused(&why(reason)),
            }
        } else if let Some(checked) = cx.shared.noted.check(known, value) {
            match checked {
                Ok(value) => noted.push((*known, value)),
                Err(reason) => return refused(&why(reason)),
            }
        } else if now.as_bytes() != *value {
            return refused(&why("it cannot be changed here"));
        }
    }
    if let Some(why) = limit.and_then(|bytes| set_memory(cx, bytes).err()) {
        let name = b"maxmemory";
        return refused(&Error::Config { name, why });
    }
    if let Some(bytes) = output {
        cx.shared.mail_bounds.set_each_max(bytes);
    }
    if let Some(pairs) = table {
        cx.shared.tracking.set_pairs_max(pairs);
    }
    cx.shared.note_settings(noted);
    Some(())
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

/// A size as Redis reads it: `100mb`, `1g`, `4096`.
fn bytes(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    usize::try_from(integer(number)?).ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{bytes, hard_limit};

    #[test]
    fn the_limit_of_messages_is_among_others() {
        for (text, expected) in [
            ("pubsub 1mb 0 0", Some(Some(1 << 20))),
            ("normal 0 0 0 pubsub 32mb 8mb 60", Some(Some(32 << 20))),
            ("slave 0 0 0", Some(None)),
            ("pubsub 0 0 0", Some(None)),
            ("pubsub 1mb 0", None),
            ("foo 1mb 0 0", None),
            ("", None),
        ] {
            assert_eq!(hard_limit(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_in_redis() {
        for (text, expected) in [
            (&b"4096"[..], Some(4096)),
            (b"64mb", Some(64 << 20)),
            (b"1G", Some(1_000_000_000)),
            (b"2kB", Some(2048)),
            (b"x", None),
            (b"1tb", None),
            (b"", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }
}
