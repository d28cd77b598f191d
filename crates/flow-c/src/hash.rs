//! From packets to the hashes that tables take.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::slice;

use nuthatch_flow::{FiveTuple, KeyHasher};

use crate::status::{Status, read, small, write};

/// What names a transport connection. Addresses and ports are in network byte order, as they lie in
/// the packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tuple {
    /// Where the packet comes from: 16 bytes, or of version 4 the first four.
    pub source: [u8; 16],
    /// Where it goes, likewise.
    pub destination: [u8; 16],
    /// The sender's port; 0 in protocols without ports.
    pub source_port: u16,
    /// The receiver's port; 0 in protocols without ports.
    pub destination_port: u16,
    /// The IP protocol number: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// The version of IP: 4 or 6.
    pub version: u8,
}

impl Tuple {
    fn address(&self, octets: [u8; 16]) -> Result<IpAddr, Status> {
        let [a, b, c, d, ..] = octets;
        match self.version {
            4 => Ok(Ipv4Addr::new(a, b, c, d).into()),
            6 => Ok(Ipv6Addr::from(octets).into()),
            _ => Err(Status::AddressVersion),
        }
    }

    pub(crate) fn checked(&self) -> Result<FiveTuple, Status> {
        Ok(FiveTuple {
            source: self.address(self.source)?,
            destination: self.address(self.destination)?,
            source_port: u16::from_be(self.source_port),
            destination_port: u16::from_be(self.destination_port),
            protocol: self.protocol,
        })
    }
}

/// Returns a seed for hashes that nobody outside the process can foresee. With it nobody who sends
/// packets can choose flows that fall into one bucket.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_random_seed() -> u64 {
    nuthatch_flow::Config::new(0).seed
}

/// Stores the hash of a connection in `*hash`.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `tuple` is NULL or points to a tuple; `hash` is NULL or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hash_tuple(
    seed: u64,
    tuple: *const Tuple,
    hash: *mut u64,
) -> c_int {
    small(|| {
        // SAFETY: the caller's promise, for both.
        let (tuple, hash) = unsafe { (read(tuple)?, write(hash)?) };
        *hash = tuple.checked()?.hash(&KeyHasher::seeded(seed));
        Ok(0)
    })
}

/// Stores the hashes of `count` keys in `hashes`. The keys are any bytes, `size` of them each, and
/// lie one behind the other; they may have no padding in which two equal keys differ.
///
/// Returns 0 or a negative status. Without keys the pointers may be NULL.
///
/// # Safety
/// `keys` is NULL or leads to `count` times `size` bytes, `hashes` is NULL or has `count` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hash_many(
    seed: u64,
    keys: *const c_void,
    size: usize,
    count: usize,
    hashes: *mut u64,
) -> c_int {
    small(|| {
        if count == 0 {
            return Ok(0);
        }
        if keys.is_null() || hashes.is_null() {
            return Err(Status::NullPointer);
        }
        let most = isize::MAX as usize;
        if count > most / size_of::<u64>() || size > most / count {
            return Err(Status::CountTooLarge);
        }
        // SAFETY: neither is NULL nor larger than half the address space; the rest is the caller's
        // promise.
        let (keys, hashes) = unsafe {
            (
                slice::from_raw_parts(keys.cast::<u8>(), count * size),
                slice::from_raw_parts_mut(hashes, count),
            )
        };
        let hasher = KeyHasher::seeded(seed);
        for (at, hash) in hashes.iter_mut().enumerate() {
            *hash = hasher.hash(&keys[at * size..(at + 1) * size]);
        }
        Ok(0)
    })
}

/// Returns 64 bits for a table of a 32-bit hash, such as a network card computes. Whoever knows the
/// card's key can choose flows that collide.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_widen(hash: u32) -> u64 {
    nuthatch_flow::widen(hash)
}
