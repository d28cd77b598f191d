//! Hashes of packets' addresses, of any other keys, and of 32-bit hashes.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_flow::{self as flow, FiveTuple, KeyHasher, PACKED};

use crate::arrays::{input, output};
use crate::status::{Out, Status, borrow, catch};

/// The five-tuple of a transport connection. Addresses and ports are in network byte order, as in
/// the packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tuple {
    /// The source address: all 16 bytes, or the first four for IP version 4.
    pub source: [u8; 16],
    /// The destination address, likewise.
    pub destination: [u8; 16],
    /// The source port; 0 in protocols without ports.
    pub source_port: u16,
    /// The destination port; 0 in protocols without ports.
    pub destination_port: u16,
    /// The IP protocol number: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// The IP version: 4 or 6.
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

    pub(crate) fn is_valid(&self) -> bool {
        matches!(self.version, 4 | 6)
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

    /// The same bytes as those of [`FiveTuple::pack`]. Most fields are in place already: hashing takes
    /// 9 cycles a connection this way, and 34 by a [`FiveTuple`].
    #[inline(always)]
    pub(crate) fn packed(&self) -> Result<[u8; PACKED], Status> {
        let (bytes, kinds) = match self.version {
            4 => (u128::from_ne_bytes(FIRST_FOUR), 0b11),
            6 => (u128::MAX, 0),
            _ => return Err(Status::AddressVersion),
        };
        let source = u128::from_ne_bytes(self.source) & bytes;
        let destination = u128::from_ne_bytes(self.destination) & bytes;
        let [a, b] = self.source_port.to_ne_bytes();
        let [c, d] = self.destination_port.to_ne_bytes();
        let rest = [a, b, c, d, self.protocol, kinds, 0, 0];
        let mut packed = [0; PACKED];
        packed[..16].copy_from_slice(&source.to_ne_bytes());
        packed[16..32].copy_from_slice(&destination.to_ne_bytes());
        packed[32..].copy_from_slice(&rest);
        Ok(packed)
    }
}

/// The bytes of an address of version 4.
const FIRST_FOUR: [u8; 16] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A seeded hash function. Many threads may use the same one at the same time.
pub struct Hasher {
    hasher: KeyHasher,
}

/// Creates a hash function and stores it in `*hasher`; NULL if it fails. Destroy it after use. The
/// same seed gives the same hashes in every process. With a seed from nuthatch_flow_random_seed() a
/// sender of packets cannot choose flows that collide in one bucket.
///
/// Returns 0 or a negative status.
///
/// # Safety
/// `hasher` is NULL or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hasher_create(seed: u64, hasher: *mut *mut Hasher) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Out::checked(hasher) }?;
        place.set(std::ptr::null_mut());
        let hasher = KeyHasher::seeded(seed);
        place.set(Box::into_raw(Box::new(Hasher { hasher })));
        Ok(0)
    })
}

/// Frees a hash function; does nothing with NULL.
///
/// # Safety
/// `hasher` is NULL or from nuthatch_flow_hasher_create() and not used during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hasher_destroy(hasher: *mut Hasher) {
    if !hasher.is_null() {
        catch(|| {
            // SAFETY: `nuthatch_flow_hasher_create` made it from a box, and the caller gives it
            // back.
            drop(unsafe { Box::from_raw(hasher) });
            Ok(0)
        });
    }
}

/// Returns a random number, from the operating system's generator, that a sender of packets cannot
/// predict.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_random_seed() -> u64 {
    flow::Config::new(0).seed
}

/// Stores the hashes of `count` connections in `hashes`. If a tuple has a wrong version, the hashes
/// of the tuples before it are stored.
///
/// Returns 0 or a negative status. Without tuples the arrays may be NULL.
///
/// # Safety
/// `hasher` is NULL or a hash function; each array is NULL or as long as `count` says.
/// cbindgen:prefix=NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hash_tuples(
    hasher: *const Hasher,
    tuples: *const Tuple,
    count: usize,
    hashes: *mut u64,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise, for all.
        let (hasher, tuples, hashes) = unsafe {
            (
                borrow(hasher)?,
                input(tuples, count)?,
                output(hashes, count)?,
            )
        };
        for (tuple, hash) in tuples.iter().zip(hashes) {
            *hash = hasher.hasher.hash(&tuple.packed()?);
        }
        Ok(0)
    })
}

/// Stores the hashes of `count` keys in `hashes`. The keys are `size` bytes each and contiguous;
/// structs must have no padding, or set it to zero: its bytes are hashed as well.
///
/// Returns 0 or a negative status. Without keys, or with keys of no bytes, their pointer may be
/// NULL.
///
/// # Safety
/// `hasher` is NULL or a hash function; `keys` is NULL or points to `count` times `size` bytes,
/// `hashes` is NULL or as long as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_flow_hash_keys(
    hasher: *const Hasher,
    keys: *const c_void,
    size: usize,
    count: usize,
    hashes: *mut u64,
) -> c_int {
    catch(|| {
        let bytes = count.checked_mul(size).ok_or(Status::CountTooLarge)?;
        // SAFETY: the caller's promise, for all.
        let (hasher, keys, hashes) = unsafe {
            (
                borrow(hasher)?,
                input(keys.cast::<u8>(), bytes)?,
                output(hashes, count)?,
            )
        };
        for (at, hash) in hashes.iter_mut().enumerate() {
            *hash = hasher.hasher.hash(&keys[at * size..(at + 1) * size]);
        }
        Ok(0)
    })
}

/// Returns the 64 bits that tables take for a hash of 32 bits, such as a network card computes.
///
/// The header has this as an inline function of the same name; the symbol is for other languages.
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_widen(hash: u32) -> u64 {
    flow::widen(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_that_of_the_rust_library() {
        for version in [4, 6] {
            let tuple = Tuple {
                source: std::array::from_fn(|at| at as u8 + 1),
                destination: std::array::from_fn(|at| at as u8 + 101),
                source_port: 0x1234,
                destination_port: 0x5678,
                protocol: 17,
                version,
            };
            assert_eq!(tuple.packed(), Ok(tuple.checked().unwrap().pack()));
        }
        let wrong = Tuple {
            source: [0; 16],
            destination: [0; 16],
            source_port: 0,
            destination_port: 0,
            protocol: 6,
            version: 0,
        };
        assert_eq!(wrong.packed(), Err(Status::AddressVersion));
        assert_eq!(wrong.checked(), Err(Status::AddressVersion));
    }
}
