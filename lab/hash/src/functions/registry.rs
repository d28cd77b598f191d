//! All functions by name.

use super::{
    Function, ToBucket, ToHash, buffer_cache, bytes, dentry, golden, inode, jhash, multiplicative,
    page_cache, table_driven, task,
};
use crate::key::{Block, Dentry, Inode, Kind, Numeric, Page, with_bytes};
use crate::table::{Table, TableError};
use nuthatch_base::hash::KeyHasher;

/// Which tables a function can be used with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Any number of buckets.
    Any,
    /// Powers of two: the function masks.
    PowersOfTwo,
}

/// A function, what it takes and where it is from.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it computes, in a few words.
    pub about: &'static str,
    /// The paper's section, or the source.
    pub source: &'static str,
    /// True if it depends on the seed of the registry: without the seed an attacker cannot choose keys that collide.
    pub seeded: bool,
    /// The tables it can be used with.
    pub sizes: Sizes,
    forms: Forms,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Entry({})", self.name)
    }
}

type Form<K> = Option<Box<dyn Function<K>>>;
type OfBytes = Box<dyn for<'a> Function<&'a [u8]>>;

/// One function for each kind of key that it takes.
#[derive(Default)]
struct Forms {
    page: Form<Page>,
    block: Form<Block>,
    dentry: Form<Dentry>,
    inode: Form<Inode>,
    number: Form<u64>,
    bytes: Option<OfBytes>,
}

/// A type of key that the registry has functions for.
pub trait HashedKey: Copy + Ord + Send + Sync {
    /// Its kind.
    const KIND: Kind;

    /// An entry's function over this type of key.
    fn function(entry: &Entry) -> Option<&dyn Function<Self>>;
}

macro_rules! hashed_key {
    ($key:ty, $form:ident) => {
        impl HashedKey for $key {
            const KIND: Kind = <$key as Numeric>::KIND;

            fn function(entry: &Entry) -> Option<&dyn Function<Self>> {
                entry.forms.$form.as_deref()
            }
        }
    };
}

hashed_key!(Page, page);
hashed_key!(Block, block);
hashed_key!(Dentry, dentry);
hashed_key!(Inode, inode);
hashed_key!(u64, number);

impl<'a> HashedKey for &'a [u8] {
    const KIND: Kind = Kind::Bytes;

    fn function(entry: &Entry) -> Option<&dyn Function<&'a [u8]>> {
        match &entry.forms.bytes {
            Some(function) => Some(&**function),
            None => None,
        }
    }
}

impl Entry {
    /// True if it takes keys of this kind.
    pub fn takes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Page => self.forms.page.is_some(),
            Kind::Block => self.forms.block.is_some(),
            Kind::Dentry => self.forms.dentry.is_some(),
            Kind::Inode => self.forms.inode.is_some(),
            Kind::Number => self.forms.number.is_some(),
            Kind::Bytes => self.forms.bytes.is_some(),
        }
    }

    /// Errors: the table is not of a size that the function can be used with.
    pub fn check(&self, table: Table) -> Result<(), TableError> {
        match self.sizes {
            Sizes::PowersOfTwo if !table.is_power_of_two() => {
                Err(TableError::NotPowerOfTwo(table.buckets()))
            }
            Sizes::PowersOfTwo | Sizes::Any => Ok(()),
        }
    }
}

impl Forms {
    /// A function of one number: of every kind but bytes.
    fn of_number(function: impl Fn(u64, Table) -> u64 + Copy + Send + Sync + 'static) -> Self {
        Self {
            page: boxed(ToBucket(move |key: Page, table| {
                function(key.number(), table)
            })),
            block: boxed(ToBucket(move |key: Block, table| {
                function(key.number(), table)
            })),
            dentry: boxed(ToBucket(move |key: Dentry, table| {
                function(key.number(), table)
            })),
            inode: boxed(ToBucket(move |key: Inode, table| {
                function(key.number(), table)
            })),
            number: boxed(ToBucket(function)),
            bytes: None,
        }
    }

