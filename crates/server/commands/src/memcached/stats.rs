//! The `stats` command: [`nuthatch_state::reports`] writes most topics, and topics that walk over items become a dump.

use std::io::Write;

use nuthatch_protocol::{Words, encode};
use nuthatch_settings::administration::Action;
use nuthatch_state::reports::{self as reports, Outcome};
use nuthatch_state::telemetry::histogram::ItemSizes;

use super::arguments::number;
use super::dump::{CLASSES_MAX, Classes, Dump, DumpFormat};
use super::phase::Phase;
use crate::context::Context;
use crate::turn::Turn;

/// The refusal of a report of unbounded length, while the connections' buffers hold much.
const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory writing stats\r\n";

/// The refusal of a walk over all items, while another one runs.
const BUSY: &[u8] = b"BUSY currently processing crawler request\r\n";

/// Answers `stats` with these arguments.
pub fn command(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, words: Words<'_>) {
    let out = turn.output.text();
    let mut words = words.iter();
    match words.next() {
        Some(b"reset") if !cx.may(Action::ResetStats) => {
            out.extend_from_slice(b"CLIENT_ERROR stats reset not allowed\r\n");
        }
        Some(b"reset") => {
            cx.shared.reset_stats();
            out.extend_from_slice(encode::RESET);
        }
        Some(b"detail") => {
            let word = words.next().unwrap_or_default();
            let outcome = reports::detail(cx.shared, word, &mut |text| out.extend_from_slice(text));
            out.extend_from_slice(match outcome {
                Outcome::All if word == b"dump" => b"",
                Outcome::All => encode::OK,
                Outcome::Unknown => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
                Outcome::NoMemory => NO_MEMORY,
                Outcome::Forbidden => b"CLIENT_ERROR stats detail not allowed\r\n",
            });
        }
        Some(b"sizes") => match cx.shared.walks.begin_dump() {
            Some(permit) => {
                let format = DumpFormat::Sizes(ItemSizes::default());
                *phase = Phase::Dump(Box::new(Dump::new(format, Classes::ALL, Some(permit))));
            }
            None => out.extend_from_slice(BUSY),
        },
        Some(b"cachedump") => match cachedump(cx, words.next(), words.next()) {
            Ok(dump) => *phase = Phase::Dump(Box::new(dump)),
            Err(error) => out.extend_from_slice(error),
        },
        topic => {
            let outcome = cx.report_stats(topic.unwrap_or_default(), &mut |name, value| {
                // A write to a Vec does not fail.
                let _ = write!(out, "STAT {name} {value}\r\n");
            });
            out.extend_from_slice(match outcome {
                Outcome::All => encode::END,
                Outcome::Unknown => b"ERROR\r\n",
                Outcome::NoMemory => NO_MEMORY,
                Outcome::Forbidden => b"CLIENT_ERROR stats hotkeys not allowed\r\n",
            });
        }
    }
}

/// `stats cachedump <class> <limit>`, where limit 0 is none.
fn cachedump(
    cx: &Context<'_, '_>,
    class: Option<&[u8]>,
    limit: Option<&[u8]>,
) -> Result<Dump, &'static [u8]> {
    if !cx.shared.live.load().allow_dump {
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
    let format = DumpFormat::Cache { left };
    Ok(Dump::new(format, Classes::one(class as usize), None))
}
