//! Policies of a log: which page is emptied next, which of its items stay, and where a new item goes.
//!
//! A policy only decides. It has neither threads nor memory: it is asked with plain numbers, and answers with plain
//! numbers. So the store runs it, with many threads, and so does the simulator of `nuthatch-lab hit-ratio`, with one.
//!
//! ```text
//!  stored --admit--> probation queue --judge--> main queue --judge--> main queue again
//!            |                          |                     |
//!            +-- to main, if a ghost    +-- leaves: a ghost   +-- leaves: a ghost
//! ```
//!
//! * [`s3_fifo`]: two queues and ghosts, the default; and the same for hits by bytes
//! * [`sieve`]: one hand, which passes over what it has kept
//! * [`cost`], [`mean`]: what an item pays for its size
//!
//! A policy is a file here that implements [`LogPolicy`], its `mod`, and its line in [`POLICIES`]. From there it has
//! its name behind `--eviction`, and in the simulator.

pub mod cost;
pub mod mean;
pub mod s3_fifo;
pub mod sieve;

use std::fmt;

// Not the models': what a thread does must be right whatever a hint says.
use std::sync::atomic::{AtomicU64, Ordering};

/// All policies of a log. The first is the default.
pub static POLICIES: &[&LogPolicyKind] = &[&s3_fifo::KIND, &s3_fifo::BYTES, &sieve::KIND];

/// A policy, as chosen before a log is made.
pub struct LogPolicyKind {
    /// The name that users type.
    pub name: &'static str,
    /// What it is, for a help text.
    pub help: &'static str,
    /// True if it is asked about [ghosts](Ghost): the log keeps none otherwise.
    pub ghosts: bool,
    /// Makes the policy.
    pub build: fn() -> Box<dyn LogPolicy>,
}

impl LogPolicyKind {
    /// The default.
    pub fn default_kind() -> &'static Self {
        POLICIES[0]
    }

    /// The policy with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICIES.iter().copied().find(|kind| kind.name == name)
    }
}

impl PartialEq for LogPolicyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for LogPolicyKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// The decisions about the items of a log.
///
/// Items stay in the order in which they came until their page is emptied: a policy chooses between the oldest pages of
/// two queues. What stays is appended to the main queue.
///
/// The store calls the methods from several threads at once, `admit` for each item that is stored. So state is kept in
/// [`Hint`]s.
pub trait LogPolicy: Send + Sync {
    /// The queue of an item that is stored, and that was evicted not too long ago.
    fn admit(&self, ghost: &Ghost, memory: &Memory) -> Queue;

    /// Notes the queues, whenever a page is opened.
    fn note_queues(&self, queues: &Queues, memory: &Memory);

    /// How many of so many pages in the probation queue do not count uses yet: its newest.
    fn uncounted(&self, probation: usize) -> usize;

    /// The probation queue's share of all pages, in parts of [`UNIT`]. When memory is short for the first time, the
    /// other pages become the main queue.
    fn probation(&self, memory: &Memory) -> usize;

    /// The queue whose oldest page is emptied next. If it has none that can be emptied, the other one's is. `pages`: of
    /// [`Queue::Probation`] and [`Queue::Main`].
    fn next(&self, pages: [usize; 2], memory: &Memory) -> Next;

    /// Notes that the oldest page of a queue is being emptied; `pages` are those that are left.
    fn note_emptying(&self, queue: Queue, pages: [usize; 2], memory: &Memory);

    /// Notes that the oldest page of a queue has [gone to the back](Next::stays_at).
    fn note_stay(&self, queue: Queue);

    /// The uses that are left to an item that stays, or `None` if it leaves its queue.
    fn judge(&self, queue: Queue, item: &Candidate, memory: &Memory) -> Option<u8>;

    /// Notes that an item has left.
    fn note_eviction(&self, queue: Queue, item: &Evicted);
}

/// The whole of which shares of the memory are parts: 64ths.
pub const UNIT: usize = 64;

/// Which of the two queues a page is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// New items, until they have shown that they are used.
    Probation = 0,
    /// Items that stayed when their page was emptied.
    Main = 1,
}

/// The page that is emptied next: the oldest of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The queue.
    pub queue: Queue,
    /// If at least so many of the page's items were used since it came to its place, it goes to the back of the queue
    /// as it is, each of these items pays a use, and the policy is asked again.
    pub stays_at: Option<usize>,
}

impl Next {
    /// The oldest page of this queue, whatever is in it.
    pub fn of(queue: Queue) -> Self {
        Self {
            queue,
            stays_at: None,
        }
    }
}

/// The memory when a policy is asked, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The limit.
    pub limit: usize,
    /// A page.
    pub page: usize,
    /// The mean size of the items in the pages emptied lately; 0 before the first.
    pub mean: usize,
}

impl Memory {
    /// How many items of the mean size there are.
    pub fn items(&self) -> u64 {
        (self.limit / self.mean.max(1)) as u64
    }
}

/// The queues when a page is opened.
#[derive(Clone, Copy, Debug)]
pub struct Queues {
    /// Pages of [`Queue::Probation`] and [`Queue::Main`].
    pub pages: [usize; 2],
    /// Ghosts inserted since the oldest page of the main queue was opened.
    pub turnover: u64,
    /// Ages of ghosts are exact to so many ghosts.
    pub grain: u64,
}

/// An item that left, and is stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ghost {
    /// The queue that it left.
    pub queue: Queue,
    /// About how many items have left since.
    pub age: u64,
}

/// An item that is to stay or to leave.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Uses since it came or was passed last: up to three.
    pub uses: u8,
    /// All bytes that it takes.
    pub bytes: usize,
    /// A random number, all of which are equally probable. It stays the same as long as the item lies where it is.
    pub random: u32,
}

/// An item that has left.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    /// All bytes that it took.
    pub bytes: usize,
    /// True if it was ever used.
    pub fetched: bool,
}

/// A number that several threads read and write in no particular order. Of two changes at the same time one may be
/// lost: no decision may depend on more than about its value.
#[derive(Default)]
pub struct Hint(AtomicU64);

impl Hint {
    /// A number to begin with.
    pub fn new(number: u64) -> Self {
        Self(AtomicU64::new(number))
    }

    /// The number.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        // Relaxed, here and below: a hint.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Adds to it.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MEMORY: Memory = Memory {
        limit: 1 << 20,
        page: 1 << 14,
        mean: 100,
    };

    /// A log that is emptied by a policy must come to an end: an item that is not used leaves sooner or later.
    #[test]
    fn what_is_not_used_leaves_under_every_policy() {
        for kind in POLICIES {
            let policy = (kind.build)();
            for queue in [Queue::Probation, Queue::Main] {
                for bytes in [1, 100, 10_000] {
                    let mut uses = Some(3);
                    for random in (0..1000_u32).map(|number| number.wrapping_mul(0x9e37_79b9)) {
                        uses = uses.and_then(|uses| {
                            let item = Candidate {
                                uses,
                                bytes,
                                random,
                            };
                            policy.judge(queue, &item, &MEMORY)
                        });
                    }
                    assert_eq!(uses, None, "{kind:?} keeps {bytes} bytes in {queue:?}");
                }
            }
        }
    }

    #[test]
    fn policies_have_names_of_their_own() {
        for kind in POLICIES {
            assert_eq!(LogPolicyKind::named(kind.name), Some(*kind));
        }
        assert_eq!(LogPolicyKind::named("none"), None);
    }
}
