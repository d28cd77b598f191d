//! Table-driven functions (section 5 and appendix A): each byte of the key chooses a word of a table.
//!
//! They need no multiplication, which made them attractive to processors that had a slow one. The letter in the paper's
//! appendix says why they are slow on others: unpacking the bytes takes longer than a multiplication.
//!
//! The paper gives no tables. These are made here, once, by a generator of random words.

/// Words that a byte chooses from.
type Words = [u32; 256];

/// A table for each byte of a 32-bit word.
const TABLES: [Words; 4] = [words(1), words(2), words(3), words(4)];
/// A permutation of the bytes.
const PERMUTATION: [u8; 256] = permutation();
/// The remainder of each byte, for CRC-32 (IEEE 802.3) with its bits reversed.
const REMAINDERS: Words = remainders(0xedb8_8320);

/// "Random table-driven": a table for each byte of the key, the chosen words xored together (tabulation hashing). Bytes
/// from the fifth on use the tables again, turned by a bit for each round, so that equal bytes do not cancel out.
#[inline(always)]
pub fn tabulation(bytes: &[u8]) -> u32 {
    let word = |(place, &byte): (usize, &u8)| {
        TABLES[place % 4][byte as usize].rotate_left((place / 4) as u32)
    };
    bytes
        .iter()
        .enumerate()
        .map(word)
        .fold(0, |sum, word| sum ^ word)
}

/// "Multiple lookups with a single table": the sum turns by five bits before the next byte's word joins it.
#[inline(always)]
pub fn one_table(bytes: &[u8]) -> u32 {
    let join = |sum: u32, &byte: &u8| sum.rotate_left(5) ^ TABLES[0][byte as usize];
    bytes.iter().fold(0, join)
}

/// Pearson's function (CACM, 1990), four times with another first byte, for 32 bits.
#[inline(always)]
pub fn pearson(bytes: &[u8]) -> u32 {
    let run = |first: u8| {
        let turn = |sum: u8, &byte: &u8| PERMUTATION[(sum ^ byte) as usize];
        bytes.iter().fold(first, turn)
    };
    u32::from_le_bytes([run(0), run(1), run(2), run(3)])
}

/// CRC-32 of IEEE 802.3, a byte at a time by a table, as programs computed it before processors had an instruction.
#[inline(always)]
pub fn crc32(bytes: &[u8]) -> u32 {
    let join = |sum: u32, &byte: &u8| sum >> 8 ^ REMAINDERS[(sum as u8 ^ byte) as usize];
    !bytes.iter().fold(!0, join)
}

/// The next number of a generator (SplitMix64), and a random word.
const fn next(state: u64) -> (u64, u32) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, (word >> 32) as u32)
}

const fn words(seed: u64) -> Words {
    let (mut all, mut state, mut number) = ([0; 256], seed << 32, 0);
    while number < 256 {
        (state, all[number]) = next(state);
        number += 1;
    }
    all
}

const fn permutation() -> [u8; 256] {
    let (mut all, mut number) = ([0; 256], 0);
    while number < 256 {
        all[number] = number as u8;
        number += 1;
    }
    let mut state = 5 << 32;
    // From the last place on, each is exchanged with a random one up to it.
    while number > 1 {
        let (after, word) = next(state);
        state = after;
        let other = ((word as u64 * number as u64) >> 32) as usize;
        number -= 1;
        (all[number], all[other]) = (all[other], all[number]);
    }
    all
}

const fn remainders(polynomial: u32) -> Words {
    let (mut all, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = rest >> 1 ^ polynomial & 0_u32.wrapping_sub(rest & 1);
            bit += 1;
        }
        all[byte] = rest;
        byte += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_has_the_catalogues_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn the_permutation_is_one() {
        let mut seen = [false; 256];
        PERMUTATION
            .iter()
            .for_each(|&byte| seen[byte as usize] = true);
        assert!(seen.iter().all(|&seen| seen));
        assert_ne!(PERMUTATION[..4], [0, 1, 2, 3]);
    }

    #[test]
    fn a_byte_changes_all_of_them() {
        for function in [tabulation, one_table, pearson, crc32] {
            for place in 0..16 {
                let mut bytes = [7; 16];
                let before = function(&bytes);
                bytes[place] = 8;
                assert_ne!(function(&bytes), before);
            }
        }
        // Bytes that are equal at places of one table do not cancel out.
        assert_ne!(tabulation(&[9, 0, 0, 0, 9]), tabulation(&[8, 0, 0, 0, 8]));
    }
}
