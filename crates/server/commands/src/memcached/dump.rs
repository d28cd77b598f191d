//! Replies that are longer than a turn: metadump, mgdump, cachedump. They are made turn by turn, each only when the
//! client has read enough of the earlier output, and block no other client meanwhile.

use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{Cursor, Handle, Visit, Wall};
use nuthatch_protocol::{dump, encode};
use nuthatch_state::telemetry::histogram::ItemSizes;
use nuthatch_state::walks::DumpPermit;

use super::arguments::number;
use crate::context::Context;
use crate::expiry::memcached::unix_seconds;
use crate::turn::Turn;
use crate::work::Work;

/// The number of places that a turn looks at. It depends on the room for output.
const TURN: std::ops::RangeInclusive<usize> = 8..=256;

/// The longest line: a key of 250 bytes, all escaped, and the numbers.
const LINE: usize = 3 * KEY_LEN_MAX + 150;

/// Slab classes of memcached, which has fewer than 64.
pub const CLASSES_MAX: usize = 64;

/// The slab classes whose items are dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u64);

impl Classes {
    pub const ALL: Self = Self(u64::MAX);

    /// `all`, `hash`, or numbers of classes with commas between, before or behind; `None` if it is none of these.
    pub fn parse(word: &[u8]) -> Option<Self> {
        if word == b"all" || word == b"hash" {
            return Some(Self::ALL);
        }
        let mut classes = 0;
        let written = word.split(|&byte| byte == b',');
        for class in written.filter(|class| !class.is_empty()) {
            let class: usize = number(class)?;
            if class == 0 || class >= CLASSES_MAX {
                return None;
            }
            classes |= 1 << class;
        }
        (classes != 0).then_some(Self(classes))
    }

    /// One class; no item has number 0.
    pub fn one(class: usize) -> Self {
        Self(1_u64.checked_shl(class as u32).unwrap_or(0))
    }

    fn contains(self, class: usize) -> bool {
        self == Self::ALL || self.0 & Self::one(class).0 != 0
    }
}

/// How an item is written.
#[derive(Debug)]
pub enum DumpFormat {
    /// metadump
    Meta,
    /// mgdump
    Keys,
    /// stats cachedump, with the number of items that it may still list
    Cache { left: usize },
    /// stats sizes, which lists the number of items of each size, at its end
    Sizes(ItemSizes),
}

/// A dump in progress.
pub struct Dump {
    format: DumpFormat,
    classes: Classes,
    cursor: Cursor,
    _permit: Option<DumpPermit>,
}

impl Dump {
    pub fn new(format: DumpFormat, classes: Classes, permit: Option<DumpPermit>) -> Self {
        Self {
            format,
            classes,
            cursor: Cursor::default(),
            _permit: permit,
        }
    }

    /// Writes one more turn. True if it was the last.
    pub fn go_on(&mut self, cx: &mut Context<'_, '_>, turn: &mut Turn) -> bool {
        let room = turn.limits.output_cap.saturating_sub(turn.output.len());
        let items = (room / LINE).clamp(*TURN.start(), *TURN.end());
        let out = turn.output.text();
        let (classes, wall, now) = (self.classes, cx.shared.clock.wall(), cx.now);
        let (own, format) = (cx.namespace, &mut self.format);
        // An engine copies an item to show it.
        let mut shown = 0;
        let next = cx.handle.visit(now, self.cursor, items, &mut |visit| {
            shown += visit.key.len() + visit.value.len();
            if !classes.contains(visit.footprint.class) {
                return;
            }
            let (namespace, key) = Namespace::split(visit.key);
            let visit = Visit { key, ..visit };
            let is_named = namespace == own && key.len() <= KEY_LEN_MAX;
            match format {
                DumpFormat::Sizes(sizes) => sizes.add(visit.footprint.size),
                // No client of memcached's can ask for such a key of a Redis client.
                _ if !is_named => {}
                DumpFormat::Meta => meta_line(out, &visit, &wall),
                DumpFormat::Keys => dump::key_line(out, visit.key),
                // A key with other bytes was set in base64. It is left out, as in memcached: these lines have no
                // escapes.
                DumpFormat::Cache { left } if *left > 0 && dump::is_plain(visit.key) => {
                    *left -= 1;
                    let end = unix_seconds(visit.item.expiry, &wall).unwrap_or(0);
                    dump::cache_line(out, visit.key, visit.item.value_len, end);
                }
                DumpFormat::Cache { .. } => {}
            }
        });
        cx.work.add(Work::of_places(items));
        cx.work.add(Work::of_bytes(shown));
        let enough = matches!(format, DumpFormat::Cache { left: 0 });
        match next {
            Some(cursor) if !enough => {
                self.cursor = cursor;
                false
            }
            _ => {
                match format {
                    DumpFormat::Keys => out.extend_from_slice(b"EN\r\n"),
                    DumpFormat::Sizes(sizes) => sizes.write(out),
                    _ => out.extend_from_slice(encode::END),
                }
                true
            }
        }
    }
}

fn meta_line(out: &mut Vec<u8>, visit: &Visit<'_>, wall: &Wall) {
    let Visit {
        key,
        item,
        footprint,
        ..
    } = visit;
    let line = dump::MetaLine {
        key,
        expiry: unix_seconds(item.expiry, wall),
        last_access: wall.unix().saturating_sub(item.idle).as_secs(),
        cas: item.cas,
        fetched: item.fetched,
        class: footprint.class,
        size: footprint.size,
        flags: item.flags,
    };
    line.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_words_or_lists_of_numbers() {
        assert_eq!(Classes::parse(b"all"), Some(Classes::ALL));
        let some = Classes::parse(b"1,5").unwrap();
        for same in [&b"1,5,"[..], b",1,5", b"1,,5"] {
            assert_eq!(Classes::parse(same), Some(some));
        }
        assert!(some.contains(1) && some.contains(5) && !some.contains(2));
        for bad in [&b"x"[..], b"", b"0", b"64", b",", b"300"] {
            assert_eq!(Classes::parse(bad), None, "{bad:?}");
        }
    }
}
