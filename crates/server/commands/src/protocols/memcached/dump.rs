//! Replies that are longer than a slice: metadump, mgdump, cachedump. They are made slice by slice, each only when the
//! client has read enough of the earlier output, and block no other client meanwhile.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{Cursor, Footprint, Handle, Visit, Wall};
use nuthatch_protocol::encode;
use nuthatch_state::shared::Shared;
use nuthatch_state::telemetry::histogram::ItemSizes;

use super::arguments::number;
use crate::expiry::memcached::unix_seconds;
use crate::slice::Slice;
use crate::stage::Stage;
use crate::work::Work;

/// The number of places that a slice looks at. It depends on the room for output.
const SLICE: std::ops::RangeInclusive<usize> = 8..=256;

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
pub enum DumpStyle {
    /// metadump
    Meta,
    /// mgdump
    Keys,
    /// stats cachedump, with the number of items that it may still list
    Cache { left: usize },
    /// stats sizes, which lists the number of items of each size, at its end
    Sizes(ItemSizes),
}

/// The right to be the only dump that runs. Dropping it returns the right.
pub struct Permit(Arc<AtomicBool>);

impl Drop for Permit {
    fn drop(&mut self) {
        // Release: pairs with Dump::alone(): the next dump begins after this one has ended.
        self.0.store(false, Ordering::Release);
    }
}

/// A dump in progress.
pub struct Dump {
    style: DumpStyle,
    classes: Classes,
    cursor: Cursor,
    _permit: Option<Permit>,
}

impl Dump {
    pub fn new(style: DumpStyle, classes: Classes, permit: Option<Permit>) -> Self {
        Self {
            style,
            classes,
            cursor: Cursor::default(),
            _permit: permit,
        }
    }

    /// The right to dump, if no other dump has it.
    pub fn alone(shared: &Shared) -> Option<Permit> {
        let dumping = &shared.dumping;
        // Acquire: pairs with the release of the one before.
        let taken = dumping.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| {
            // Relaxed: a statistic.
            shared.dumps.fetch_add(1, Ordering::Relaxed);
            Permit(Arc::clone(dumping))
        })
    }

    /// Writes one more slice. True if it was the last.
    pub fn go_on(&mut self, stage: &mut Stage<'_, '_>, slice: &mut Slice) -> bool {
        let room = slice.terms.output_cap.saturating_sub(slice.output.len());
        let items = (room / LINE).clamp(*SLICE.start(), *SLICE.end());
        let out = slice.output.text();
        let (classes, wall, now) = (self.classes, stage.shared.clock.wall(), stage.now);
        let style = &mut self.style;
        // An engine copies an item to show it.
        let mut shown = 0;
        let next = stage.handle.visit(now, self.cursor, items, &mut |visit| {
            shown += visit.key.len() + visit.value.len();
            if !classes.contains(visit.footprint.class) {
                return;
            }
            match style {
                DumpStyle::Meta => meta_line(out, &visit, &wall),
                DumpStyle::Keys => key_line(out, visit.key),
                // A key with other bytes was set in base64. It is left out, as in memcached: these lines have no
                // escapes.
                DumpStyle::Cache { left } if *left > 0 && is_plain(visit.key) => {
                    *left -= 1;
                    cache_line(out, &visit, &wall);
                }
                DumpStyle::Cache { .. } => {}
                DumpStyle::Sizes(sizes) => sizes.add(visit.footprint.size),
            }
        });
        stage.work.add(Work::of_places(items));
        stage.work.add(Work::of_bytes(shown));
        let enough = matches!(style, DumpStyle::Cache { left: 0 });
        match next {
            Some(cursor) if !enough => {
                self.cursor = cursor;
                false
            }
            _ => {
                match style {
                    DumpStyle::Keys => out.extend_from_slice(b"EN\r\n"),
                    DumpStyle::Sizes(sizes) => sizes.write(out),
                    _ => out.extend_from_slice(encode::END),
                }
                true
            }
        }
    }
}

fn meta_line(out: &mut Vec<u8>, visit: &Visit<'_>, wall: &Wall) {
    out.extend_from_slice(b"key=");
    uri_encode(out, visit.key);
    let exp = unix_seconds(visit.item.expiry, wall).map_or(-1, |second| second as i64);
    let la = wall.unix().saturating_sub(visit.item.idle).as_secs();
    let cas = visit.item.cas;
    let fetch = if visit.item.fetched { "yes" } else { "no" };
    let flags = visit.item.flags;
    let Footprint { class, size } = visit.footprint;
    // A write to a Vec does not fail. The line ends with a space and without `\r`, as memcached's does.
    let _ = writeln!(
        out,
        " exp={exp} la={la} cas={cas} fetch={fetch} cls={class} size={size} flags={flags} "
    );
}

/// The line of a key in mgdump: a meta get that a client can send as it is.
fn key_line(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"mg ");
    if is_plain(key) {
        out.extend_from_slice(key);
    } else {
        nuthatch_protocol::encode_key(out, key);
        out.extend_from_slice(b" b");
    }
    out.extend_from_slice(b"\r\n");
}

fn cache_line(out: &mut Vec<u8>, visit: &Visit<'_>, wall: &Wall) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(visit.key);
    let exp = unix_seconds(visit.item.expiry, wall).unwrap_or(0);
    let len = visit.item.value_len;
    // A write to a Vec does not fail.
    let _ = write!(out, " [{len} b; {exp} s]\r\n");
}

/// True if a text command can name this key. Other keys need base64.
fn is_plain(key: &[u8]) -> bool {
    key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

/// Writes a key URI-encoded: keys may have any byte, and these lines may not.
fn uri_encode(out: &mut Vec<u8>, key: &[u8]) {
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
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

    #[test]
    fn odd_keys_are_escaped() {
        let mut out = Vec::new();
        uri_encode(&mut out, b"a:b \xff~");
        assert_eq!(out, b"a%3Ab%20%FF~");
        out.clear();
        key_line(&mut out, b"plain");
        key_line(&mut out, b"a b");
        assert_eq!(out, b"mg plain\r\nmg YSBi b\r\n");
    }
}
