//! Keys in memory: one vector of one type, for each kind of key.

use crate::distribution::avalanche::{Avalanche, avalanche};
use crate::functions::{Entry, HashedKey};
use crate::key::{Block, Dentry, Inode, Kind, Numeric, Page, flipped};
use crate::table::Table;

/// Keys that avalanche is measured on.
const AVALANCHE_KEYS: usize = 1024;
/// Bits of a byte key that are flipped, at most.
const AVALANCHE_BITS: usize = 128;

/// Keys of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Pages.
    Page(Vec<Page>),
    /// Blocks.
    Block(Vec<Block>),
    /// Dentries.
    Dentry(Vec<Dentry>),
    /// Inodes.
    Inode(Vec<Inode>),
    /// Numbers.
    Number(Vec<u64>),
    /// Bytes.
    Bytes(ByteKeys),
}

/// Keys of bytes, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteKeys {
    /// Adds one.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// All of them.
    pub fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let ranges = starts.zip(&self.ends);
        ranges
            .map(|(&start, &end)| &self.bytes[start..end])
            .collect()
    }

    fn of(slices: &[&[u8]]) -> Self {
        let mut keys = Self::default();
        for slice in slices {
            keys.push(slice);
        }
        keys
    }
}

/// A type of key that can be analysed.
pub trait AnyKey: HashedKey {
    /// How many bits of the bucket flip with one bit of the key, over the bits in which the keys differ: the other bits
    /// are the same in all keys. `None` for tables that are no power of two, where a bucket's bits mean little.
    fn avalanche(entry: &Entry, keys: &[Self], table: Table) -> Option<Avalanche>;
}

macro_rules! numeric {
    ($($key:ty),*) => {
        $(impl AnyKey for $key {
            fn avalanche(entry: &Entry, keys: &[Self], table: Table) -> Option<Avalanche> {
                numeric_avalanche(entry, keys, table)
            }
        })*
    };
}

numeric!(Page, Block, Dentry, Inode, u64);

fn numeric_avalanche<K>(entry: &Entry, keys: &[K], table: Table) -> Option<Avalanche>
where
    K: Numeric + HashedKey,
{
    let function = K::function(entry)?;
    let varying = varying_bits(keys);
    let keys: Vec<K> = sampled(keys).copied().collect();
    let bucket = |key| function.bucket(key, table);
    let bits = table.is_power_of_two().then(|| table.bits())?;
    avalanche(&keys, &varying, bits, flipped::<K>, bucket)
}

/// As many keys as avalanche is measured on, from all over them.
fn sampled<K>(keys: &[K]) -> impl Iterator<Item = &K> {
    keys.iter()
        .step_by(keys.len().div_ceil(AVALANCHE_KEYS).max(1))
}

