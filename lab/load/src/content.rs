//! Values that prove whose they are, whatever their size: those of the workload with a checksum, and where they are too
//! short for it, bytes of a hash of their key.

use nuthatch_base::hash::KeyHasher;
use nuthatch_workload::value;

/// Any fixed seed: writer and reader have the same.
const HASHER: KeyHasher = KeyHasher::seeded(0x10AD);

/// Writes the value of a key over the whole of `room`. The stamp is the writer's own.
pub fn write(key: &[u8], stamp: u64, room: &mut [u8]) {
    if room.len() >= value::len_min(key.len()) {
        return value::write(key, stamp, room);
    }
    let proof = HASHER.hash(key).to_le_bytes();
    for part in room.chunks_mut(proof.len()) {
        part.copy_from_slice(&proof[..part.len()]);
    }
}

/// True if these bytes were written for this key, together and whole. Those of a very short value are the same for one in
/// some hundreds of keys.
pub fn vouches(key: &[u8], bytes: &[u8]) -> bool {
    if bytes.len() >= value::len_min(key.len()) {
        return value::check(key, bytes).is_ok();
    }
    let proof = HASHER.hash(key).to_le_bytes();
    bytes
        .chunks(proof.len())
        .all(|part| *part == proof[..part.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_any_size_vouches_for_its_key_only() {
        for size in [1, 2, 7, 8, 9, 20, 29, 30, 31, 1000] {
            let mut room = vec![0; size];
            write(b"key-01", 7, &mut room);
            assert!(vouches(b"key-01", &room), "{size}");
            assert!(!vouches(b"key-02", &room), "{size}");
            room[size / 2] ^= 1;
            assert!(!vouches(b"key-01", &room), "{size}");
        }
    }
}
