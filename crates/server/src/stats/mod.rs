//! What the server says of itself: the `stats` commands, one file each where they are long.

pub(crate) mod connections;
pub(crate) mod counters;
mod general;
mod hash;
pub(crate) mod histogram;
mod hits;
pub(crate) mod hot;
pub(crate) mod latency;
pub(crate) mod prefixes;
mod settings;
pub(crate) mod sizes;
mod slabs;
mod without_meaning;

use std::fmt::Display;
use std::io::Write;

use nuthatch_engine::Engine;
use nuthatch_protocol::{Words, encode};

use crate::account::Level;
use crate::protocols::memcached::Phase;
use crate::protocols::memcached::admin::number;
use crate::protocols::memcached::dump::{CLASSES_MAX, Classes, Dump, DumpStyle};
use crate::slice::Slice;
use crate::stage::Stage;
use crate::stats::histogram::ItemSizes;

/// Instead of a report whose length nothing bounds, while buffers are many.
const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory writing stats\r\n";

/// Instead of a walk over all items, while there is another.
const BUSY: &[u8] = b"BUSY currently processing crawler request\r\n";

/// Hears of statistics, a name and a value each.
pub(crate) type Hear<'w> = dyn FnMut(&str, &str) + 'w;

/// Statistics on their way to who hears of them.
pub(crate) struct Report<'w, 'h> {
    hear: &'w mut Hear<'h>,
}

impl Report<'_, '_> {
    pub(crate) fn line(&mut self, name: &str, value: impl Display) {
        (self.hear)(name, &value.to_string());
    }

    /// One of many things, by its number.
    pub(crate) fn line_of(&mut self, number: usize, name: &str, value: impl Display) {
        self.line(&format!("{number}:{name}"), value);
    }

    /// One of a size class.
    fn line_of_items(&mut self, class: usize, name: &str, value: impl Display) {
        self.line(&format!("items:{class}:{name}"), value);
    }
}

/// What became of a wish for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    All,
    /// There is no such topic.
    Unknown,
    /// Their length is bounded by nothing, and buffers are many.
    NoMemory,
    /// They show keys, which `-X` forbids.
    Forbidden,
}

/// True for a topic that is told in answer to a datagram: numbers alone, which cost little.
pub(crate) fn is_for_datagrams(topic: &[u8]) -> bool {
    matches!(topic, b"" | b"settings" | b"items" | b"slabs" | b"latency")
}

/// Tells the statistics of a topic; the general ones if it is empty.
pub(crate) fn tell(stage: &Stage<'_, '_>, topic: &[u8], hear: &mut Hear<'_>) -> Told {
    let shared = stage.shared;
    let report = &mut Report { hear };
    match topic {
        b"" => general::report(report, shared, stage.now),
        b"settings" => settings::report(report, shared),
        b"hash" => hash::report(report, shared),
        b"hits" => hits::report(report, shared),
        b"latency" => latency::report(report, shared.inboxes.iter().map(|inbox| &inbox.latencies)),
        b"hotkeys" if !shared.live.allow_dump() => return Told::Forbidden,
        b"hotkeys" => hot::report(report, shared.inboxes.iter().map(|inbox| &inbox.hot)),
        b"items" => slabs::items(report, &shared.engine.stats(), stage.now),
        b"slabs" => slabs::slabs(report, &shared.engine.stats(), &shared.totals()),
        // Only the text protocol has time to count them: see `command`.
        b"sizes" => report.line("sizes_status", "disabled"),
        b"conns" if shared.account.level() >= Level::Full => return Told::NoMemory,
        b"conns" => shared
            .registry
            .report(report, &shared.addresses, stage.info, stage.now),
        b"extstore" => {}
        _ => return Told::Unknown,
    }
    Told::All
}

/// Answers `stats` with these words behind it.
pub(crate) fn command(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    words: Words<'_>,
) {
    let out = slice.output.text();
    let mut words = words.iter();
    match words.next() {
        Some(b"reset") => {
            stage.shared.reset_stats();
            out.extend_from_slice(encode::RESET);
        }
        Some(b"detail") => {
            let word = words.next().unwrap_or_default();
            let told = detail(stage, word, &mut |text| out.extend_from_slice(text));
            out.extend_from_slice(match told {
                Told::All if word == b"dump" => b"",
                Told::All => encode::OK,
                Told::Unknown => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
                Told::NoMemory => NO_MEMORY,
                Told::Forbidden => b"CLIENT_ERROR stats detail not allowed\r\n",
            });
        }
        Some(b"sizes") => match Dump::alone(stage.shared) {
            Some(permit) => {
                let style = DumpStyle::Sizes(ItemSizes::default());
                *phase = Phase::Dump(Box::new(Dump::new(style, Classes::ALL, Some(permit))));
            }
            None => out.extend_from_slice(BUSY),
        },
        Some(b"cachedump") => match cachedump(stage, words.next(), words.next()) {
            Ok(dump) => *phase = Phase::Dump(Box::new(dump)),
            Err(error) => out.extend_from_slice(error),
        },
        topic => {
            let told = tell(stage, topic.unwrap_or_default(), &mut |name, value| {
                // A Vec takes all that is written to it.
                let _ = write!(out, "STAT {name} {value}\r\n");
            });
            out.extend_from_slice(match told {
                Told::All => encode::END,
                Told::Unknown => b"ERROR\r\n",
                Told::NoMemory => NO_MEMORY,
                Told::Forbidden => b"CLIENT_ERROR stats hotkeys not allowed\r\n",
            });
        }
    }
}

/// `stats detail` with `on`, `off` or `dump`, which tells lines to their `END`.
pub(crate) fn detail(stage: &Stage<'_, '_>, word: &[u8], hear: &mut dyn FnMut(&[u8])) -> Told {
    let prefixes = &stage.shared.prefixes;
    match word {
        _ if !stage.shared.live.allow_dump() => return Told::Forbidden,
        b"on" => prefixes.enable(true),
        b"off" => prefixes.enable(false),
        b"dump" if stage.shared.account.level() >= Level::Full => return Told::NoMemory,
        b"dump" => hear(&prefixes.dump()),
        _ => return Told::Unknown,
    }
    Told::All
}

/// `stats cachedump <class> <limit>`, where limit 0 is none.
fn cachedump(
    stage: &Stage<'_, '_>,
    class: Option<&[u8]>,
    limit: Option<&[u8]>,
) -> Result<Dump, &'static [u8]> {
    if !stage.shared.live.allow_dump() {
        return Err(b"CLIENT_ERROR stats cachedump not allowed\r\n");
    }
    let (Some(class), Some(limit)) = (class, limit) else {
        return Err(b"CLIENT_ERROR bad command line\r\n");
    };
    let (Some(class), Some(limit)) = (number::<u32>(class), number::<u32>(limit)) else {
        return Err(b"CLIENT_ERROR bad command line format\r\n");
    };
    if class as usize >= CLASSES_MAX {
        return Err(b"CLIENT_ERROR Illegal slab id\r\n");
    }
    let left = if limit == 0 {
        usize::MAX
    } else {
        limit as usize
    };
    let style = DumpStyle::Cache { left };
    Ok(Dump::new(style, Classes::one(class as usize), None))
}
