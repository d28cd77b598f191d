//! What the server says of itself: the `stats` commands, one file each where they are long.

pub(crate) mod connections;
pub(crate) mod counters;
mod general;
mod hash;
mod hits;
pub(crate) mod prefixes;
mod settings;
mod slabs;

use std::fmt::Display;
use std::io::Write;

use nuthatch_engine::Engine;
use nuthatch_protocol::{Words, encode};

use crate::account::Level;
use crate::commands::Stage;
use crate::commands::admin::number;
use crate::commands::dump::{CLASSES_MAX, Classes, Dump, DumpStyle};
use crate::connection::Phase;
use crate::slice::Slice;

/// Instead of a report whose length nothing bounds, while buffers are many.
const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory writing stats\r\n";

/// Lines of statistics.
pub(crate) struct Report<'w> {
    out: &'w mut Vec<u8>,
}

impl Report<'_> {
    /// `STAT <name> <value>`
    pub(crate) fn line(&mut self, name: &str, value: impl Display) {
        // A Vec takes all that is written to it.
        let _ = write!(self.out, "STAT {name} {value}\r\n");
    }

    /// `STAT <number>:<name> <value>`
    pub(crate) fn line_of(&mut self, number: usize, name: &str, value: impl Display) {
        let _ = write!(self.out, "STAT {number}:{name} {value}\r\n");
    }

    /// `STAT items:<class>:<name> <value>`
    fn line_of_items(&mut self, class: usize, name: &str, value: impl Display) {
        let _ = write!(self.out, "STAT items:{class}:{name} {value}\r\n");
    }

    fn end(self) {
        self.out.extend_from_slice(encode::END);
    }
}

/// Answers `stats` with these words behind it.
pub(crate) fn command(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    words: Words<'_>,
) {
    let shared = stage.shared;
    let out = slice.output.text();
    let mut words = words.iter();
    let Some(topic) = words.next() else {
        let mut report = Report { out };
        general::report(&mut report, shared, stage.now);
        return report.end();
    };
    let mut report = Report { out };
    match topic {
        b"settings" => settings::report(&mut report, shared),
        b"hash" => hash::report(&mut report, shared),
        b"hits" => hits::report(&mut report, shared),
        b"items" => slabs::items(&mut report, &shared.engine.stats()),
        b"slabs" => slabs::slabs(&mut report, &shared.engine.stats()),
        // Sizes are not tracked: memcached answers so without -o track_sizes.
        b"sizes" => report.line("sizes_status", "disabled"),
        b"conns" if shared.account.level() >= Level::Full => {
            return out.extend_from_slice(NO_MEMORY);
        }
        b"conns" => shared
            .registry
            .report(&mut report, &shared.addresses, stage.info, stage.now),
        b"extstore" => {}
        b"reset" => {
            shared.reset_stats();
            return out.extend_from_slice(encode::RESET);
        }
        b"detail" => return detail(stage, out, words.next()),
        b"cachedump" => {
            return match cachedump(stage, words.next(), words.next()) {
                Ok(dump) => *phase = Phase::Dump(Box::new(dump)),
                Err(error) => out.extend_from_slice(error),
            };
        }
        _ => return out.extend_from_slice(b"ERROR\r\n"),
    }
    report.end();
}

/// `stats detail on|off|dump`
fn detail(stage: &Stage<'_, '_>, out: &mut Vec<u8>, word: Option<&[u8]>) {
    let prefixes = &stage.shared.prefixes;
    let answer: &[u8] = match word {
        _ if !stage.shared.live.allow_dump() => b"CLIENT_ERROR stats detail not allowed\r\n",
        Some(b"on") => {
            prefixes.enable(true);
            encode::OK
        }
        Some(b"off") => {
            prefixes.enable(false);
            encode::OK
        }
        Some(b"dump") if stage.shared.account.level() >= Level::Full => NO_MEMORY,
        Some(b"dump") => return prefixes.dump(out),
        _ => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
    };
    out.extend_from_slice(answer);
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
