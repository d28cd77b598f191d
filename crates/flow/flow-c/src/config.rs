//! The configuration of a table, and the names of its settings.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use nuthatch_flow as flow;

use crate::status::{Out, Status, borrow, catch};

/// Which slots may hold a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Layout {
    /// One bucket of four slots: Open vSwitch's signature cache.
    FourWay = 0,
    /// One bucket of eight slots.
    EightWay = 1,
    /// Two independent buckets of four slots; no key is ever moved between them.
    CuckooLite = 2,
    /// Eight neighbouring buckets of one slot: like hopscotch hashing, without displacement.
    Window = 3,
    /// Two neighbouring buckets of four slots: the paper's 2-4 bounded linear probing.
    Blp2x4 = 4,
    /// Two neighbouring buckets of eight slots.
    Blp2x8 = 5,
}

/// Which entry is replaced when all slots of a flow are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Eviction {
    /// A random one.
    Random = 0,
    /// A random one of the second bucket; needs a layout with two buckets.
    RandomSecond = 1,
    /// The least recently used one; 8 more bytes per slot. Not for shared tables.
    Lru = 2,
    /// A hit moves an entry up by one slot in its bucket; the last one of a random bucket is
    /// replaced.
    Bubble = 3,
    /// Probabilistic Bubble LRU: the same, but a hit moves an entry up with the probability
    /// `swap_probability`, and a new one is inserted at `insert_at`.
    Pblru = 4,
    /// Divide-and-conquer bubble: in a bucket without hits the first entry is replaced, in others the
    /// last one; one flag per bucket. Not for shared tables.
    DcBubble = 5,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Entry {
    /// 4 bytes: 16 bits of the hash, values up to 0xffff. One in some 8,000 lookups of absent flows
    /// finds another flow's value: compare the packet with what the value refers to.
    Tag16 = 0,
    /// 8 bytes: 32 bits of the hash, values up to 0xffffffff.
    Tag32 = 1,
    /// 16 bytes: the whole hash, any value. Not for shared tables.
    Hash64 = 2,
}

/// Where in its bucket PBLRU inserts a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum InsertAt {
    /// Last, in place of the evicted flow: more hits on skewed traffic and during a scan.
    Last = 0,
    /// Before the last one: a new flow survives one more eviction without a hit. The code of PBLRU's
    /// authors uses this, and a swap probability of 1.
    SecondToLast = 1,
}

/// The configuration of a table. Begin with nuthatch_flow_config_default(), so that a field that a
/// later version adds has a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// Slots, at most 2^32; buckets are rounded up to a power of two, at least 8.
    /// nuthatch_flow_get_stats() tells how many slots there are.
    pub entries: u64,
    /// The seed of random choices: the same calls on tables with the same seed do the same.
    pub seed: u64,
    /// PBLRU: the probability that a hit moves an entry up, at most 1. 0 selects the best value for
    /// the kind of table: 1 for a table of one thread, which gives the most hits, and 1/4 for a
    /// shared table, where most hits then write nothing.
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

/// Fills in a configuration for most uses: 2^20 entries of 32 bits of hash and 32 of value, 2-4
/// bounded linear probing, PBLRU that inserts new flows last, and a random seed.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `config` is NULL or points to a nuthatch_flow_config.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_config_default(config: *mut Config) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { Out::checked(config) }?;
        config.set(Config {
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

/// Returns the name of a layout, such as "blp-2-4", or NULL if there is no layout of this number. The
/// caller must not free it. The program nuthatch-lab uses the same names.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_layout_name(layout: u32) -> *const c_char {
    LAYOUTS.name(layout)
}

/// Stores the layout of this name in `*layout`, which may be the field of a configuration.
///
/// Returns 0 or a negative status: UNKNOWN_LAYOUT if no layout has this name. Then `*layout` is not
/// touched.
///
/// # Safety
/// `name` is NULL or a string that ends with 0; `layout` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_layout_from_name(
    name: *const c_char,
    layout: *mut u32,
) -> c_int {
    // SAFETY: the caller's promise.
    catch(|| unsafe { LAYOUTS.number(name, layout) })
}

/// Returns the name of an eviction, such as "pblru", or NULL if there is no eviction of this number.
/// The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_eviction_name(eviction: u32) -> *const c_char {
    EVICTIONS.name(eviction)
}

/// Stores the eviction of this name in `*eviction`, which may be the field of a configuration.
/// PBLRU's parameters are fields of their own.
///
/// Returns 0 or a negative status: UNKNOWN_EVICTION if no eviction has this name. Then `*eviction` is
/// not touched.
///
/// # Safety
/// `name` is NULL or a string that ends with 0; `eviction` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_eviction_from_name(
    name: *const c_char,
    eviction: *mut u32,
) -> c_int {
    // SAFETY: the caller's promise.
    catch(|| unsafe { EVICTIONS.number(name, eviction) })
}