    /// A function from bytes to 64 bits: of every kind.
    fn of_bytes(function: impl Fn(&[u8]) -> u64 + Copy + Send + Sync + 'static) -> Self {
        Self {
            page: boxed(ToHash(move |key: Page| with_bytes(key, function))),
            block: boxed(ToHash(move |key: Block| with_bytes(key, function))),
            dentry: boxed(ToHash(move |key: Dentry| with_bytes(key, function))),
            inode: boxed(ToHash(move |key: Inode| with_bytes(key, function))),
            number: boxed(ToHash(move |key: u64| with_bytes(key, function))),
            bytes: Some(Box::new(ToHash(function))),
        }
    }

    /// A function from bytes to 32 bits: of every kind.
    fn of_bytes_32(function: impl Fn(&[u8]) -> u32 + Copy + Send + Sync + 'static) -> Self {
        let cut = move |bytes: &[u8], table: Table| table.cut32(function(bytes));
        fn form<K: Numeric>(
            cut: impl Fn(&[u8], Table) -> u64 + Copy + Send + Sync + 'static,
        ) -> Form<K> {
            let bucket = move |key: K, table| with_bytes(key, |bytes| cut(bytes, table));
            boxed(ToBucket(bucket))
        }
        Self {
            page: form(cut),
            block: form(cut),
            dentry: form(cut),
            inode: form(cut),
            number: form(cut),
            bytes: Some(Box::new(ToBucket(cut))),
        }
    }
}

fn boxed<K: Copy>(function: impl Function<K> + 'static) -> Form<K> {
    Some(Box::new(function))
}

/// All functions.
#[derive(Debug)]
pub struct Registry(Vec<Entry>);

impl Registry {
    /// All functions, the seeded ones under this seed.
    pub fn new(seed: u64) -> Self {
        let mut entries = paper();
        entries.extend(of_its_time());
        entries.extend(later());
        entries.extend(seeded(seed));
        Self(entries)
    }

    /// All entries: the paper's first, the seeded last.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The entry of this name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.name == name)
    }

    /// Those that take keys of this kind.
    pub fn taking(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.takes(kind))
    }
}

/// Our default function's name: [`KeyHasher`] under a seed.
pub const DEFAULT: &str = "rapidhash-seeded";

const PAGE: &str = "the paper, page cache";
const BUFFER: &str = "the paper, buffer cache";
const DENTRY: &str = "the paper, dentry cache";
const INODE: &str = "the paper, inode cache";
const MULTIPLICATIVE: &str = "the paper, multiplicative hashing";
const MC68000: &str = "for an MC68000; the paper, section 6";
const TABLE_DRIVEN: &str = "the paper, appendix A";

/// The paper's. All of them mask.
fn paper() -> Vec<Entry> {
    let entry = |name, about, source, forms| Entry {
        name,
        about,
        source,
        seeded: false,
        sizes: Sizes::PowersOfTwo,
        forms,
    };
    let page = |page| Forms {
        page,
        ..Forms::default()
    };
    let dentry = |dentry| Forms {
        dentry,
        ..Forms::default()
    };
    let block = |block| Forms {
        block,
        ..Forms::default()
    };
    let inode = |inode| Forms {
        inode,
        ..Forms::default()
    };
    vec![
        entry(
            "page-shift-add",
            "s(i + o)",
            PAGE,
            page(boxed(ToBucket(page_cache::shift_add))),
        ),
        entry(
            "page-shift-add-offset",
            "s(i + o + offset)",
            PAGE,
            page(boxed(ToBucket(page_cache::shift_add_offset))),
        ),
        entry(
            "buffer-xor",
            "device ^ block",
            BUFFER,
            block(boxed(ToBucket(buffer_cache::xor))),
        ),
        entry(
            "steiner",
            "block * 127 + (block >> 10) + (block >> 18)",
            BUFFER,
            Forms {
                block: boxed(ToBucket(buffer_cache::steiner::<Block>)),
                number: boxed(ToBucket(buffer_cache::steiner::<u64>)),
                ..Forms::default()
            },
        ),
        entry(
            "dentry-shift-xor",
            "h ^ (h >> bits) ^ (h >> 2 bits)",
            DENTRY,
            dentry(boxed(ToBucket(dentry::shift_xor))),
        ),
        entry(
            "dentry-shift-add",
            "h + (h >> bits) + (h >> 2 bits)",
            DENTRY,
            dentry(boxed(ToBucket(dentry::shift_add))),
        ),
        entry(
            "inode-shift-add",
            "t + (t >> bits) + (t >> 2 bits)",
            INODE,
            inode(boxed(ToBucket(inode::shift_add))),
        ),
        entry(
            "mult-11",
            "key * 2654435761 >> 11",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::shifted::<11>),
        ),
        entry(
            "mult-16",
            "key * 2654435761 >> 16",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::shifted::<16>),
        ),
        entry(
            "mult-17",
            "key * 2654435761 >> 17",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::shifted::<17>),
        ),
        entry(
            "mult-18",
            "key * 2654435761 >> 18",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::shifted::<18>),
        ),
        entry(
            "mult-top",
            "key * 2654435761 >> (32 - bits)",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::top),
        ),
        entry(
            "mult-top-64",
            "key * 2654435761 >> (64 - bits), in 64 bits",
            MULTIPLICATIVE,
            Forms::of_number(multiplicative::top_64),
        ),
    ]
}

