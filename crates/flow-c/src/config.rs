//! What a table shall be, as C says it.

use std::ffi::c_int;

use nuthatch_flow as flow;

use crate::status::{Place, Status, read, small};

/// Which slots may hold a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Layout {
    /// One bucket of four slots: Open vSwitch's signature cache.
    FourWay = 0,
    /// One bucket of eight slots.
    EightWay = 1,
    /// Two buckets of four slots, anywhere; nothing is ever kicked out.
    CuckooLite = 2,
    /// Eight neighbouring buckets of one slot: like hopscotch hashing, without displacement.
    Window = 3,
    /// Two neighbouring buckets of four slots: the paper's 2-4 bounded linear probing.
    Blp2x4 = 4,
    /// Two neighbouring buckets of eight slots.
    Blp2x8 = 5,
}

/// Who leaves when all slots of a flow are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Eviction {
    /// Any of them, all alike.
    Random = 0,
    /// Any slot of the second bucket; needs a layout with two.
    RandomSecond = 1,
    /// The one whose last hit is longest ago; 8 more bytes a slot. Not for shared tables.
    Lru = 2,
    /// A hit always moves a flow up in its bucket; the last of a random bucket leaves.
    Bubble = 3,
    /// Probabilistic Bubble LRU: a hit moves a flow up with `swap_probability`; the last of a
    /// random bucket leaves, and the new flow comes in at `insert_at`.
    Pblru = 4,
    /// Divide-and-conquer bubble, with a flag a bucket. Not for shared tables.
    DcBubble = 5,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Entry {
    /// 4 bytes: 16 bits of the hash, values up to 0xffff. One lookup in some 8,000 of a flow that
    /// is not there finds another's value: compare the packet with what the value names.
    Tag16 = 0,
    /// 8 bytes: 32 bits of the hash, values up to 0xffffffff.
    Tag32 = 1,
    /// 16 bytes: the whole hash, any value. Not for shared tables.
    Hash64 = 2,
}

/// Where in its bucket PBLRU puts a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum InsertAt {
    /// In the place of the flow that leaves: keeps more hits on skewed traffic and under a scan.
    Last = 0,
    /// Above the last: a new flow survives one more eviction without a hit. PBLRU as its authors'
    /// code has it is this and a swap probability of 1.
    SecondToLast = 1,
}

/// What a table shall be. Begin with nuthatch_flow_config_default(), so that a field that a later
/// version adds has a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// Slots at least, up to 2^32; rounded up to a power of two of buckets, at least 8 buckets.
    /// nuthatch_flow_get_stats() tells how many there are.
    pub entries: u64,
    /// What random choices follow from: the same calls on tables of the same seed do the same.
    pub seed: u64,
    /// PBLRU: how probably a hit moves a flow up, at most 1. 0 means what suits the table: 1 in a
    /// table of one thread, which keeps most hits, and 1/4 in one that threads share, where most
    /// hits then write nothing.
    pub swap_probability: f64,
    /// One of enum nuthatch_flow_layout.
    pub layout: u32,
    /// One of enum nuthatch_flow_eviction.
    pub eviction: u32,
    /// One of enum nuthatch_flow_entry.
    pub entry: u32,
    /// PBLRU: one of enum nuthatch_flow_insert_at.
    pub insert_at: u32,
}

/// Fills in a table for most: 2^20 entries of 32 bits of hash and 32 of value, 2-4 bounded linear
/// probing, PBLRU that puts new flows last, and a random seed.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a nuthatch_flow_config.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_config_default(config: *mut Config) -> c_int {
    small(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { Place::checked(config) }?;
        config.put(Config {
            entries: 1 << 20,
            // The Rust library draws it from the operating system.
            seed: flow::Config::new(0).seed,
            swap_probability: 0.0,
            layout: Layout::Blp2x4 as u32,
            eviction: Eviction::Pblru as u32,
            entry: Entry::Tag32 as u32,
            insert_at: InsertAt::Last as u32,
        });
        Ok(0)
    })
}

/// Who will use a table.
#[derive(Clone, Copy)]
pub(crate) enum For {
    /// One thread at a time.
    One,
    /// Many threads at the same time.
    Many,
}