/// Returns the name of an entry, bits of hash + bits of value: "16+16", "32+32" or "64+64". Returns
/// NULL if there is no entry of this number. The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_entry_name(entry: u32) -> *const c_char {
    ENTRIES.name(entry)
}

/// Stores the entry of this name in `*entry`, which may be the field of a configuration.
///
/// Returns 0 or a negative status: UNKNOWN_ENTRY if no entry has this name. Then `*entry` is not
/// touched.
///
/// # Safety
/// `name` is NULL or a string that ends with 0; `entry` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_entry_from_name(
    name: *const c_char,
    entry: *mut u32,
) -> c_int {
    // SAFETY: the caller's promise.
    catch(|| unsafe { ENTRIES.number(name, entry) })
}

/// Returns the name of an insert position, "last" or "second-to-last", or NULL if there is none of
/// this number. The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_insert_at_name(insert_at: u32) -> *const c_char {
    INSERT_POSITIONS.name(insert_at)
}

/// Stores the insert position of this name in `*insert_at`, which may be the field of a
/// configuration.
///
/// Returns 0 or a negative status: UNKNOWN_INSERT_AT if no insert position has this name. Then
/// `*insert_at` is not touched.
///
/// # Safety
/// `name` is NULL or a string that ends with 0; `insert_at` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_insert_at_from_name(
    name: *const c_char,
    insert_at: *mut u32,
) -> c_int {
    // SAFETY: the caller's promise.
    catch(|| unsafe { INSERT_POSITIONS.number(name, insert_at) })
}

/// The values of an enumeration: the number and the name in C, and the value in Rust. C may pass any number, so it is
/// looked up.
struct Values<T: 'static> {
    known: &'static [(u32, &'static CStr, T)],
    unknown: Status,
}

static LAYOUTS: Values<flow::Layout> = Values {
    known: &[
        (Layout::FourWay as u32, c"4-way", flow::Layout::FourWay),
        (Layout::EightWay as u32, c"8-way", flow::Layout::EightWay),
        (
            Layout::CuckooLite as u32,
            c"cuckoo-lite",
            flow::Layout::CuckooLite,
        ),
        (Layout::Window as u32, c"window", flow::Layout::Window),
        (Layout::Blp2x4 as u32, c"blp-2-4", flow::Layout::Blp2x4),
        (Layout::Blp2x8 as u32, c"blp-2-8", flow::Layout::Blp2x8),
    ],
    unknown: Status::UnknownLayout,
};

/// PBLRU stands here with its default parameters: see [`pblru`].
static EVICTIONS: Values<flow::Eviction> = Values {
    known: &[
        (Eviction::Random as u32, c"random", flow::Eviction::Random),
        (
            Eviction::RandomSecond as u32,
            c"random-second",
            flow::Eviction::RandomSecond,
        ),
        (Eviction::Lru as u32, c"lru", flow::Eviction::Lru),
        (Eviction::Bubble as u32, c"bubble", flow::Eviction::Bubble),
        (Eviction::Pblru as u32, c"pblru", flow::Eviction::PBLRU),
        (
            Eviction::DcBubble as u32,
            c"dc-bubble",
            flow::Eviction::DcBubble,
        ),
    ],
    unknown: Status::UnknownEviction,
};

static ENTRIES: Values<flow::Entry> = Values {
    known: &[
        (Entry::Tag16 as u32, c"16+16", flow::Entry::Tag16),
        (Entry::Tag32 as u32, c"32+32", flow::Entry::Tag32),
        (Entry::Hash64 as u32, c"64+64", flow::Entry::Hash64),
    ],
    unknown: Status::UnknownEntry,
};

static INSERT_POSITIONS: Values<flow::InsertAt> = Values {
    known: &[
        (InsertAt::Last as u32, c"last", flow::InsertAt::Last),
        (
            InsertAt::SecondToLast as u32,
            c"second-to-last",
            flow::InsertAt::SecondToLast,
        ),
    ],
    unknown: Status::UnknownInsertAt,
};

impl<T: Copy> Values<T> {
    /// The value of a number from C.
    fn value(&self, number: u32) -> Result<T, Status> {
        let found = self.known.iter().find(|known| known.0 == number);
        found.map(|known| known.2).ok_or(self.unknown)
    }

    /// The name of a number from C; NULL if it is unknown.
    fn name(&self, number: u32) -> *const c_char {
        let found = self.known.iter().find(|known| known.0 == number);
        found.map_or(ptr::null(), |known| known.1.as_ptr())
    }

