//! The layout of symmetric memory. Each PE has the same areas, and uses them as follows:
//!
//! ```text
//!  on a server                                    on a client
//!    requests of each session   <----- Puts -----   requests staged, a copy for each server
//!    replies staged             ------ Puts ---->   replies of each server
//!    what it tells each PE      ------ Puts ---->   control of each server, generations of its pages
//!    its statistics and bars    ------ Puts ---->   statistics and expiration bars of each server
//!    polled numbers and words   <----- Gets -----   the number behind its control, busy words
//!    buckets, pages             <--- Gets, CAS --   busy words, keys seen, landing zones
//! ```
//!
//! A ring's area is a line and the ring's words. Where messages arrive, the line's first word says how far they reach.
//! Where they are staged, it says how far they were taken. Where messages are staged, as many words follow, from which
//! the sender signals how far they reach. Where they arrive, the receiver signals how far they were taken from the line's
//! last words. In the word behind a session's busy word lands the session's Get of the first server's clock.

use nuthatch_fabric::{Address, Fabric, WHOLE};

use crate::block;
use crate::bucket::{self, Pointer};
use crate::classes::{Classes, UNIT};
use crate::config::{Config, ConfigError};
use crate::{bars, stats};

/// Words of a line, so that no two sides write to the same one.
pub const LINE: usize = 8;

/// Words of a ring; few in a model.
pub const RING: usize = if cfg!(loom) { 4 } else { 2048 };

const AREA: usize = LINE + RING;
const STAGED: usize = AREA + RING;

/// Words of a server's statistics, and of its expiration bars behind them: at most as many as a Put keeps whole.
pub const TALLY: usize = stats::WORDS + bars::WORDS;

const _: () = assert!(TALLY <= WHOLE && TALLY.is_multiple_of(LINE));

/// Watches that a server has: each polls all sessions' busy words.
pub const WATCHES: usize = 2;

/// Words of a landing zone: 128 KiB to 1 MiB.
const LANDING_MIN: usize = 1 << 14;
const LANDING_MAX: usize = 1 << 17;

/// Words in which a key is seen.
const KEY_SEEN: usize = block::KEY_READ.next_multiple_of(LINE);

/// The addresses of all areas.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Servers.
    pub servers: usize,
    /// Sessions of each PE.
    pub sessions: usize,
    /// Sessions of all PEs.
    pub all_sessions: usize,
    /// Buckets of a server.
    pub buckets: usize,
    /// Pages of a server.
    pub pages: usize,
    /// Words of a page.
    pub page_words: usize,
    /// The blocks' sizes.
    pub classes: Classes,
    /// Words of a session's landing zone.
    pub landing_words: usize,
    control: Address,
    generations: Address,
    busy: Address,
    notices: Address,
    tallies: Address,
    own_tally: Address,
    received: Address,
    polled: Address,
    requests: Address,
    requests_staged: Address,
    replies: Address,
    replies_staged: Address,
    table: Address,
    blocks: Address,
    keys_seen: Address,
    landing: Address,
    words: usize,
}

/// Hands out addresses, one behind the other.
struct Cursor(u64);

impl Cursor {
    fn take(&mut self, words: usize) -> Address {
        let at = Address(self.0);
        self.0 += words.next_multiple_of(LINE) as u64;
        at
    }
}

impl Layout {
    /// The layout of a store on `pes` PEs, from address 0 on.
    pub fn new(config: &Config, pes: usize) -> Result<Self, ConfigError> {
        config.check(pes)?;
        let (servers, sessions) = (config.servers, config.sessions);
        let (pages, page_words) = (config.pages(), config.page_words());
        let all_sessions = pes * sessions;
        // Two of the largest blocks, or a batch of small ones. A larger block is read alone, and does not land here.
        let landing_words = (2 * page_words).clamp(LANDING_MIN, LANDING_MAX);
        let mut cursor = Cursor(0);
        Ok(Self {
            servers,
            sessions,
            all_sessions,
            buckets: config.bucket_count(),
            pages,
            page_words,
            classes: Classes::of_page(page_words),
            landing_words,
            control: cursor.take(servers * LINE),
            generations: cursor.take(servers * pages),
            busy: cursor.take(sessions * LINE),
            notices: cursor.take(pes * LINE),
            tallies: cursor.take(servers * TALLY),
            own_tally: cursor.take(TALLY),
            received: cursor.take(pes),
            polled: cursor.take(WATCHES * all_sessions),
            requests: cursor.take(all_sessions * AREA),
            requests_staged: cursor.take(sessions * servers * STAGED),
            replies: cursor.take(sessions * servers * AREA),
            replies_staged: cursor.take(all_sessions * STAGED),
            table: cursor.take(config.bucket_count() * bucket::WORDS),
            keys_seen: cursor.take(sessions * KEY_SEEN),
            landing: cursor.take(sessions * landing_words),
            blocks: cursor.take(pages * page_words),
            words: cursor.0 as usize,
        })
    }