/// The configuration that a pointer from C points to.
///
/// # Safety
/// `config` is NULL or points to a configuration.
pub(crate) unsafe fn checked(config: *const Config, whom: For) -> Result<flow::Config, Status> {
    // SAFETY: the caller's promise.
    let config = unsafe { read(config) }?;
    Ok(flow::Config::new(config.entries)
        .layout(layout(config.layout)?)
        .eviction(eviction(config, whom)?)
        .entry(entry(config.entry)?)
        .seed(config.seed))
}

/// C may write any number where an enumeration is meant, so each is looked for.
fn layout(number: u32) -> Result<flow::Layout, Status> {
    const KNOWN: [(Layout, flow::Layout); 6] = [
        (Layout::FourWay, flow::Layout::FourWay),
        (Layout::EightWay, flow::Layout::EightWay),
        (Layout::CuckooLite, flow::Layout::CuckooLite),
        (Layout::Window, flow::Layout::Window),
        (Layout::Blp2x4, flow::Layout::Blp2x4),
        (Layout::Blp2x8, flow::Layout::Blp2x8),
    ];
    let found = KNOWN.iter().find(|known| known.0 as u32 == number);
    found.map(|known| known.1).ok_or(Status::UnknownLayout)
}

fn eviction(config: &Config, whom: For) -> Result<flow::Eviction, Status> {
    let known = [
        (Eviction::Random, flow::Eviction::Random),
        (Eviction::RandomSecond, flow::Eviction::RandomSecond),
        (Eviction::Lru, flow::Eviction::Lru),
        (Eviction::Bubble, flow::Eviction::Bubble),
        (Eviction::DcBubble, flow::Eviction::DcBubble),
    ];
    if config.eviction == Eviction::Pblru as u32 {
        return pblru(config, whom);
    }
    let found = known.iter().find(|known| known.0 as u32 == config.eviction);
    found.map(|known| known.1).ok_or(Status::UnknownEviction)
}

/// The only eviction with parameters; others leave them unread.
fn pblru(config: &Config, whom: For) -> Result<flow::Eviction, Status> {
    let insert = match config.insert_at {
        at if at == InsertAt::Last as u32 => flow::InsertAt::Last,
        at if at == InsertAt::SecondToLast as u32 => flow::InsertAt::SecondToLast,
        _ => return Err(Status::UnknownInsertAt),
    };
    let swap = match (config.swap_probability, whom) {
        (0.0, For::One) => flow::Probability::ALWAYS,
        (0.0, For::Many) => flow::Probability::QUARTER,
        (probability, _) => flow::Probability::new(probability).ok_or(Status::Probability)?,
    };
    Ok(flow::Eviction::Pblru { insert, swap })
}

fn entry(number: u32) -> Result<flow::Entry, Status> {
    const KNOWN: [(Entry, flow::Entry); 3] = [
        (Entry::Tag16, flow::Entry::Tag16),
        (Entry::Tag32, flow::Entry::Tag32),
        (Entry::Hash64, flow::Entry::Hash64),
    ];
    let found = KNOWN.iter().find(|known| known.0 as u32 == number);
    found.map(|known| known.1).ok_or(Status::UnknownEntry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eviction_of(swap_probability: f64, insert_at: InsertAt, whom: For) -> flow::Eviction {
        let mut config = std::mem::MaybeUninit::uninit();
        // SAFETY: the function writes all of it.
        let mut config = unsafe {
            assert_eq!(nuthatch_flow_config_default(config.as_mut_ptr()), 0);
            config.assume_init()
        };
        config.swap_probability = swap_probability;
        config.insert_at = insert_at as u32;
        // SAFETY: a reference to a configuration.
        unsafe { checked(&config, whom) }.unwrap().eviction
    }

    #[test]
    fn the_eviction_that_suits_depends_on_who_uses_the_table() {
        let last = |swap, whom| eviction_of(swap, InsertAt::Last, whom);
        assert_eq!(last(0.0, For::One), flow::Eviction::PBLRU);
        assert_eq!(last(0.0, For::Many), flow::Eviction::PBLRU_SHARED);
        assert_eq!(last(0.25, For::One), flow::Eviction::PBLRU_SHARED);
        assert_eq!(last(1.0, For::Many), flow::Eviction::PBLRU);
        let authors = eviction_of(1.0, InsertAt::SecondToLast, For::One);
        assert_eq!(authors, flow::Eviction::PBLRU_AUTHORS);
    }
}
