//! The block memory: the bytes that all partitions of an engine share out among themselves.
//!
//! ```text
//!  arena  | block 0: nobody's | block 1: partition 7 | block 2: partition 0 | block 3: pool | ...
//!              |
//!              +-> | line 0 | line 1 | ... | line 63 |     64 bytes each; a word of 64 bits says which
//!                                                          are free
//! ```
//!
//! A block is 4 KiB, 64 lines of 64 bytes. It belongs to one partition or to the pool. Blocks are small so that
//! capacity moves between partitions in small steps, and all are alike: a block can hold anything next, whatever was in
//! it before. So resident memory is bounded by the blocks in use, and no size class can be short of memory while
//! another has some.
//!
//! All accesses to the arena are relaxed loads and stores of whole words, except for the locks of buckets. Only a
//! block's owner writes to it, with two exceptions: the bytes of an element that is NOT READY belong to the client that
//! asked for it, and readers set marks while they hold a bucket's lock. The reference counts (see
//! [`table`](super::table)) or a lock decide which thread may read. The lock or the message by which partitions,
//! buckets and elements change hands orders the accesses.

use std::io;
use std::sync::{Arc, OnceLock};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_base::sync::shim::{AtomicU64, AtomicUsize, Ordering};
use nuthatch_engine::Evictions;

use super::element::Element;
use nuthatch_store::memory::arena::{Address, Arena, WORD};
use nuthatch_store::memory::words::Words;

/// Bytes of a line: one of the processor's caches.
pub const LINE: usize = 64;
/// Words of a line.
pub const LINE_WORDS: usize = LINE / WORD;
/// Lines of a block: their free bits fill a word. Loom models each word by itself.
pub const BLOCK_LINES: u32 = if cfg!(loom) { 16 } else { 64 };
/// Bytes of a block.
pub const BLOCK: usize = LINE * BLOCK_LINES as usize;
/// Words of a block.
pub const BLOCK_WORDS: usize = BLOCK / WORD;
/// Bytes that a block costs: itself, its free bits, its links, its place in the pool.
pub const BLOCK_COST: usize = BLOCK + 2 * WORD + size_of::<u32>();
/// The free bits of a block in which nothing is used.
pub const ALL_FREE: u64 = u64::MAX >> (64 - BLOCK_LINES);
/// A line's number has 31 bits, since a bucket's lock takes the 32nd: 128 GiB.
pub const MEMORY_MAX: usize = (i32::MAX as usize / BLOCK_LINES as usize) * BLOCK;

/// The arena, its blocks, and the pool of those that no partition has.
pub struct BlockMemory {
    /// Its bytes, by line: [`data`](super::data) reads and writes those of elements.
    pub(crate) arena: Arena,
    /// For each block: a bit for each free line. Only its owner has access.
    pub(crate) free: Words,
    /// For each block: its neighbours in its owner's list of blocks with as long a free run.
    pub(crate) links: Words,
    /// Is told of elements that are evicted from any partition.
    pub(crate) evictions: OnceLock<Arc<dyn Evictions>>,
    shared: Shared,
}

/// The fields that all partitions write to, on lines of their own: the addresses above are read all the time.
#[repr(align(128))]
struct Shared {
    pool: Mutex<Pool>,
    /// Lines that all elements have claimed, and how many they may claim; used only where nothing is evicted.
    claimed: AtomicUsize,
    claimable: AtomicUsize,
}

struct Pool {
    /// Blocks that may be given out.
    limit: u32,
    /// Blocks that are given out.
    used: u32,
    /// Blocks that came back.
    returned: Vec<u32>,
    /// The first block never used; block 0 is nobody's, so that line 0 can stand for none.
    fresh: u32,
    /// Blocks that the arena has.
    blocks: u32,
}