/// The bits in which any two of the keys differ.
fn varying_bits<K: Numeric>(keys: &[K]) -> Vec<u32> {
    let Some(first) = keys.first().map(|key| key.parts()) else {
        return Vec::new();
    };
    let differ = keys.iter().fold([0, 0], |[one, other], key| {
        let [first_part, second_part] = key.parts();
        [
            one | (first_part ^ first[0]),
            other | (second_part ^ first[1]),
        ]
    });
    let bits = 0..K::BITS;
    bits.filter(|bit| differ[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
        .collect()
}

impl AnyKey for &[u8] {
    fn avalanche(entry: &Entry, keys: &[Self], table: Table) -> Option<Avalanche> {
        /// A key by its number, with at most one bit flipped.
        type Flipped = (usize, Option<u32>);
        let keys: Vec<&[u8]> = sampled(keys).copied().collect();
        let shortest = keys.iter().map(|key| key.len()).min()?;
        let bits: Vec<u32> = (0..(shortest * 8).min(AVALANCHE_BITS) as u32).collect();
        let numbers: Vec<Flipped> = (0..keys.len()).map(|number| (number, None)).collect();
        let bucket = |(number, bit): Flipped| {
            let mut bytes = keys[number].to_vec();
            if let Some(bit) = bit {
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            // The function for keys that live as long as this copy.
            <&[u8]>::function(entry).map_or(0, |function| function.bucket(&bytes, table))
        };
        let bits_out = table.is_power_of_two().then(|| table.bits())?;
        avalanche(
            &numbers,
            &bits,
            bits_out,
            |(number, _), bit| (number, Some(bit)),
            bucket,
        )
    }
}

/// Work on keys, generic over their type.
pub trait Visit {
    /// The result.
    type Output;

    /// Does the work.
    fn visit<K: AnyKey>(self, keys: &[K]) -> Self::Output;
}

impl Keys {
    /// No keys of this kind.
    pub fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Page => Self::Page(Vec::new()),
            Kind::Block => Self::Block(Vec::new()),
            Kind::Dentry => Self::Dentry(Vec::new()),
            Kind::Inode => Self::Inode(Vec::new()),
            Kind::Number => Self::Number(Vec::new()),
            Kind::Bytes => Self::Bytes(ByteKeys::default()),
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Page(keys) => keys.len(),
            Self::Block(keys) => keys.len(),
            Self::Dentry(keys) => keys.len(),
            Self::Inode(keys) => keys.len(),
            Self::Number(keys) => keys.len(),
            Self::Bytes(keys) => keys.ends.len(),
        }
    }

    /// Bytes of memory they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Page(keys) => size_of_val(&keys[..]),
            Self::Block(keys) => size_of_val(&keys[..]),
            Self::Dentry(keys) => size_of_val(&keys[..]),
            Self::Inode(keys) => size_of_val(&keys[..]),
            Self::Number(keys) => size_of_val(&keys[..]),
            Self::Bytes(keys) => keys.bytes.len() + size_of_val(&keys.ends[..]),
        }
    }

    /// Calls the visitor with these keys.
    pub fn visit<V: Visit>(&self, visit: V) -> V::Output {
        match self {
            Self::Page(keys) => visit.visit(keys),
            Self::Block(keys) => visit.visit(keys),
            Self::Dentry(keys) => visit.visit(keys),
            Self::Inode(keys) => visit.visit(keys),
            Self::Number(keys) => visit.visit(keys),
            Self::Bytes(keys) => visit.visit(&keys.slices()),
        }
    }

    /// Moves all keys of `more`, which is of the same kind, behind these.
    pub fn append(&mut self, more: &mut Self) {
        match (self, more) {
            (Self::Page(keys), Self::Page(more)) => keys.append(more),
            (Self::Block(keys), Self::Block(more)) => keys.append(more),
            (Self::Dentry(keys), Self::Dentry(more)) => keys.append(more),
            (Self::Inode(keys), Self::Inode(more)) => keys.append(more),
            (Self::Number(keys), Self::Number(more)) => keys.append(more),
            (Self::Bytes(keys), Self::Bytes(more)) => {
                for key in more.slices() {
                    keys.push(key);
                }
                *more = ByteKeys::default();
            }
            _ => unreachable!("one source has keys of one kind"),
        }
    }

    /// Keeps one of several equal keys. They are sorted afterwards.
    pub fn deduplicate(&mut self) {
        fn sort<K: Ord>(keys: &mut Vec<K>) {
            keys.sort_unstable();
            keys.dedup();
        }
        match self {
            Self::Page(keys) => sort(keys),
            Self::Block(keys) => sort(keys),
            Self::Dentry(keys) => sort(keys),
            Self::Inode(keys) => sort(keys),
            Self::Number(keys) => sort(keys),
            Self::Bytes(keys) => {
                let mut slices = keys.slices();
                sort(&mut slices);
                *keys = ByteKeys::of(&slices);
            }
        }
    }

    /// Keeps every second key.
    pub fn halve(&mut self) {
        fn every_second<K>(keys: &mut Vec<K>) {
            let mut number = 0;
            keys.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        match self {
            Self::Page(keys) => every_second(keys),
            Self::Block(keys) => every_second(keys),
            Self::Dentry(keys) => every_second(keys),
            Self::Inode(keys) => every_second(keys),
            Self::Number(keys) => every_second(keys),
            Self::Bytes(keys) => {
                let mut slices = keys.slices();
                every_second(&mut slices);
                *keys = ByteKeys::of(&slices);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(all: &[&[u8]]) -> Keys {
        Keys::Bytes(ByteKeys::of(all))
    }

    #[test]
    fn equal_keys_are_kept_once() {
        let mut keys = bytes(&[b"b", b"", b"a\0\n", b"b", b""]);
        keys.deduplicate();
        assert_eq!(keys, bytes(&[b"", b"a\0\n", b"b"]));
        let mut keys = Keys::Number(vec![3, 1, 3]);
        keys.deduplicate();
        assert_eq!(keys, Keys::Number(vec![1, 3]));
    }

    #[test]
    fn appended_and_halved() {
        let mut keys = bytes(&[b"a", b"bc"]);
        let mut more = bytes(&[b"", b"d"]);
        keys.append(&mut more);
        assert_eq!((keys.len(), more.len()), (4, 0));
        keys.halve();
        assert_eq!(keys, bytes(&[b"a", b""]));
        let mut keys = Keys::Number(vec![1, 2, 3]);
        keys.halve();
        assert_eq!(keys, Keys::Number(vec![1, 3]));
        assert_eq!(keys.bytes(), 16);
    }

    #[test]
    fn only_bits_that_differ_are_flipped() {
        assert_eq!(varying_bits(&[0b1000_u64, 0b1001, 0b1100]), [0, 2]);
        let dentry = |parent, name_hash| Dentry { parent, name_hash };
        assert_eq!(varying_bits(&[dentry(1, 0), dentry(1, 4)]), [66]);
        assert_eq!(varying_bits::<u64>(&[]), [0_u32; 0]);
    }
}
