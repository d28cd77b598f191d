//! What a cleaning looks at a step ahead.
//!
//! The records of a page that is cleaned are in no cache, and neither are their buckets. A step that began with them would
//! wait for both, one behind the other. So each step leaves three runs of records behind it in different states:
//!
//! ```text
//!  the page:   | cleaned | this run: cleaned now | the next: keys read, buckets requested | behind it: lines requested |
//! ```
//!
//! What is kept between two steps are hashes, and they stay true: the page is closed, so its records neither change their
//! places nor their keys, and a gap in it stays a gap.

use super::clean::{Cleaner, RUN, Relocate};
use super::walk::PageWalk;
use crate::memory::arena::{Address, WORD};
use crate::prefetch;

/// Bytes of a cache line, and lines of the run behind the next one that are requested, at most: those of nine records of
/// 100 bytes. Of longer records a hash needs but the first line.
const LINE: usize = 64;
const LINES_MAX: usize = 16;

/// The hashes of the keys of the records from the place on that a cleaning has come to, in their order. 0: not known, or
/// no item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead([u64; RUN]);

impl Ahead {
    /// The hash of the record that is so many records behind the place, if it is known.
    pub(super) fn hash(&self, record: usize) -> Option<u64> {
        self.0.get(record).copied().filter(|&hash| hash != 0)
    }
}

impl<E: Relocate> Cleaner<'_, E> {
    /// Looks at the next run of a page, `count` records from a word on: all that their cleaning needs is in a cache soon.
    pub(super) fn look_ahead(&self, page: u32, sequence: u64, from: usize, count: usize) -> Ahead {
        let store = self.engine.store();
        let mut hashes = [0; RUN];
        let mut records = 0;
        let walked = self
            .log
            .records(store, page, sequence, from, count, |address, header| {
                if header.is_item()
                    && let Some(key) = store.copy_key(address)
                {
                    let hash = self.engine.hasher().hash(key.bytes());
                    self.engine.prefetch_hash(hash);
                    self.log.history.prefetch(hash);
                    hashes[records] = hash;
                }
                records += 1;
            });
        if let PageWalk::At(end) = walked {
            let words = (end - from).min(LINES_MAX * LINE / WORD);
            let start = u64::from(page) * self.log.page_words() as u64 + end as u64;
            for word in (0..words).step_by(LINE / WORD) {
                prefetch::soon(store.arena.pointer(Address(start + word as u64)));
            }
        }
        Ahead(hashes)
    }
}