impl BlockMemory {
    /// Memory of `limit` bytes, that can be raised to `limit_max` while it is used. Errors: no address
    /// space, or more than [`MEMORY_MAX`].
    pub fn new(limit: usize, limit_max: usize) -> io::Result<Self> {
        let most = limit_max.max(limit);
        if most > MEMORY_MAX {
            let words = format!("memory: at most {} GiB", MEMORY_MAX >> 30);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let blocks = most / BLOCK_COST + 1;
        Ok(Self {
            arena: Arena::reserve(blocks * BLOCK_WORDS, arena_words(limit))?,
            free: Words::reserve(blocks)?,
            links: Words::reserve(blocks)?,
            evictions: OnceLock::new(),
            shared: Shared {
                pool: Mutex::new(Pool {
                    limit: (limit / BLOCK_COST) as u32,
                    used: 0,
                    returned: Vec::new(),
                    fresh: 1,
                    blocks: blocks as u32,
                }),
                claimed: AtomicUsize::new(0),
                claimable: AtomicUsize::new(usize::MAX),
            },
        })
    }

    /// Sets the receiver of elements that are evicted alive. A second one is ignored: there is one server.
    pub fn report_evictions(&self, to: Arc<dyn Evictions>) {
        let _ = self.evictions.set(to);
    }

    /// Where nothing is evicted: limits what elements may claim together, so that all of it always fits.
    ///
    /// A partition has up to a block of lines that another cannot use. So the keys that arrive would decide what still
    /// fits, and a store could be refused although as much was stored before. A limit on the sum leaves the rest as
    /// room to move.
    ///
    /// `bytes` are what all blocks may take. The function sets aside, for each partition, a block of buckets, one that
    /// is partly used and half a one to move in; and a sixteenth of all for more buckets (at most a thirty-second: 4
    /// bytes for two lines at least) and for elements in pieces.
    pub fn limit_claims(&self, bytes: usize, partitions: usize) {
        let lines = bytes / BLOCK_COST * BLOCK_LINES as usize;
        let aside = partitions * (BLOCK_LINES as usize * 5 / 2) + lines / 16;
        let claimable = lines.saturating_sub(aside);
        self.shared.claimable.store(claimable, Ordering::Relaxed);
    }

    pub(crate) fn claim(&self, lines: usize) -> bool {
        // Relaxed, here and below: a sum. Other accesses order the hand-over of the memory itself.
        let most = self.shared.claimable.load(Ordering::Relaxed);
        let fits = |claimed: usize| claimed.checked_add(lines).filter(|&sum| sum <= most);
        self.shared
            .claimed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    pub(crate) fn unclaim(&self, lines: usize) {
        self.shared.claimed.fetch_sub(lines, Ordering::Relaxed);
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // No code that can panic runs under this lock between two changes that belong together.
        self.shared.pool.lock()
    }

    /// A block for a partition, unless that would pass the limit.
    pub fn take(&self) -> Option<u32> {
        let mut pool = self.pool();
        if pool.used >= pool.limit {
            return None;
        }
        let block = pool.returned.pop().or_else(|| {
            (pool.fresh < pool.blocks).then(|| {
                pool.fresh += 1;
                pool.fresh - 1
            })
        })?;
        pool.used += 1;
        Some(block)
    }

    /// Takes a block back. Its last owner no longer uses any line of it.
    pub fn give_back(&self, block: u32) {
        let mut pool = self.pool();
        if pool.used > pool.limit {
            // Under the lock: no thread may take the block, and write to it, before it is released. Where the system's
            // pages are larger than a block (16 or 64 KiB, on aarch64) the memory stays.
            self.arena
                .release(block as usize * BLOCK_WORDS, BLOCK_WORDS);
        }
        pool.used -= 1;
        pool.returned.push(block);
    }

    /// Blocks that are free for any partition to take.
    pub fn blocks_left(&self) -> usize {
        let pool = self.pool();
        pool.limit.saturating_sub(pool.used) as usize
    }

    /// Blocks that partitions must give back, because the limit was lowered.
    pub fn blocks_over(&self) -> usize {
        let pool = self.pool();
        pool.used.saturating_sub(pool.limit) as usize
    }

    /// Bytes taken, with all bookkeeping of the blocks.
    pub fn used(&self) -> usize {
        self.pool().used as usize * BLOCK_COST
    }

    /// The highest limit, in bytes. (The rounding to whole blocks does not matter to a caller that sets this limit.)
    pub fn limit_max(&self) -> usize {
        self.pool().blocks as usize * BLOCK_COST - 1
    }

    /// Changes the limit, in bytes. The most is [`limit_max`](Self::limit_max).
    pub fn set_limit(&self, bytes: usize) {
        let mut pool = self.pool();
        let blocks = (bytes / BLOCK_COST) as u32;
        assert!(
            blocks < pool.blocks,
            "a limit for which there is address space"
        );
        pool.limit = blocks;
        self.arena.expect(arena_words(bytes));
    }

    #[inline(always)]
    pub(crate) fn free_bits(&self, block: u32) -> u64 {
        // Relaxed, here and below: only the block's owner reads it, and the block changes hands under the pool's lock.
        self.free[block as usize].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_free_bits(&self, block: u32, bits: u64) {
        self.free[block as usize].store(bits, Ordering::Relaxed);
    }

    /// The blocks before and behind this one in its list; 0 is none.
    #[inline(always)]
    pub fn links(&self, block: u32) -> (u32, u32) {
        let word = self.links[block as usize].load(Ordering::Relaxed);
        (word as u32, (word >> 32) as u32)
    }

    #[inline(always)]
    pub(crate) fn set_links(&self, block: u32, before: u32, behind: u32) {
        let word = u64::from(before) | u64::from(behind) << 32;
        self.links[block as usize].store(word, Ordering::Relaxed);
    }

    /// Loads a word of a line.
    #[inline(always)]
    pub fn load(&self, line: u32, word: usize) -> u64 {
        self.arena.load(address(line), word)
    }

    /// Stores a word of a line that the caller owns.
    #[inline(always)]
    pub fn store(&self, line: u32, word: usize, value: u64) {
        self.arena.store(address(line), word, value);
    }

    /// A word of a line, which several threads change.
    #[inline(always)]
    pub fn word(&self, line: u32, word: usize) -> &AtomicU64 {
        self.arena.word(address(line), word)
    }

    /// Starts loading a line into the caches.
    #[inline(always)]
    pub fn prefetch(&self, line: u32) {
        nuthatch_store::prefetch::soon(self.arena.pointer(address(line)));
    }

    /// Starts loading an element's key and the beginning of its value.
    #[inline(always)]
    pub fn prefetch_data(&self, element: Element) {
        self.prefetch(element.line().wrapping_add(1));
    }
}

/// Words of the arena that may be used under a limit of so many bytes.
fn arena_words(limit: usize) -> usize {
    (limit / BLOCK_COST + 1) * BLOCK_WORDS
}

/// A line as the arena takes it.
#[inline(always)]
pub(crate) fn address(line: u32) -> Address {
    Address(u64::from(line) * LINE_WORDS as u64)
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri))))]
mod tests {
    use super::*;

    /// True if the system may put the page at this address on a huge one.
    fn may_be_huge(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let holds = |line: &str| {
            let range = line.split(' ').next()?.split_once('-')?;
            let [start, end] = [range.0, range.1].map(|text| usize::from_str_radix(text, 16).ok());
            (start?..end?).contains(&address).then_some(())
        };
        let mut mapping = maps.lines().skip_while(|line| holds(line).is_none());
        let flags = mapping.find_map(|line| line.strip_prefix("VmFlags:"));
        flags.unwrap().split(' ').any(|flag| flag == "hg")
    }

    /// Class of bug: an arena that was never given the number of words in use lay on small pages, at 0.6 of the speed.
    #[test]
    fn what_the_limit_lets_be_used_may_lie_on_huge_pages() {
        const MIB: usize = 1 << 20;
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        let memory = BlockMemory::new(16 * MIB, 64 * MIB).unwrap();
        let at = |mib| may_be_huge(memory.arena.pointer(Address(0)) as usize + mib * MIB);
        assert_eq!([0, 13, 17, 29].map(at), [true, true, false, false]);
        memory.set_limit(32 * MIB);
        assert_eq!([0, 13, 17, 29].map(at), [true; 4]);
    }
}
