//! Keys as in the tables of the Linux paper (section 3), and keys of other programs: numbers and bytes.
//!
//! The paper's kernels hash the addresses of structures. Those belong to a running kernel, so a collector of keys
//! elsewhere makes up addresses; see each field.

/// What a key is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Page`].
    Page,
    /// [`Block`].
    Block,
    /// [`Dentry`].
    Dentry,
    /// [`Inode`].
    Inode,
    /// A number of 64 bits.
    Number,
    /// Any bytes.
    Bytes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Page,
        Self::Block,
        Self::Dentry,
        Self::Inode,
        Self::Number,
        Self::Bytes,
    ];

    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Block => "block",
            Self::Dentry => "dentry",
            Self::Inode => "inode",
            Self::Number => "number",
            Self::Bytes => "bytes",
        }
    }
}

/// A page of the page cache (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page {
    /// Address of the in-core inode of the file.
    pub inode: u64,
    /// Offset of the page in the file, in bytes.
    pub offset: u64,
}

/// A block of the buffer cache (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// Device number.
    pub device: u64,
    /// Block number on the device.
    pub block: u64,
}

/// A name in a directory (section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dentry {
    /// Address of the directory's dentry.
    pub parent: u64,
    /// Hash of the name: see [`name_hash`](crate::functions::dentry::name_hash).
    pub name_hash: u64,
}

/// An inode (section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// Address of the file system's superblock.
    pub superblock: u64,
    /// Inode number.
    pub number: u64,
}

/// Keys that are made of numbers.
pub trait Numeric: Copy + Ord + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;
    /// Bits in which keys may differ.
    const BITS: u32;

    /// The one number that a multiplicative function takes. It is folded as in the paper's functions: for a page and
    /// for a dentry the sum of its parts, for a block the block alone. For inodes the paper does not say: the sum.
    fn number(self) -> u64;

    /// The parts, the first first; the second is 0 for a plain number.
    fn parts(self) -> [u64; 2];

    /// From its parts.
    fn from_parts(parts: [u64; 2]) -> Self;
}

/// A kind of two numbers: `numeric!(Type, Kind, first field, second field, how to fold them)`.
macro_rules! numeric {
    ($key:ident, $first:ident, $second:ident, $fold:expr) => {
        impl Numeric for $key {
            const KIND: Kind = Kind::$key;
            const BITS: u32 = 128;

            #[inline(always)]
            fn number(self) -> u64 {
                let fold: fn(u64, u64) -> u64 = $fold;
                fold(self.$first, self.$second)
            }

            #[inline(always)]
            fn parts(self) -> [u64; 2] {
                [self.$first, self.$second]
            }

            #[inline(always)]
            fn from_parts([$first, $second]: [u64; 2]) -> Self {
                Self { $first, $second }
            }
        }
    };
}

numeric!(Page, inode, offset, u64::wrapping_add);
numeric!(Block, device, block, |_, block| block);
numeric!(Dentry, parent, name_hash, u64::wrapping_add);
numeric!(Inode, superblock, number, u64::wrapping_add);

impl Numeric for u64 {
    const KIND: Kind = Kind::Number;
    const BITS: u32 = 64;

    #[inline(always)]
    fn number(self) -> u64 {
        self
    }

    #[inline(always)]
    fn parts(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline(always)]
    fn from_parts([number, _]: [u64; 2]) -> Self {
        number
    }
}

/// The bytes of a numeric key, for functions over bytes: its parts, least byte first.
#[inline(always)]
pub fn with_bytes<K: Numeric, R>(key: K, take: impl FnOnce(&[u8]) -> R) -> R {
    let [first, second] = key.parts();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    take(&bytes[..(K::BITS / 8) as usize])
}

/// The key with one of its [`Numeric::BITS`] bits flipped.
pub fn flipped<K: Numeric>(key: K, bit: u32) -> K {
    let mut parts = key.parts();
    parts[(bit / 64) as usize] ^= 1 << (bit % 64);
    K::from_parts(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_the_papers() {
        let page = Page {
            inode: 5,
            offset: 7,
        };
        assert_eq!(page.number(), 12);
        let block = Block {
            device: 5,
            block: 7,
        };
        assert_eq!(block.number(), 7);
        let dentry = Dentry {
            parent: u64::MAX,
            name_hash: 3,
        };
        assert_eq!(dentry.number(), 2);
    }

    #[test]
    fn a_flip_changes_one_bit_of_the_bytes() {
        let key = Inode {
            superblock: 0,
            number: 0,
        };
        for bit in 0..Inode::BITS {
            let changed = with_bytes(flipped(key, bit), |bytes| {
                assert_eq!(bytes.len(), 16);
                bytes.iter().map(|byte| byte.count_ones()).sum::<u32>()
            });
            assert_eq!(changed, 1);
            assert_eq!(flipped(flipped(key, bit), bit), key);
        }
        assert_eq!(with_bytes(7_u64, <[u8]>::len), 8);
    }
}
