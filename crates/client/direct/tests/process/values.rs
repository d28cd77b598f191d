//! Values that tell in each word whose they are and which version, so that a wrong one, or a mixture, is found.

/// Keys that are stored.
pub const KEYS: u64 = 20_000;

/// Lengths of values: mostly short, some about as long as the longest that the engine copies, some in pieces.
fn len_of(version: u64) -> usize {
    match version % 128 {
        0 => 200_000,
        1..4 => 8 * (1020 + version as usize % 8),
        _ => 8 * (1 + version as usize % 60),
    }
}

/// The value of a version.
pub fn value(key: u64, version: u64) -> Vec<u8> {
    let mut words: Vec<u8> = version.to_le_bytes().into();
    let others = 1..len_of(version) as u64 / 8;
    words.extend(others.flat_map(|at| word(key, version, at).to_le_bytes()));
    words
}

fn word(key: u64, version: u64, at: u64) -> u64 {
    (key << 32 ^ version).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at
}

/// The version of a value, which must be whole.
pub fn check(key: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let version = u64::from_le_bytes(*words.first().expect("a version"));
    assert!(
        rest.is_empty() && bytes.len() == len_of(version),
        "key {key}: {} bytes",
        bytes.len()
    );
    for (at, found) in words.iter().enumerate().skip(1) {
        let expected = word(key, version, at as u64);
        assert_eq!(
            u64::from_le_bytes(*found),
            expected,
            "key {key}, version {version}"
        );
    }
    version
}
