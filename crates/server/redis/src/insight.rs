//! What the server tells of itself: ROLE, LASTSAVE, SLOWLOG, LATENCY, MEMORY STATS, COMMAND GETKEYS.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::Engine;
use nuthatch_resp::{Constant, Described, Error, Insight, Values, Writer, described, integer};

use crate::acl;
use crate::phase::Phase;

/// Executes `command`.
pub fn command(cx: &Context<'_, '_>, turn: &mut Turn, phase: &Phase, command: Insight<'_>) {
    let mut writer = phase.writer(turn);
    match command {
        Insight::Role => {
            writer.array(3);
            writer.bulk(b"master");
            writer.integer(0);
            writer.array(0);
        }
        Insight::LastSave => writer.integer(last_save(cx)),
        Insight::Constant(Constant::Ok) => writer.ok(),
        Insight::Constant(Constant::Zero) => writer.integer(0),
        Insight::Constant(Constant::Empty) => writer.array(0),
        Insight::Constant(Constant::EmptyMap) => writer.map(0),
        Insight::Constant(Constant::Doctor) => writer.text(
            "This server does not watch single events. The times of its requests are in memcached's stats and in its metrics.",
        ),
        Insight::Acl(acl) => acl::command(cx, &mut writer, phase.user(), acl),
    }
}

/// The moment of the last copy of all items, or of the start, in seconds of unix time.
fn last_save(cx: &Context<'_, '_>) -> i64 {
    match cx.shared.saves.stats().last_done {
        0 => {
            let now = cx.shared.clock.wall().unix().as_secs();
            now.saturating_sub(cx.now.seconds().into()) as i64
        }
        done => done as i64,
    }
}

/// MEMORY STATS.
pub fn memory(cx: &Context<'_, '_>, writer: &mut Writer<'_>) {
    let stats = cx.shared.engine.stats();
    let numbers = [
        ("total.allocated", stats.memory_used),
        ("maxmemory", stats.memory_limit),
        ("keys.count", stats.items),
        ("keys.bytes-per-key", stats.item_bytes / stats.items.max(1)),
        ("dataset.bytes", stats.item_bytes),
    ];
    writer.map(numbers.len() + 1);
    for (name, number) in numbers {
        writer.bulk(name.as_bytes());
        writer.integer(number as i64);
    }
    writer.bulk(b"dataset.percentage");
    writer.double(stats.item_bytes as f64 * 100.0 / stats.memory_used.max(1) as f64);
}

/// COMMAND GETKEYS.
pub fn keys(writer: &mut Writer<'_>, words: Values<'_>) {
    let words: Vec<&[u8]> = words.collect();
    match keys_of(&words) {
        Ok(keys) => {
            writer.array(keys.len());
            keys.into_iter().for_each(|key| writer.bulk(key));
        }
        Err(error) => writer.error(&error),
    }
}

/// The keys among the words of a command.
fn keys_of<'a>(words: &[&'a [u8]]) -> Result<Vec<&'a [u8]>, Error<'static>> {
    let name = words[0];
    let mut all = described().iter();
    let command = all.find(|command| name.eq_ignore_ascii_case(command.name.as_bytes()));
    let command = command.ok_or(Error::COMMAND_INVALID)?;
    let count = words.len() as i64;
    if count != command.arity && (command.arity > 0 || count < -command.arity) {
        return Err(Error::COMMAND_ARITY);
    }
    let Some(places) = places(command, words) else {
        // As in Redis.
        return Ok(Vec::new());
    };
    let keys: Vec<_> = places
        .filter_map(|place| words.get(place).copied())
        .collect();
    match keys.is_empty() {
        true => Err(Error::COMMAND_KEYLESS),
        false => Ok(keys),
    }
}

/// The places of a command's keys. `None` if it says a number of them that it cannot have.
fn places(
    command: &Described,
    words: &[&[u8]],
) -> Option<std::iter::StepBy<std::ops::RangeInclusive<usize>>> {
    // A place behind the last word: there is no key.
    let nowhere = words.len();
    // Behind a number of keys, each of so many words.
    let counted = |at: usize, step: usize| {
        let count = words.get(at).and_then(|word| integer(word))?;
        let count = usize::try_from(count).ok()?;
        let last = at.checked_add(count.checked_mul(step)?)?;
        (last < words.len()).then(|| (at + 1..=last).step_by(step))
    };
    match (command.name, command.keys) {
        ("eval" | "evalsha", _) => counted(2, 1),
        ("msetex", _) => counted(1, 2),
        ("object", _) if words.len() == 3 => Some((2..=2).step_by(1)),
        ("memory", _) if words[1].eq_ignore_ascii_case(b"usage") => Some((2..=2).step_by(1)),
        (_, [0, ..]) => Some((nowhere..=nowhere).step_by(1)),
        (_, [first, last, step]) => {
            let last = match last {
                ..0 => words.len() as i64 + last,
                last => last,
            };
            Some((first as usize..=last as usize).step_by(step as usize))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_commands_have_them() {
        let keys = |line: &'static str| {
            let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            keys_of(&words).map(|keys| keys.join(&b' '))
        };
        for (line, expected) in [
            ("GET a", "a"),
            ("mset a 1 b 2", "a b"),
            ("DEL a b c", "a b c"),
            ("COPY a b REPLACE", "a b"),
            ("EVAL script 2 a b c", "a b"),
            ("MSETEX 2 a 1 b 2 NX", "a b"),
            ("OBJECT ENCODING a", "a"),
            ("MEMORY USAGE a", "a"),
            ("EVAL script 9 a", ""),
        ] {
            assert_eq!(keys(line), Ok(expected.as_bytes().to_vec()), "{line}");
        }
        for (line, error) in [
            ("nothing a", Error::COMMAND_INVALID),
            ("GET", Error::COMMAND_ARITY),
            ("GET a b", Error::COMMAND_ARITY),
            ("EVAL script 0", Error::COMMAND_KEYLESS),
            ("PING", Error::COMMAND_KEYLESS),
            ("MEMORY DOCTOR", Error::COMMAND_KEYLESS),
        ] {
            assert_eq!(keys(line), Err(error), "{line}");
        }
    }
}
