//! memcached's `watch`: clients that receive the server's events, a line per event.
//!
//! A thread writes the lines of its events into the queue of each watcher that wants them, and never waits: a queue is
//! bounded, a line without room is left out, and the watcher is told how many were left out. Without watchers this
//! costs one load per batch.
//!
//! * [`mod@line`]: the form of lines.
//! * [`replies`]: the events of a batch.

pub mod line;
pub mod replies;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
pub use nuthatch_channels::Call;
use nuthatch_channels::bell::Bell;
use nuthatch_engine::{Evicted, Evictions};

use self::line::Lines;

/// Watchers at the same time, as in memcached.
const WATCHERS_MAX: usize = 20;

/// Bytes of lines that wait for one watcher.
pub const QUEUE_BYTES: usize = 256 << 10;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Items that are read.
    Fetches = 1,
    /// Items that are stored or changed.
    Mutations = 2,
    /// Items that clients delete.
    Deletions = 4,
    /// Connections that open and close.
    Connections = 8,
    /// Items that were evicted because memory was short.
    Evictions = 16,
    /// Events of the server itself.
    System = 32,
}

impl Kind {
    fn bit(self) -> u8 {
        self as u8
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Adds the kind that a word of `watch` names. False if it names none.
    ///
    /// Raw commands, which memcached has too, are accepted, but have no lines.
    pub fn add(&mut self, word: &[u8]) -> bool {
        let bits = match word {
            b"fetchers" => Kind::Fetches.bit(),
            b"mutations" => Kind::Mutations.bit(),
            b"deletions" => Kind::Deletions.bit(),
            b"connevents" => Kind::Connections.bit(),
            b"evictions" => Kind::Evictions.bit(),
            b"sysevents" => Kind::System.bit(),
            b"rawcmds" => 0,
            _ => return false,
        };
        self.0 |= bits;
        true
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// True if `kind` is in the set.
    pub fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// All watchers of a server.
#[derive(Default)]
pub struct Hub {
    /// The kinds that any watcher wants. Relaxed everywhere: a watcher may miss events at the moment when it begins.
    wanted: AtomicU8,
    watchers: Mutex<Vec<Arc<Watcher>>>,
    /// Lines so far. All these accesses are Relaxed: statistics, and numbers that only have to differ.
    written: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
}

/// One watcher, with its lines that are not sent yet.
struct Watcher {
    kinds: Kinds,
    queue: Mutex<Queue>,
    /// Answered before the queue is emptied. All lines pass under the queue's lock, so a thread that adds a line after
    /// that rings again.
    bell: Bell,
}

#[derive(Default)]
struct Queue {
    text: Vec<u8>,
    /// Lines left out behind the text.
    skipped: u64,
}

/// A connection that watches. Dropping this ends the watch.
pub struct Watching {
    hub: Arc<Hub>,
    watcher: Arc<Watcher>,
}

/// Statistics of all watchers.
pub struct Totals {
    /// Clients that watch now.
    pub watchers: usize,
    /// Lines that a watcher wanted.
    pub written: u64,
    /// Lines that were sent.
    pub sent: u64,
    /// Lines that had no room.
    pub skipped: u64,
}

impl Hub {
    /// The kinds that any watcher wants.
    #[inline]
    pub fn wanted(&self) -> Kinds {
        Kinds(self.wanted.load(Ordering::Relaxed))
    }

    /// A connection begins to watch. `worker` is called with the connection's id when there are lines. `None` if there
    /// are too many watchers already.
    pub fn watch(
        self: &Arc<Self>,
        kinds: Kinds,
        worker: Arc<dyn Call>,
        connection: usize,
    ) -> Option<Watching> {
        let mut watchers = self.watchers.lock();
        if watchers.len() >= WATCHERS_MAX {
            return None;
        }
        let watcher = Arc::new(Watcher {
            kinds,
            queue: Mutex::default(),
            bell: Bell::new(worker, connection),
        });
        watchers.push(Arc::clone(&watcher));
        self.want(&watchers);
        Some(Watching {
            hub: Arc::clone(self),
            watcher,
        })
    }

    /// Stores the kinds that any of the watchers wants.
    fn want(&self, watchers: &[Arc<Watcher>]) {
        let kinds = watchers
            .iter()
            .fold(0, |kinds, watcher| kinds | watcher.kinds.0);
        self.wanted.store(kinds, Ordering::Relaxed);
    }

    /// The number of a new line.
    fn number(&self) -> u64 {
        self.written.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds lines to the queues of the watchers that want them.
    pub fn publish(&self, lines: &Lines) {
        if lines.is_empty() {
            return;
        }
        for watcher in &*self.watchers.lock() {
            let added = watcher.add(lines);
            self.skipped.fetch_add(added.skipped, Ordering::Relaxed);
            if added.any {
                watcher.bell.ring();
            }
        }
    }

    /// The statistics so far.
    pub fn totals(&self) -> Totals {
        Totals {
            watchers: self.watchers.lock().len(),
            written: self.written.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }
}

impl Evictions for Hub {
    fn are_wanted(&self) -> bool {
        self.wanted().has(Kind::Evictions)
    }

    fn evicted(&self, item: &Evicted<'_>) {
        let mut lines = Lines::new(self);
        lines.add(Kind::Evictions, |out| line::eviction(out, item));
        self.publish(&lines);
    }
}

/// The outcome of an addition of lines.
struct Added {
    any: bool,
    skipped: u64,
}

impl Watcher {
    /// Adds the lines that the watcher wants and has room for.
    fn add(&self, lines: &Lines) -> Added {
        let mut queue = self.queue.lock();
        let before = (queue.text.len(), queue.skipped);
        for (kind, line) in lines.iter() {
            if !self.kinds.has(kind) {
                continue;
            }
            // After a gap, no line is added before the gap is reported.
            if queue.skipped > 0 || queue.text.len() + line.len() > QUEUE_BYTES {
                queue.skipped += 1;
            } else {
                queue.text.extend_from_slice(line);
            }
        }
        Added {
            any: (queue.text.len(), queue.skipped) != before,
            skipped: queue.skipped - before.1,
        }
    }
}

impl Watching {
    /// Moves all waiting lines into an output.
    pub fn take(&self, out: &mut Vec<u8>) {
        self.watcher.bell.answer();
        let Queue { text, skipped } = mem::take(&mut *self.watcher.queue.lock());
        let lines = text.iter().filter(|&&byte| byte == b'\n').count();
        self.hub.sent.fetch_add(lines as u64, Ordering::Relaxed);
        out.extend_from_slice(&text);
        if skipped > 0 {
            out.extend_from_slice(format!("skipped={skipped}\n").as_bytes());
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watchers = self.hub.watchers.lock();
        watchers.retain(|other| !Arc::ptr_eq(other, &self.watcher));
        self.hub.want(&watchers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the calls.
    #[derive(Default)]
    struct Calls(Mutex<Vec<usize>>);

    impl Call for Calls {
        fn call(&self, connection: usize) {
            self.0.lock().push(connection);
        }

        fn end(&self, _: usize, _: u64) {
            unreachable!("nothing overflows here");
        }
    }

    impl Calls {
        fn take(&self) -> Vec<usize> {
            mem::take(&mut *self.0.lock())
        }
    }

    fn kinds(words: &[&str]) -> Kinds {
        let mut kinds = Kinds::default();
        for word in words {
            assert!(kinds.add(word.as_bytes()), "{word}");
        }
        kinds
    }

    fn publish(hub: &Hub, count: usize, kind: Kind) {
        let mut lines = Lines::new(hub);
        for number in 0..count {
            lines.add(kind, |line| {
                line.extend_from_slice(format!("type=test number={number}").as_bytes());
            });
        }
        hub.publish(&lines);
    }

    fn taken(watching: &Watching) -> String {
        let mut out = Vec::new();
        watching.take(&mut out);
        String::from_utf8(out).expect("lines are text")
    }

    #[test]
    fn each_is_told_what_it_wants() {
        let calls = Arc::new(Calls::default());
        let hub = Arc::new(Hub::default());
        assert_eq!(hub.wanted(), Kinds::default());
        let fetches = hub
            .watch(kinds(&["fetchers"]), calls.clone(), 7)
            .expect("room");
        let others = hub.watch(kinds(&["mutations", "deletions"]), calls.clone(), 8);
        let others = others.expect("room");
        publish(&hub, 2, Kind::Fetches);
        publish(&hub, 1, Kind::Deletions);
        publish(&hub, 1, Kind::Connections);
        assert_eq!(calls.take(), [7, 8], "each is called once");
        let lines = taken(&fetches);
        assert_eq!(lines.lines().count(), 2);
        assert!(
            lines.contains(" gid=1 ") && lines.contains(" gid=2 "),
            "{lines}"
        );
        assert!(taken(&others).contains(" gid=3 "));
        assert_eq!(taken(&others), "");
        publish(&hub, 1, Kind::Fetches);
        assert_eq!(calls.take(), [7], "and again when it has come");
        drop(others);
        assert_eq!(hub.wanted(), kinds(&["fetchers"]));
    }

    #[test]
    fn a_slow_one_is_told_how_much_it_missed() {
        let calls = Arc::new(Calls::default());
        let hub = Arc::new(Hub::default());
        let watching = hub
            .watch(kinds(&["fetchers"]), calls.clone(), 0)
            .expect("room");
        publish(&hub, 20_000, Kind::Fetches);
        let skipped = hub.totals().skipped;
        assert!(skipped > 0 && skipped < 20_000, "{skipped}");
        let lines = taken(&watching);
        assert!(lines.len() <= QUEUE_BYTES + 40);
        assert!(lines.ends_with(&format!("\nskipped={skipped}\n")));
        assert_eq!(lines.lines().count() as u64, 20_000 - skipped + 1);
        assert_eq!(hub.totals().sent, 20_000 - skipped);
        // Then it goes on.
        publish(&hub, 1, Kind::Fetches);
        assert_eq!(taken(&watching).lines().count(), 1);
    }

    #[test]
    fn there_is_a_limit_on_watchers() {
        let calls = Arc::new(Calls::default());
        let hub = Arc::new(Hub::default());
        let watch = || hub.watch(kinds(&["fetchers"]), calls.clone(), 0);
        let all: Vec<_> = (0..WATCHERS_MAX).map(|_| watch().expect("room")).collect();
        assert!(watch().is_none());
        drop(all);
        assert_eq!(hub.totals().watchers, 0);
        assert!(watch().is_some());
    }
}
