//! Rules for the number of buckets of a kernel's tables: Linux' rules through time, and the paper's advice.
//!
//! The paper (sections 1 and 3) shows why a fixed size fails: 2048 buckets are enough for the page cache of 32 MB, and
//! far too few for 512 MB. It proposes sizes computed from the machine's memory at start, and finds those of Linux
//! 2.2.16 larger than necessary.

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Where today's kernel begins to let its tables grow more slowly than memory (64 GiB).
const ADAPT_FROM: u64 = 64 << 30;
/// Part of the memory that today's kernel gives a table at most.
const LARGE_SYSTEM_PART: u64 = 16;

/// A table of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelTable {
    /// The page cache (the paper's section 3.1).
    Page,
    /// The buffer cache (section 3.2).
    Buffer,
    /// The dentry cache (section 3.3).
    Dentry,
    /// The inode cache (section 3.4).
    Inode,
}

impl KernelTable {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Page, Self::Buffer, Self::Dentry, Self::Inode];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page cache",
            Self::Buffer => "buffer cache",
            Self::Dentry => "dentry cache",
            Self::Inode => "inode cache",
        }
    }

    /// Bytes of a bucket with pointers of 8 bytes: the page cache's is one pointer, the others' the
    /// two of a doubly linked list. Today's dentry and inode tables have one.
    const fn bucket_bytes(self, rule: Rule) -> u64 {
        match (self, rule) {
            (Self::Page, _) | (_, Rule::LargeSystemHash) => 8,
            (Self::Buffer | Self::Dentry | Self::Inode, _) => 16,
        }
    }
}

/// A rule by which the kernel's tables are or should be sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Linux 2.2.5: the same on every machine.
    Fixed,
    /// Linux 2.2.16: from the pages of the machine.
    Pages,
    /// Half of that, which the paper finds to perform well.
    HalfPages,
    /// A quarter of it, likewise.
    QuarterPages,
    /// Today's `alloc_large_system_hash`, which scales more slowly from 64 GiB on.
    LargeSystemHash,
    /// The paper's advice: the sizes that did best on its machine of 512 MB, in proportion.
    Advice,
}

impl Rule {
    /// All of them, the oldest first.
    pub const ALL: [Self; 6] = [
        Self::Fixed,
        Self::Pages,
        Self::HalfPages,
        Self::QuarterPages,
        Self::LargeSystemHash,
        Self::Advice,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "Linux 2.2.5 (fixed)",
            Self::Pages => "Linux 2.2.16 (from pages)",
            Self::HalfPages => "half of 2.2.16",
            Self::QuarterPages => "a quarter of 2.2.16",
            Self::LargeSystemHash => "Linux today (alloc_large_system_hash)",
            Self::Advice => "the paper's advice",
        }
    }
}

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Buckets, a power of two.
    pub buckets: u64,
    /// Bytes of all buckets.
    pub bytes: u64,
}

/// The size that a rule gives a kernel's table on a machine with `memory` bytes. `None` where the rule has no such
/// table: today's kernel finds pages and buffers by trees.
pub fn kernel(rule: Rule, table: KernelTable, memory: u64) -> Option<Size> {
    let pages = (memory / PAGE).max(1);
    let buckets = match rule {
        Rule::Fixed => fixed(table),
        Rule::Pages => from_pages(table, pages),
        Rule::HalfPages => part(from_pages(table, pages), table, 2),
        Rule::QuarterPages => part(from_pages(table, pages), table, 4),
        Rule::LargeSystemHash => large_system(table, memory)?,
        Rule::Advice => advice(table, pages),
    };
    let bytes = buckets * table.bucket_bytes(rule);
    Some(Size { buckets, bytes })
}

/// Linux 2.2.5 (Tables 1, 3, 4 and 5: "reference").
fn fixed(table: KernelTable) -> u64 {
    match table {
        KernelTable::Page => 1 << 11,
        KernelTable::Buffer => 1 << 15,
        KernelTable::Dentry => 1 << 10,
        KernelTable::Inode => 1 << 8,
    }
}

/// Linux 2.2.16 as the paper describes it: on 64 MB, 16384 page buckets, 64 K buffer buckets, 8192 dentry buckets, and
/// the inode table as before.
fn from_pages(table: KernelTable, pages: u64) -> u64 {
    match table {
        KernelTable::Page => pages.next_power_of_two(),
        // "It doesn't grow much as memory size increases past 128M": taken as not at all.
        KernelTable::Buffer => (4 * pages.min((128 << 20) / PAGE)).next_power_of_two(),
        KernelTable::Dentry => pages.div_ceil(2).next_power_of_two(),
        KernelTable::Inode => fixed(table),
    }
}