/// Those of the paper's time that it names, and gives no code of.
fn of_its_time() -> Vec<Entry> {
    let entry = |name, about, source, sizes, forms| Entry {
        name,
        about,
        source,
        seeded: false,
        sizes,
        forms,
    };
    vec![
        entry(
            "mulu-16",
            "(key ^ key >> 16) * 40503 >> (16 - bits), in 16 bits",
            MC68000,
            Sizes::PowersOfTwo,
            Forms::of_number(multiplicative::mulu),
        ),
        entry(
            "mulu-thrice",
            "mult-top from three products of 16 bits by 16",
            MC68000,
            Sizes::PowersOfTwo,
            Forms::of_number(multiplicative::mulu_thrice),
        ),
        entry(
            "task-xor",
            "number ^ (number >> 8)",
            "Linux 2.2, pid and uid tables",
            Sizes::PowersOfTwo,
            Forms::of_number(task::shift_xor),
        ),
        entry(
            "tabulation",
            "a table a byte, xored, 32 bits",
            TABLE_DRIVEN,
            Sizes::Any,
            Forms::of_bytes_32(table_driven::tabulation),
        ),
        entry(
            "one-table",
            "turn and xor a table's word, a byte at a time, 32 bits",
            TABLE_DRIVEN,
            Sizes::Any,
            Forms::of_bytes_32(table_driven::one_table),
        ),
        entry(
            "pearson",
            "Pearson's, four times, 32 bits",
            "Pearson, CACM 1990",
            Sizes::Any,
            Forms::of_bytes_32(table_driven::pearson),
        ),
        entry(
            "crc32-table",
            "CRC-32 (IEEE), a byte at a time by a table",
            TABLE_DRIVEN,
            Sizes::Any,
            Forms::of_bytes_32(table_driven::crc32),
        ),
    ]
}

/// Those that came after, without a seed.
fn later() -> Vec<Entry> {
    let entry = |name, about, source, forms| Entry {
        name,
        about,
        source,
        seeded: false,
        sizes: Sizes::Any,
        forms,
    };
    let linux = "Linux, include/linux/hash.h";
    vec![
        entry(
            "hash_32",
            "the top bits of key * 0x61C88647",
            linux,
            Forms::of_number(golden::hash_32),
        ),
        entry(
            "hash_64",
            "the top bits of key * 0x61C8864680B583EB",
            linux,
            Forms::of_number(golden::hash_64),
        ),
        entry(
            "identity",
            "key % buckets",
            "-",
            Forms::of_number(|number, table| number % table.buckets()),
        ),
        entry(
            "jhash",
            "Jenkins lookup3, 32 bits",
            "Linux, include/linux/jhash.h",
            Forms::of_bytes_32(|bytes| jhash::jhash(bytes, 0)),
        ),
        entry(
            "crc32c",
            "CRC-32, Castagnoli",
            "crate crc32c",
            Forms::of_bytes_32(bytes::crc32c),
        ),
        entry(
            "fnv-1a",
            "xor and multiply, a byte at a time",
            "crate fnv",
            Forms::of_bytes(bytes::fnv_1a),
        ),
        entry(
            "xxh3",
            "XXH3, 64 bits",
            "crate xxhash-rust",
            Forms::of_bytes(bytes::xxh3),
        ),
        entry(
            "rapidhash",
            "rapidhash V3",
            "crate rapidhash",
            Forms::of_bytes(bytes::rapidhash),
        ),
    ]
}