    /// Stores the number of a name.
    ///
    /// # Safety
    /// `name` is NULL or a string that ends with 0; `number` is NULL or may be written to.
    unsafe fn number(&self, name: *const c_char, number: *mut u32) -> Result<c_int, Status> {
        // SAFETY: the caller's promise.
        let number = unsafe { Out::checked(number) }?;
        if name.is_null() {
            return Err(Status::NullPointer);
        }
        // SAFETY: not NULL, and the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        let found = self.known.iter().find(|known| known.1 == name);
        number.set(found.ok_or(self.unknown)?.0);
        Ok(0)
    }
}

/// Which threads use a table.
#[derive(Clone, Copy)]
pub(crate) enum Sharing {
    /// One at a time.
    Exclusive,
    /// Many at the same time.
    Shared,
}

/// The configuration that a pointer from C points to.
///
/// # Safety
/// `config` is NULL or points to a configuration.
pub(crate) unsafe fn checked(
    config: *const Config,
    sharing: Sharing,
) -> Result<flow::Config, Status> {
    // SAFETY: the caller's promise.
    let config = unsafe { borrow(config) }?;
    let eviction = match EVICTIONS.value(config.eviction)? {
        flow::Eviction::Pblru { .. } => pblru(config, sharing)?,
        other => other,
    };
    Ok(flow::Config::new(config.entries)
        .layout(LAYOUTS.value(config.layout)?)
        .eviction(eviction)
        .entry(ENTRIES.value(config.entry)?)
        .seed(config.seed))
}

/// The only eviction with parameters; the others do not read them.
fn pblru(config: &Config, sharing: Sharing) -> Result<flow::Eviction, Status> {
    let insert = INSERT_POSITIONS.value(config.insert_at)?;
    let swap = match (config.swap_probability, sharing) {
        (0.0, Sharing::Exclusive) => flow::Probability::ALWAYS,
        (0.0, Sharing::Shared) => flow::Probability::QUARTER,
        (probability, _) => flow::Probability::new(probability).ok_or(Status::Probability)?,
    };
    Ok(flow::Eviction::Pblru { insert, swap })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eviction_of(swap_probability: f64, insert_at: InsertAt, sharing: Sharing) -> flow::Eviction {
        let mut config = std::mem::MaybeUninit::uninit();
        // SAFETY: the function writes all of it.
        let mut config = unsafe {
            assert_eq!(nuthatch_flow_config_default(config.as_mut_ptr()), 0);
            config.assume_init()
        };
        config.swap_probability = swap_probability;
        config.insert_at = insert_at as u32;
        // SAFETY: a reference to a configuration.
        unsafe { checked(&config, sharing) }.unwrap().eviction
    }

    #[test]
    fn the_default_swap_probability_depends_on_sharing() {
        let last = |swap, sharing| eviction_of(swap, InsertAt::Last, sharing);
        assert_eq!(last(0.0, Sharing::Exclusive), flow::Eviction::PBLRU);
        assert_eq!(last(0.0, Sharing::Shared), flow::Eviction::PBLRU_SHARED);
        assert_eq!(last(0.25, Sharing::Exclusive), flow::Eviction::PBLRU_SHARED);
        assert_eq!(last(1.0, Sharing::Shared), flow::Eviction::PBLRU);
        let authors = eviction_of(1.0, InsertAt::SecondToLast, Sharing::Exclusive);
        assert_eq!(authors, flow::Eviction::PBLRU_AUTHORS);
    }

    /// Every value of the Rust library has a number, and its name.
    fn complete<T: Copy + PartialEq + std::fmt::Debug>(
        values: &Values<T>,
        all: impl IntoIterator<Item = (T, &'static str)>,
    ) {
        let mut count = 0;
        for (value, name) in all {
            let known = values
                .known
                .iter()
                .find(|known| known.1.to_str() == Ok(name));
            let &(number, _, found) = known.unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!((found, values.value(number)), (value, Ok(value)));
            assert_eq!(number, count, "numbers have a gap, or another order");
            count += 1;
        }
        assert_eq!(values.known.len(), count as usize);
    }

    #[test]
    fn values_and_names_are_those_of_the_rust_library() {
        complete(&LAYOUTS, flow::Layout::ALL.map(|one| (one, one.name())));
        complete(&ENTRIES, flow::Entry::ALL.map(|one| (one, one.name())));
        let evictions = flow::Eviction::ALL.into_iter();
        let kinds = evictions.filter(|&one| one != flow::Eviction::PBLRU_AUTHORS);
        complete(&EVICTIONS, kinds.map(|one| (one, one.name())));
        let positions = [flow::InsertAt::Last, flow::InsertAt::SecondToLast];
        complete(&INSERT_POSITIONS, positions.map(|one| (one, one.name())));
    }
}
