//! Counts by key prefix: `stats detail on`, `off`, `dump`.
//!
//! Only the keys of text commands (get, gat, set, delete and their variants) are counted, as in
//! memcached. They have neither spaces nor control characters, so a prefix can be written into a line
//! as it is. A key in base64 or one of CPServer's may contain any byte.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_sync::mutex::Mutex;

/// Ends a prefix; keys without one are not counted.
const DELIMITER: u8 = b':';

/// The control character above the printable ones.
const DELETE: u8 = 0x7f;

/// So many prefixes are told apart; later ones are not counted, so that clients who invent them
/// cannot fill the memory, which is beside the engine's limit.
const PREFIXES_MAX: usize = 1 << 12;

/// What is counted of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A get that found the key.
    Hit,
    /// A get that did not.
    Miss,
    /// A store.
    Set,
    /// A delete.
    Delete,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    get: u64,
    hit: u64,
    set: u64,
    del: u64,
}

/// The counters of all prefixes. Off by default, and then they cost one load.
#[derive(Default)]
pub struct Prefixes {
    enabled: AtomicBool,
    counts: Mutex<HashMap<Box<[u8]>, Counts>>,
}

impl Prefixes {
    /// True if events are counted.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: counting may begin a moment late.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Has events counted from now on, or no longer.
    pub fn enable(&self, enabled: bool) {
        // Relaxed: as is_enabled().
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Counts an event of a key. A prefix that no text command can have is left out: its bytes could end a line of the
    /// dump.
    #[cold]
    pub fn record(&self, key: &[u8], event: Event) {
        let Some(end) = key.iter().position(|&byte| byte == DELIMITER) else {
            return;
        };
        let prefix = &key[..end];
        if !prefix.iter().all(|&byte| byte > b' ' && byte != DELETE) {
            return;
        }
        let mut counts = self.counts.lock();
        if !counts.contains_key(prefix) {
            if counts.len() == PREFIXES_MAX {
                return;
            }
            counts.insert(prefix.into(), Counts::default());
        }
        let Some(counts) = counts.get_mut(prefix) else {
            return;
        };
        match event {
            Event::Hit => {
                counts.get += 1;
                counts.hit += 1;
            }
            Event::Miss => counts.get += 1,
            Event::Set => counts.set += 1,
            Event::Delete => counts.del += 1,
        }
    }

    /// `stats reset`.
    pub fn clear(&self) {
        let mut counts = self.counts.lock();
        *counts = HashMap::new();
    }

    /// The lines of `stats detail dump`.
    pub fn dump(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (prefix, counts) in self.counts.lock().iter() {
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let Counts { get, hit, set, del } = counts;
            // A Vec takes all that is written to it.
            let _ = write!(out, " get {get} hit {hit} set {set} del {del}\r\n");
        }
        out.extend_from_slice(b"END\r\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_count_under_what_stands_before_the_first_colon() {
        let prefixes = Prefixes::default();
        for (key, event) in [
            (&b"user:1"[..], Event::Set),
            (b"user:1", Event::Hit),
            (b"user:2", Event::Miss),
            (b"user:1", Event::Delete),
            (b"user", Event::Set),
            (b"x\r\nEND\r\n:1", Event::Set),
            (b"a b:1", Event::Set),
        ] {
            prefixes.record(key, event);
        }
        assert_eq!(
            prefixes.dump(),
            b"PREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n"
        );
        prefixes.clear();
        assert_eq!(prefixes.dump(), b"END\r\n");
    }

    #[test]
    fn their_number_is_bounded() {
        let prefixes = Prefixes::default();
        for number in 0..PREFIXES_MAX + 10 {
            prefixes.record(format!("{number}:").as_bytes(), Event::Set);
        }
        assert_eq!(prefixes.counts.lock().len(), PREFIXES_MAX);
    }
}
