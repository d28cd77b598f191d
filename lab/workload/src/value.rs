//! Values that check themselves: each carries its key, its length, a stamp and a checksum.
//!
//! ```text
//!  0          8         16       20        24          24 + key
//! +----------+----------+--------+---------+-----------+----------------- - -
//! | checksum |  stamp   | length | key len |  key      | filler, from the stamp
//! +----------+----------+--------+---------+-----------+----------------- - -
//! ```
//!
//! The checksum covers everything behind it, so a value put together from two others is detected.

use nuthatch_base::hash::KeyHasher;

/// Bytes in front of the key.
const FIXED: usize = 24;

/// The checksum's function. Its seed is arbitrary, but must be the same for writer and reader.
const CHECKSUM: KeyHasher = KeyHasher::seeded(0x5EED);

/// The shortest value that can check itself, for keys of this length.
pub const fn len_min(key_len: usize) -> usize {
    FIXED + key_len
}

/// Writes a self-checking value over the whole of `room`. The stamp is the writer's own: a thread
/// and a count, say.
///
/// Panics if `room` is shorter than [`len_min`].
pub fn write(key: &[u8], stamp: u64, room: &mut [u8]) {
    assert!(
        room.len() >= len_min(key.len()),
        "too short to check itself"
    );
    let len = room.len() as u32;
    room[8..16].copy_from_slice(&stamp.to_le_bytes());
    room[16..20].copy_from_slice(&len.to_le_bytes());
    room[20..24].copy_from_slice(&(key.len() as u32).to_le_bytes());
    let (head, filler) = room.split_at_mut(FIXED + key.len());
    head[FIXED..].copy_from_slice(key);
    repeat(crate::seed::mix(stamp).to_le_bytes(), filler);
    let checksum = CHECKSUM.hash(&room[8..]);
    room[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Fills `room` with a pattern, by copying twice as much each time: checks write gigabytes in builds that hardly
/// optimise.
fn repeat(pattern: [u8; 8], room: &mut [u8]) {
    let mut done = pattern.len().min(room.len());
    room[..done].copy_from_slice(&pattern[..done]);
    while done < room.len() {
        let more = done.min(room.len() - done);
        room.copy_within(..more, done);
        done += more;
    }
}

/// A new self-checking value of `len` bytes.
pub fn make(key: &[u8], stamp: u64, len: usize) -> Vec<u8> {
    let mut value = vec![0; len];
    write(key, stamp, &mut value);
    value
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not have the length that it was made with.
    Length,
    /// It is some other key's value.
    Key,
    /// Its bytes are not those that were written together.
    Checksum,
}

/// Checks a value read under `key`, and returns its stamp.
pub fn check(key: &[u8], value: &[u8]) -> Result<u64, Fault> {
    let number = |at: usize| {
        let bytes = value.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    if value.len() < len_min(key.len()) || number(16) != Some(value.len()) {
        return Err(Fault::Length);
    }
    if number(20) != Some(key.len()) || !value[FIXED..].starts_with(key) {
        return Err(Fault::Key);
    }
    if value[..8] != CHECKSUM.hash(&value[8..]).to_le_bytes() {
        return Err(Fault::Checksum);
    }
    let mut stamp = [0; 8];
    stamp.copy_from_slice(&value[8..16]);
    Ok(u64::from_le_bytes(stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_proves_its_key_length_and_stamp() {
        for len in [len_min(3), len_min(3) + 1, 100, 8192, 1 << 20] {
            assert_eq!(check(b"key", &make(b"key", 77, len)), Ok(77));
        }
    }

    #[test]
    fn what_is_wrong_is_found() {
        let good = make(b"key", 1, 200);
        assert_eq!(check(b"yek", &good), Err(Fault::Key));
        assert_eq!(check(b"keys", &good), Err(Fault::Key));
        assert_eq!(check(b"key", &good[..199]), Err(Fault::Length));
        assert_eq!(check(b"key", b""), Err(Fault::Length));
        let other = make(b"key", 2, 200);
        for seam in 1..200 {
            let torn = [&good[..seam], &other[seam..]].concat();
            if torn != good && torn != other {
                assert_eq!(check(b"key", &torn), Err(Fault::Checksum), "seam at {seam}");
            }
        }
    }
}