/// A part of what 2.2.16 takes; the inode table, which it leaves too small, is not made smaller.
fn part(buckets: u64, table: KernelTable, divisor: u64) -> u64 {
    match table {
        KernelTable::Inode => buckets,
        KernelTable::Page | KernelTable::Buffer | KernelTable::Dentry => (buckets / divisor).max(1),
    }
}

/// Today's kernel: one bucket for each 2^scale bytes, rounded up to a power of two.
fn large_system(table: KernelTable, memory: u64) -> Option<u64> {
    let scale = match table {
        KernelTable::Page | KernelTable::Buffer => return None,
        KernelTable::Dentry => 13,
        KernelTable::Inode => 14,
    };
    let quadruplings = (0..)
        .map_while(|power: u32| ADAPT_FROM.checked_mul(4_u64.checked_pow(power)?))
        .take_while(|&from| from < memory)
        .count() as u32;
    let buckets = (memory >> (scale + quadruplings))
        .max(1)
        .next_power_of_two();
    let most = memory / LARGE_SYSTEM_PART / table.bucket_bytes(Rule::LargeSystemHash);
    Some(buckets.min(power_of_two_up_to(most)))
}

/// The best sizes of the machine with 512 MB, which is 131072 pages: 32768 page buckets (Table 2), 16384
/// buffer buckets under shift-add (Table 3), 16384 dentry buckets (Table 4), 4096 inode buckets
/// (Table 5). On 32 MB this gives the 2048 page buckets that the paper calls enough there.
fn advice(table: KernelTable, pages: u64) -> u64 {
    let pages_per_bucket = match table {
        KernelTable::Page => 4,
        KernelTable::Buffer | KernelTable::Dentry => 8,
        KernelTable::Inode => 32,
    };
    pages.div_ceil(pages_per_bucket).next_power_of_two()
}

fn power_of_two_up_to(most: u64) -> u64 {
    most.checked_ilog2().map_or(1, |bits| 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn buckets(rule: Rule, table: KernelTable, memory: u64) -> u64 {
        kernel(rule, table, memory).unwrap().buckets
    }

    #[test]
    fn the_papers_examples() {
        use KernelTable::{Buffer, Dentry, Inode, Page};
        // Linux 2.2.16 on 64 MB.
        assert_eq!(buckets(Rule::Pages, Page, 64 * MIB), 16_384);
        assert_eq!(buckets(Rule::Pages, Buffer, 64 * MIB), 65_536);
        assert_eq!(buckets(Rule::Pages, Dentry, 64 * MIB), 8192);
        assert_eq!(buckets(Rule::Pages, Inode, 64 * MIB), 256);
        assert_eq!(buckets(Rule::HalfPages, Page, 64 * MIB), 8192);
        assert_eq!(buckets(Rule::QuarterPages, Page, 64 * MIB), 4096);
        // The buffer table stops at 128 MB.
        assert_eq!(
            buckets(Rule::Pages, Buffer, GIB),
            buckets(Rule::Pages, Buffer, 128 * MIB)
        );
        // The winners of Tables 2 to 5 on 512 MB, and 2048 page buckets on 32 MB.
        for (table, best) in [
            (Page, 32_768),
            (Buffer, 16_384),
            (Dentry, 16_384),
            (Inode, 4096),
        ] {
            assert_eq!(buckets(Rule::Advice, table, 512 * MIB), best);
        }
        assert_eq!(buckets(Rule::Advice, Page, 32 * MIB), 2048);
    }

    #[test]
    fn todays_kernel_adapts() {
        let dentries = |memory| kernel(Rule::LargeSystemHash, KernelTable::Dentry, memory).unwrap();
        // One bucket for 8 KiB: 64 GiB have 2^23.
        assert_eq!(dentries(64 * GIB).buckets, 1 << 23);
        // From there on the table doubles when memory quadruples: 1 TiB has 256 MiB, not 1 GiB.
        assert_eq!(dentries(1024 * GIB).bytes, 256 * MIB);
        assert_eq!(
            buckets(Rule::LargeSystemHash, KernelTable::Inode, 64 * GIB),
            1 << 22
        );
        assert_eq!(kernel(Rule::LargeSystemHash, KernelTable::Page, GIB), None);
        // At most a sixteenth, however small the machine.
        assert!(dentries(PAGE).bytes <= PAGE / 16);
    }

    #[test]
    fn every_size_of_memory_has_a_size_of_table() {
        for memory in [0, 1, 4095, 4096, 1 << 20, 1 << 40, 1 << 50, u64::MAX] {
            for rule in Rule::ALL {
                for table in KernelTable::ALL {
                    if let Some(size) = kernel(rule, table, memory) {
                        assert!(size.buckets.is_power_of_two() && size.bytes >= size.buckets);
                    }
                }
            }
        }
    }
}