    /// Allocates all of it from the fabric. Collective.
    pub fn allocate(mut self, fabric: &impl Fabric) -> Result<Self, ConfigError> {
        let at = fabric.allocate(self.words)?;
        for place in [
            &mut self.control,
            &mut self.generations,
            &mut self.busy,
            &mut self.notices,
            &mut self.tallies,
            &mut self.own_tally,
            &mut self.received,
            &mut self.polled,
            &mut self.requests,
            &mut self.requests_staged,
            &mut self.replies,
            &mut self.replies_staged,
            &mut self.table,
            &mut self.keys_seen,
            &mut self.landing,
            &mut self.blocks,
        ] {
            place.0 += at.0;
        }
        Ok(self)
    }

    /// Zeroes all words that must be zero before a PE reads them: all but blocks, which are made on demand, and landing
    /// zones.
    pub fn zero(&self, fabric: &impl Fabric) {
        let (start, end) = (self.control.0, self.landing.0);
        let words = fabric.local(self.control, (end - start) as usize);
        for word in words {
            // Relaxed: a barrier follows. A word that is zero already is not written, so it costs no memory.
            if word.load(std::sync::atomic::Ordering::Relaxed) != 0 {
                word.store(0, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Words in all.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The PE of a session.
    pub fn pe(&self, session: usize) -> usize {
        session / self.sessions
    }

    /// On a client: a server's control words.
    pub fn control(&self, server: usize) -> Address {
        self.control.plus(server * LINE)
    }

    /// On a client: how often a server's pages changed their class, from the first page on.
    pub fn generations(&self, server: usize) -> Address {
        self.generations.plus(server * self.pages)
    }

    /// On a session's PE: its busy word.
    pub fn busy(&self, session: usize) -> Address {
        self.busy.plus(session % self.sessions * LINE)
    }

    /// On a session's PE: where it gets the first server's clock.
    pub fn clock_seen(&self, session: usize) -> Address {
        self.busy(session).plus(1)
    }

    /// On a server: the words that it tells a PE, as they lie at the PE from [`Layout::control`] on.
    pub fn notices(&self, pe: usize) -> Address {
        self.notices.plus(pe * LINE)
    }

    /// On a client: a server's statistics.
    pub fn tally(&self, server: usize) -> Address {
        self.tallies.plus(server * TALLY)
    }

    /// On a client: a server's expiration bars.
    #[inline]
    pub fn bars(&self, server: usize) -> Address {
        self.tally(server).plus(stats::WORDS)
    }

    /// On a server: its own statistics, and its expiration bars, which it puts to all PEs.
    pub fn own_tally(&self) -> Address {
        self.own_tally
    }

    /// On a server: the number of the notices that it has seen at a PE.
    pub fn received(&self, pe: usize) -> Address {
        self.received.plus(pe)
    }

    /// On a server: the busy word of a session, as a watch has seen it.
    pub fn polled(&self, watch: usize, session: usize) -> Address {
        self.polled.plus(watch * self.all_sessions + session)
    }

    /// On a server: the area of a session's requests.
    pub fn requests(&self, session: usize) -> Address {
        self.requests.plus(session * AREA)
    }

    /// On a session's PE: the area where it stages what it sends to a server.
    pub fn requests_staged(&self, session: usize, server: usize) -> Address {
        let area = self.own_area(session, server);
        self.requests_staged.plus(area * STAGED)
    }

    /// On a session's PE: the area of a server's replies.
    pub fn replies(&self, session: usize, server: usize) -> Address {
        self.replies.plus(self.own_area(session, server) * AREA)
    }

    fn own_area(&self, session: usize, server: usize) -> usize {
        session % self.sessions * self.servers + server
    }

    /// On a server: the area where it stages its replies to a session.
    pub fn replies_staged(&self, session: usize) -> Address {
        self.replies_staged.plus(session * STAGED)
    }

    /// On a server: a bucket.
    pub fn bucket(&self, number: usize) -> Address {
        self.table.plus(number * bucket::WORDS)
    }

    /// The bucket of a hash.
    #[inline(always)]
    pub fn bucket_of(&self, hash: u64) -> usize {
        nuthatch_base::hash::split::bucket(hash, self.buckets as u64 - 1) as usize
    }

    /// On a session's PE: where the key of a block comes that the session is about to lock.
    pub fn key_seen(&self, session: usize) -> Address {
        self.keys_seen.plus(session % self.sessions * KEY_SEEN)
    }

    /// On a session's PE: the landing zone of its Gets.
    pub fn landing(&self, session: usize) -> Address {
        self.landing
            .plus(session % self.sessions * self.landing_words)
    }

    /// On a server: a block's first word.
    #[inline(always)]
    pub fn block(&self, pointer: Pointer) -> Address {
        self.blocks.plus(pointer.place() as usize * UNIT)
    }

    /// Words of a block.
    #[inline(always)]
    pub fn block_words(&self, pointer: Pointer) -> usize {
        self.classes.words(pointer.class())
    }

    /// The page that a block is in.
    #[inline(always)]
    pub fn page_of(&self, pointer: Pointer) -> usize {
        pointer.place() as usize * UNIT / self.page_words
    }

    /// A block by its page and its number there.
    #[inline]
    pub fn pointer(&self, class: usize, page: usize, number: usize) -> Pointer {
        let words = page * self.page_words + number * self.classes.words(class);
        Pointer::new(class, (words / UNIT) as u64)
    }

    /// True if a block can lie where the pointer leads: a reader bounds its Get by this.
    #[inline]
    pub fn is_block(&self, pointer: Pointer) -> bool {
        pointer.class() < self.classes.len()
            && pointer.place() as usize * UNIT + self.block_words(pointer)
                <= self.pages * self.page_words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_do_not_overlap() {
        let config = Config {
            servers: 2,
            sessions: 3,
            ..Config::default()
        };
        let layout = Layout::new(&config, 4).unwrap();
        let mut areas: Vec<(u64, usize)> = Vec::new();
        for server in 0..2 {
            areas.push((layout.control(server).0, LINE));
            areas.push((layout.generations(server).0, layout.pages));
            areas.push((layout.tally(server).0, TALLY));
            for session in 3..6 {
                areas.push((layout.requests_staged(session, server).0, STAGED));
                areas.push((layout.replies(session, server).0, AREA));
            }
        }
        for session in 0..12 {
            areas.push((layout.requests(session).0, AREA));
            areas.push((layout.replies_staged(session).0, STAGED));
        }
        for session in 3..6 {
            areas.push((layout.busy(session).0, LINE));
            areas.push((layout.key_seen(session).0, KEY_SEEN));
            areas.push((layout.landing(session).0, layout.landing_words));
        }
        areas.extend((0..4).map(|pe| (layout.notices(pe).0, LINE)));
        areas.extend((0..4).map(|pe| (layout.received(pe).0, 1)));
        for watch in 0..WATCHES {
            areas.extend((0..12).map(|session| (layout.polled(watch, session).0, 1)));
        }
        areas.push((layout.own_tally().0, TALLY));
        areas.push((layout.bucket(0).0, layout.buckets * bucket::WORDS));
        let all = layout.pages * layout.page_words;
        areas.push((layout.block(Pointer::default()).0, all));
        areas.sort_unstable();
        for pair in areas.windows(2) {
            assert!(pair[0].0 + pair[0].1 as u64 <= pair[1].0, "{pair:?}");
        }
        let (last, words) = areas[areas.len() - 1];
        assert_eq!(last as usize + words, layout.words());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |config: Config, pes| Layout::new(&config, pes).is_err();
        let config = Config::default();
        assert!(!refused(config.clone(), 1));
        assert!(refused(
            Config {
                servers: 2,
                ..config.clone()
            },
            1
        ));
        assert!(refused(
            Config {
                servers: 0,
                ..config.clone()
            },
            1
        ));
        assert!(refused(
            Config {
                sessions: 0,
                ..config.clone()
            },
            1
        ));
        assert!(refused(
            Config {
                sessions: 40_000,
                ..config.clone()
            },
            2
        ));
        assert!(refused(
            Config {
                memory: 1000,
                ..config.clone()
            },
            1
        ));
        assert!(refused(
            Config {
                item_size_max: 40 << 20,
                ..config
            },
            1
        ));
    }
}
