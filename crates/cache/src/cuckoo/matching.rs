//! Compares a tag with all slots of a bucket at once.
//!
//! A bucket is shared memory that writers change, so its words must be loaded atomically. The vector
//! versions do that inside one `asm!` block, whose loads stand for one relaxed load of each aligned
//! 64-bit word (every x86-64 with SSE2 or AVX2 loads aligned quadwords whole, also as part of a
//! vector); the compiler cannot split, repeat or move them. The scalar twin does it with atomics and
//! is what loom, Miri, sanitizers and other machines run.

use nuthatch_sync::shim::{AtomicU64, Ordering};

use super::layout::{Design, Slot};

/// One bit for each slot.
pub type Mask = u32;

/// Which comparison this machine runs, chosen once when an engine is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// One word after the other.
    Scalar,
    /// Two words at a time: every x86-64.
    Sse2,
    /// Four words at a time.
    Avx2,
}

impl Vector {
    /// The best that this machine has for this design.
    pub fn detect<D: Design>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        if D::SLOTS == 8 && D::TAG_BITS == 16 {
            return if std::arch::is_x86_feature_detected!("avx2") {
                Vector::Avx2
            } else {
                Vector::Sse2
            };
        }
        Vector::Scalar
    }
}

/// A way to compare: a type, so that the loop around it is compiled for it.
pub trait Matcher: Copy + Send {
    /// Slots of `bucket` whose tag is `tag`.
    fn matches<D: Design>(self, bucket: &[AtomicU64], tag: u64) -> Mask;
}

/// What every machine of this kind has: for where choosing would cost more than it gains.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
pub const BASELINE: Sse2 = Sse2;
/// What every machine of this kind has: for where choosing would cost more than it gains.
#[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
pub const BASELINE: Scalar = Scalar;

/// One word after the other.
#[derive(Clone, Copy)]
pub struct Scalar;

impl Matcher for Scalar {
    #[inline(always)]
    fn matches<D: Design>(self, bucket: &[AtomicU64], tag: u64) -> Mask {
        let mut mask = 0;
        for (index, word) in bucket.iter().enumerate() {
            let slot = Slot(word.load(Ordering::Relaxed));
            mask |= Mask::from(slot.tag::<D>() == tag) << index;
        }
        mask
    }
}

#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
pub use x86::{Avx2, Sse2};

#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
mod x86 {
    use std::arch::asm;

    use super::*;

    /// Two words at a time.
    #[derive(Clone, Copy)]
    pub struct Sse2;

    impl Matcher for Sse2 {
        #[inline(always)]
        fn matches<D: Design>(self, bucket: &[AtomicU64], tag: u64) -> Mask {
            if D::SLOTS != 8 || D::TAG_BITS != 16 {
                return Scalar.matches::<D>(bucket, tag);
            }
            assert!(bucket.len() == 8);
            let (a, b, c, d): (u32, u32, u32, u32);
            // SAFETY: reads the 64 bytes of `bucket` (asserted), which are aligned to 8; movdqu
            // does not care for more. Writes nothing but the named registers. SSE2 is part of
            // x86-64. Each pcmpeqw compares 16-bit lanes; the tag is the top lane of a word, so
            // the sign bit of each word says whether it matched, which movmskpd collects.
            unsafe {
                asm!(
                    "movq {tag}, {pattern}",
                    "punpcklqdq {tag}, {tag}",
                    "movdqu {v0}, [{bucket}]",
                    "movdqu {v1}, [{bucket} + 16]",
                    "movdqu {v2}, [{bucket} + 32]",
                    "movdqu {v3}, [{bucket} + 48]",
                    "pcmpeqw {v0}, {tag}",
                    "pcmpeqw {v1}, {tag}",
                    "pcmpeqw {v2}, {tag}",
                    "pcmpeqw {v3}, {tag}",
                    "movmskpd {a:e}, {v0}",
                    "movmskpd {b:e}, {v1}",
                    "movmskpd {c:e}, {v2}",
                    "movmskpd {d:e}, {v3}",
                    bucket = in(reg) bucket.as_ptr(),
                    pattern = in(reg) tag << 48,
                    tag = out(xmm_reg) _,
                    v0 = out(xmm_reg) _,
                    v1 = out(xmm_reg) _,
                    v2 = out(xmm_reg) _,
                    v3 = out(xmm_reg) _,
                    a = out(reg) a,
                    b = out(reg) b,
                    c = out(reg) c,
                    d = out(reg) d,
                    options(nostack, readonly, preserves_flags)
                );
            }
            a | b << 2 | c << 4 | d << 6
        }
    }

    /// Four words at a time.
    #[derive(Clone, Copy)]
    pub struct Avx2;

    impl Matcher for Avx2 {
        #[inline(always)]
        fn matches<D: Design>(self, bucket: &[AtomicU64], tag: u64) -> Mask {
            assert!(bucket.len() == 8 && D::TAG_BITS == 16);
            let (low, high): (u32, u32);
            // SAFETY: as for Sse2; AVX2 was detected before a value of this type was made. The
            // upper halves of all vector registers are cleared at the end, for the SSE code around;
            // all are named as clobbered, because code compiled for AVX may keep something there.
            unsafe {
                asm!(
                    "vmovq xmm0, {pattern}",
                    "vpbroadcastq ymm0, xmm0",
                    "vpcmpeqw ymm1, ymm0, [{bucket}]",
                    "vpcmpeqw ymm2, ymm0, [{bucket} + 32]",
                    "vmovmskpd {low:e}, ymm1",
                    "vmovmskpd {high:e}, ymm2",
                    "vzeroupper",
                    bucket = in(reg) bucket.as_ptr(),
                    pattern = in(reg) tag << 48,
                    low = out(reg) low,
                    high = out(reg) high,
                    out("xmm0") _,
                    out("xmm1") _,
                    out("xmm2") _,
                    out("xmm3") _,
                    out("xmm4") _,
                    out("xmm5") _,
                    out("xmm6") _,
                    out("xmm7") _,
                    out("xmm8") _,
                    out("xmm9") _,
                    out("xmm10") _,
                    out("xmm11") _,
                    out("xmm12") _,
                    out("xmm13") _,
                    out("xmm14") _,
                    out("xmm15") _,
                    options(nostack, readonly, preserves_flags)
                );
            }
            low | high << 4
        }
    }
}

#[cfg(all(test, target_arch = "x86_64", not(any(loom, miri))))]
mod tests {
    use super::super::layout::EightWay;
    use super::*;

    #[test]
    fn vectors_agree_with_the_scalar_twin() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            state >> 32
        };
        for _ in 0..10_000 {
            let bucket: Vec<AtomicU64> = (0..8)
                // Few tags, and the tag's pattern in the lower lanes too, to provoke false matches.
                .map(|_| AtomicU64::new(((random() % 4) << 48) | ((random() % 4) * 0x1_0001_0001)))
                .collect();
            let tag = random() % 4;
            let expected = Scalar.matches::<EightWay>(&bucket, tag);
            assert_eq!(Sse2.matches::<EightWay>(&bucket, tag), expected);
            if std::arch::is_x86_feature_detected!("avx2") {
                assert_eq!(Avx2.matches::<EightWay>(&bucket, tag), expected);
            }
        }
    }
}
