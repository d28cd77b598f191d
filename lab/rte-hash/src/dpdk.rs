//! The table, implemented by the C code beside this crate's sources.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Eviction};

/// Memory that DPDK gets, in MiB: two tables of 2^22 flows. Pages are touched by need only.
const MEMORY_MIB: u32 = 1024;
/// Keys in one of `rte_hash`'s bulk lookups, `BOUNDED_BULK_MAX`.
const BULK: usize = 64;

#[repr(C)]
struct Bounded {
    opaque: [u8; 0],
}

// SAFETY: these are the declarations of c/bounded.h and c/environment.h.
unsafe extern "C" {
    fn environment_start(mebibytes: c_uint, huge_pages: c_int) -> c_int;
    fn environment_error() -> *const c_char;
    fn bounded_create(
        name: *const c_char,
        entries: u32,
        room: u32,
        key_size: u32,
        eviction: c_int,
    ) -> *mut Bounded;
    fn bounded_destroy(table: *mut Bounded);
    fn bounded_lookup(
        table: *const Bounded,
        key: *mut *const c_void,
        hash: *mut u32,
        count: u32,
        value: *mut u64,
    ) -> u64;
    fn bounded_insert(table: *mut Bounded, key: *const c_void, hash: u32, value: u64);
}

/// `rte_hash` as a cache of numbered flows.
#[derive(Debug)]
pub struct RteHash {
    table: NonNull<Bounded>,
    huge_pages: bool,
}

// SAFETY: a table may be used by any thread, one at a time: nothing in it belongs to a thread.
unsafe impl Send for RteHash {}

impl RteHash {
    /// A table of `entries` places, of which at most `room` are taken: the last few are expensive to fill, and
    /// [`RteHash::room_for`] leaves them free. The first call in a process starts DPDK's environment, on huge pages if
    /// enough are free.
    pub fn new(entries: u32, room: u32, eviction: Eviction) -> Result<Self, Error> {
        // The result of the start, for all later calls: DPDK starts once in a process, or never.
        static STARTED: OnceLock<Result<bool, Error>> = OnceLock::new();
        // All tables share one namespace.
        static TABLES: AtomicU32 = AtomicU32::new(0);
        let huge_pages = STARTED.get_or_init(start).clone()?;
        // Relaxed: the numbers must differ, and nothing else.
        let name = format!("nuthatch {}", TABLES.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).expect("a number has no zero byte");
        // SAFETY: the environment runs, and the name lives through the call, which copies it.
        let table = unsafe {
            bounded_create(
                name.as_ptr(),
                entries,
                room,
                size_of::<u64>() as u32,
                eviction as c_int,
            )
        };
        match NonNull::new(table) {
            Some(table) => Ok(Self { table, huge_pages }),
            None => Err(last_error()),
        }
    }

    /// How many flows a table of `entries` places holds well: 15 of 16.
    pub const fn room_for(entries: u32) -> u32 {
        entries - entries / 16
    }

    /// Stores a flow's value, and evicts another flow if necessary. A flow that the table holds gets the new value.
    pub fn insert(&mut self, flow: u64, hash: u64, value: u64) {
        let key = (&raw const flow).cast();
        // SAFETY: the table lives, no other code uses it (`&mut`), and the key has its 8 bytes.
        unsafe { bounded_insert(self.table.as_ptr(), key, hash as u32, value) };
    }

    /// Looks flows up, 64 at a time: their values, a bit in `hits` for each that is found (flow `i` is bit `i % 64` of
    /// word `i / 64`), and how many are found. The value of a miss is 0.
    ///
    /// # Panics
    ///
    /// If there are not as many hashes and values as flows, or too few words of hits.
    pub fn lookup_many(
        &self,
        flows: &[u64],
        hashes: &[u64],
        values: &mut [u64],
        hits: &mut [u64],
    ) -> usize {
        assert_eq!(flows.len(), hashes.len(), "a hash for each flow");
        assert_eq!(flows.len(), values.len(), "a value for each flow");
        let words = flows.len().div_ceil(BULK);
        let bulks = flows.chunks(BULK).zip(hashes.chunks(BULK));
        let bulks = bulks.zip(values.chunks_mut(BULK));
        let mut total = 0;
        for (((flows, hashes), values), word) in bulks.zip(&mut hits[..words]) {
            *word = self.lookup_bulk(flows, hashes, values);
            total += word.count_ones() as usize;
        }
        total
    }

    /// Whether the table lies on huge pages: without them it misses the TLB more often.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    fn lookup_bulk(&self, flows: &[u64], hashes: &[u64], values: &mut [u64]) -> u64 {
        let mut keys = [std::ptr::null(); BULK];
        let mut signatures = [0; BULK];
        for (at, (flow, &hash)) in flows.iter().zip(hashes).enumerate() {
            keys[at] = std::ptr::from_ref(flow).cast();
            signatures[at] = hash as u32;
        }
        // SAFETY: the table lives; as many keys of 8 bytes, signatures and places for values are
        // there as the count says, at most 64.
        unsafe {
            bounded_lookup(
                self.table.as_ptr(),
                keys.as_mut_ptr(),
                signatures.as_mut_ptr(),
                flows.len() as u32,
                values.as_mut_ptr(),
            )
        }
    }
}

impl Drop for RteHash {
    fn drop(&mut self) {
        // SAFETY: `bounded_create` made it, and no other owner is left.
        unsafe { bounded_destroy(self.table.as_ptr()) };
    }
}

/// Starts the environment; whether it has huge pages.
fn start() -> Result<bool, Error> {
    let huge_pages = free_huge_mib() >= MEMORY_MIB;
    // SAFETY: called once a process; it takes numbers only.
    let taken = unsafe { environment_start(MEMORY_MIB, c_int::from(huge_pages)) };
    if taken < 0 {
        return Err(last_error());
    }
    Ok(huge_pages)
}

/// Free huge pages of 2 MiB, in MiB; 0 where the system does not report them.
fn free_huge_mib() -> u32 {
    let free = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let pages: u32 = free.map_or(0, |text| text.trim().parse().unwrap_or(0));
    pages.saturating_mul(2)
}

fn last_error() -> Error {
    // SAFETY: DPDK gives a string that ends, and stays until this thread's next call.
    let text = unsafe { CStr::from_ptr(environment_error()) };
    Error::Dpdk(text.to_string_lossy().into_owned())
}
