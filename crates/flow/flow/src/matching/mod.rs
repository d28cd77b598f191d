//! Compares a tag with all candidates of a key at once.
//!
//! Other threads change the slots of a shared table, so words must be loaded atomically: by atomics in
//! the scalar version, which loom, Miri and ThreadSanitizer run, and by single instructions in the
//! vector versions. The order of these loads does not matter. In a shared table the result is a hint: a
//! slot that matched is read again by [`Slot::load`], and a miss is validated.

#[cfg(all(target_arch = "aarch64", not(any(loom, miri, tsan))))]
mod neon;
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
mod x86;

use std::fmt;
use std::str::FromStr;

use crate::entry::Slot;
use crate::name::{UnknownName, by_name};

/// Which comparison a table runs, chosen once when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// One slot after the other: any processor.
    Scalar,
    /// 16 bytes at a time: every x86-64.
    Sse2,
    /// 32 bytes at a time: a 2-4 BLP key's candidates in one load.
    Avx2,
    /// 64 bytes at a time.
    Avx512,
    /// 16 bytes at a time: every aarch64.
    Neon,
}

impl Vector {
    /// All of them, the simplest first.
    pub const ALL: [Vector; 5] = [
        Vector::Scalar,
        Vector::Sse2,
        Vector::Avx2,
        Vector::Avx512,
        Vector::Neon,
    ];

    /// The fastest one, as measured, that this machine has.
    pub fn detect() -> Self {
        [Vector::Neon, Vector::Avx2, Vector::Sse2]
            .into_iter()
            .find(|one| one.is_available())
            .unwrap_or(Vector::Scalar)
    }

    /// Those that this machine has, the simplest first.
    pub fn available() -> impl Iterator<Item = Vector> {
        Self::ALL.into_iter().filter(|one| one.is_available())
    }

    /// True if this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Vector::Scalar => true,
            #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
            Vector::Sse2 => true,
            #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
            Vector::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("bmi1")
            }
            #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
            Vector::Avx512 => {
                Vector::Avx2.is_available() && std::arch::is_x86_feature_detected!("avx512f")
            }
            #[cfg(all(target_arch = "aarch64", not(any(loom, miri, tsan))))]
            Vector::Neon => true,
            #[allow(unreachable_patterns, reason = "not of this architecture")]
            _ => false,
        }
    }

    /// Its name: `scalar`, `sse2`, `avx2`, `avx512` or `neon`.
    pub const fn name(self) -> &'static str {
        match self {
            Vector::Scalar => "scalar",
            Vector::Sse2 => "sse2",
            Vector::Avx2 => "avx2",
            Vector::Avx512 => "avx512",
            Vector::Neon => "neon",
        }
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Vector {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name("vector", name, &Self::ALL, Self::name)
    }
}

/// A comparison as a type, so that the loop around it is compiled for it.
pub(crate) trait Matcher: Copy {
    /// Bit `i` is set if slot `i` has this tag. There are 4, 8 or 16 slots.
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32;
}

/// An operation that is generic over the comparison.
pub(crate) trait Job {
    /// The result.
    type Output;

    /// Runs it. Must be inlined into the function that is compiled for the processor.
    fn run<M: Matcher>(self) -> Self::Output;
}

/// Runs a job with the chosen comparison: the only place that branches on it.
#[inline(always)]
pub(crate) fn dispatch<J: Job>(vector: Checked, job: J) -> J::Output {
    match vector.0 {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
        Vector::Sse2 => job.run::<x86::Sse2>(),
        // SAFETY: a `Checked` is only created if the machine has it.
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
        Vector::Avx2 => unsafe { x86::with_avx2(job) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
        Vector::Avx512 => unsafe { x86::with_avx512(job) },
        #[cfg(all(target_arch = "aarch64", not(any(loom, miri, tsan))))]
        Vector::Neon => job.run::<neon::Neon>(),
        _ => job.run::<Scalar>(),
    }
}

/// A comparison that this machine has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked(Vector);

impl Checked {
    /// The scalar one if this machine does not have `vector`.
    pub fn new(vector: Vector) -> Self {
        if vector.is_available() {
            Self(vector)
        } else {
            Self(Vector::Scalar)
        }
    }

    /// Which one it is.
    pub fn get(self) -> Vector {
        self.0
    }
}

/// One slot after the other.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Matcher for Scalar {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        let mut mask = 0;
        for (index, slot) in slots.iter().enumerate() {
            mask |= u32::from(slot.load().tag == tag) << index;
        }
        mask
    }
}

/// The comparison that every processor of this architecture has, for operations where dispatching
/// costs more than it gains.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
pub(crate) type Baseline = x86::Sse2;
/// The comparison that every processor of this architecture has, for operations where dispatching
/// costs more than it gains.
#[cfg(all(target_arch = "aarch64", not(any(loom, miri, tsan))))]
pub(crate) type Baseline = neon::Neon;
/// The comparison that every processor of this architecture has, for operations where dispatching
/// costs more than it gains.
#[cfg(any(
    loom,
    miri,
    tsan,
    not(any(target_arch = "x86_64", target_arch = "aarch64"))
))]
pub(crate) type Baseline = Scalar;

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Content, Hash64, Tag16, Tag32};

    /// The matches of one run of slots.
    struct Run<'a, T>(&'a [T], u64);

    impl<T: Slot> Job for Run<'_, T> {
        type Output = u32;

        #[inline(always)]
        fn run<M: Matcher>(self) -> u32 {
            M::matches(self.0, self.1)
        }
    }

    /// All comparisons of this machine agree, on runs of all lengths at all starts.
    fn agree<T: Slot>(contents: &[(u64, u64)], tag: u64) {
        let slots: Vec<T> = contents
            .iter()
            .map(|&(tag, value)| {
                let slot = T::default();
                slot.store(Content { tag, value });
                slot
            })
            .collect();
        for length in [4, 8, 16] {
            for run in slots.windows(length) {
                let expected = Scalar::matches(run, tag);
                assert_eq!(Baseline::matches(run, tag), expected);
                for vector in Vector::available() {
                    let matches = dispatch(Checked::new(vector), Run(run, tag));
                    assert_eq!(matches, expected, "{vector} {} {length}", T::ENTRY);
                }
            }
        }
    }

    /// Few different numbers, at the edges of all widths, so that tags and values are often equal.
    fn part() -> impl Strategy<Value = u64> {
        let edges = [
            0,
            1,
            0x7fff,
            0x8000,
            0xffff,
            0x1_0000,
            0xffff_ffff,
            1 << 32,
            u64::MAX,
        ];
        prop_oneof![prop::sample::select(edges.to_vec()), 0..4_u64, any::<u64>()]
    }

    proptest! {
        #[test]
        fn vectors_agree_with_the_scalar_comparison(
            contents in prop::collection::vec((part(), part()), 16..24),
            tag in part(),
        ) {
            let narrow = |bits: u32| -> Vec<_> {
                let mask = (1 << bits) - 1;
                contents.iter().map(|&(tag, value)| (tag & mask, value & mask)).collect()
            };
            agree::<Tag16>(&narrow(16), tag & 0xffff);
            agree::<Tag32>(&narrow(32), tag & 0xffff_ffff);
            agree::<Hash64>(&contents, tag);
        }
    }

    #[test]
    fn names_are_read_back() {
        for vector in Vector::ALL {
            assert_eq!(vector.name().parse(), Ok(vector));
        }
        assert!(Vector::detect().is_available());
        assert_eq!(Vector::available().next(), Some(Vector::Scalar));
    }
}