/// Those that depend on a seed.
fn seeded(seed: u64) -> Vec<Entry> {
    let entry = |name, about, source, forms| Entry {
        name,
        about,
        source,
        seeded: true,
        sizes: Sizes::Any,
        forms,
    };
    // A second word for SipHash's key, which cannot be computed without the first.
    let sip_key = [seed, KeyHasher::seeded(seed).hash(b"the second word")];
    vec![
        entry(
            "siphash-1-3",
            "SipHash-1-3 under a secret key",
            "crate siphasher",
            Forms::of_bytes(move |bytes| bytes::siphash_1_3(bytes, sip_key)),
        ),
        entry(
            DEFAULT,
            "our default: rapidhash V3 nano under a secret seed",
            "KeyHasher",
            of_key_hasher(&KeyHasher::seeded(seed)),
        ),
    ]
}

/// Our own function. It holds its secrets, so each form has a clone of them.
fn of_key_hasher(hasher: &KeyHasher) -> Forms {
    fn form<K: Numeric>(hasher: &KeyHasher) -> Form<K> {
        let hasher = hasher.clone();
        let hash = move |key: K| with_bytes(key, |bytes| hasher.hash(bytes));
        boxed(ToHash(hash))
    }
    let bytes = hasher.clone();
    Forms {
        page: form(hasher),
        block: form(hasher),
        dentry: form(hasher),
        inode: form(hasher),
        number: form(hasher),
        bytes: Some(Box::new(ToHash(move |key: &[u8]| bytes.hash(key)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let registry = Registry::new(1);
        for entry in registry.entries() {
            assert!(std::ptr::eq(registry.find(entry.name).unwrap(), entry));
            assert!(Kind::ALL.iter().any(|&kind| entry.takes(kind)));
        }
        assert!(registry.find("no-such").is_none());
        assert!(registry.find(DEFAULT).is_some_and(|entry| entry.seeded));
    }

    #[test]
    fn a_type_finds_what_its_kind_takes() {
        fn agree<K: HashedKey>(registry: &Registry) {
            for entry in registry.entries() {
                assert_eq!(K::function(entry).is_some(), entry.takes(K::KIND));
            }
        }
        let registry = Registry::new(1);
        agree::<Page>(&registry);
        agree::<Block>(&registry);
        agree::<Dentry>(&registry);
        agree::<Inode>(&registry);
        agree::<u64>(&registry);
        agree::<&[u8]>(&registry);
    }

    #[test]
    fn masks_refuse_other_sizes() {
        let registry = Registry::new(1);
        let odd = Table::new(1000).unwrap();
        let check = |name| registry.find(name).unwrap().check(odd);
        assert_eq!(check("mult-11"), Err(TableError::NotPowerOfTwo(1000)));
        assert_eq!(check("hash_64"), Ok(()));
        assert_eq!(check(DEFAULT), Ok(()));
    }

    #[test]
    fn a_seed_changes_the_seeded_only() {
        let (one, other) = (Registry::new(1), Registry::new(2));
        let table = Table::of_bits(32);
        for (one, other) in one.entries().iter().zip(other.entries()) {
            let bucket = |entry| u64::function(entry).map(|f| f.bucket(77, table));
            let (one_bucket, other_bucket) = (bucket(one), bucket(other));
            assert_eq!(one_bucket != other_bucket, one.seeded, "{}", one.name);
        }
    }
}
