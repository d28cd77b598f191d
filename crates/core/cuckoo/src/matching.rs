//! Tag matching: it compares a tag with all slots of two buckets at once.
//!
//! A bucket is shared memory that writers change, so its words must be loaded atomically. The vector
//! versions do that inside one `asm!` block, whose loads stand for one relaxed load of each aligned
//! 64-bit word (every x86-64 loads aligned quadwords whole, also as part of a vector register); the
//! compiler cannot split, repeat or move them. The scalar version does it with atomics and is what loom,
//! Miri, ThreadSanitizer and other machines run.
//!
//! The top 16 bits of each word of a bucket are compared. AVX-512 compares a whole bucket in one
//! instruction: 7 instructions for both buckets, where the machine has it. SSE2, which every x86-64 has,
//! needs 25: it brings the tags of a bucket together in one register first. (AVX2 on whole words takes 34.)

use nuthatch_base::sync::shim::{AtomicU64, Ordering};

use super::layout::{SlotWord, Variant};

/// One bit for each slot: the first bucket's lowest, the second's above them.
pub type Mask = u32;

/// How this machine compares tags: detected once, when a table is made.
#[derive(Clone, Copy, Debug)]
pub struct Matching {
    /// Some: by AVX-512.
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(any(loom, miri, tsan)))),
        allow(dead_code, reason = "there is one way only")
    )]
    wide: Option<Avx512>,
}

/// The proof that the machine has AVX-512BW and BMI2: only [`wide`] makes one, when it has found them.
#[derive(Clone, Copy, Debug)]
struct Avx512;

impl Matching {
    /// The best way on this machine.
    pub fn detect() -> Self {
        Self { wide: wide() }
    }

    /// Slots of two buckets whose tag is `tag`; tag 0 finds the empty ones.
    #[inline(always)]
    pub fn matches<D: Variant>(self, first: &[AtomicU64], second: &[AtomicU64], tag: u64) -> Mask {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
        if D::SLOTS == 8 && D::TAG_BITS == 16 {
            return match self.wide {
                Some(wide) => matches_avx512(wide, first, second, tag),
                None => matches_sse2(first, second, tag),
            };
        }
        matches_scalar::<D>(first, second, tag)
    }

    /// The first slot of a bucket whose tag is `tag`.
    #[inline(always)]
    pub fn first_in<D: Variant>(self, bucket: &[AtomicU64], tag: u64) -> Option<usize> {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
        if D::SLOTS == 8 && D::TAG_BITS == 16 {
            let (lanes, a_slot) = match self.wide {
                Some(wide) => (lanes_avx512(wide, bucket, tag), 4),
                None => (lanes_sse2(bucket, tag), 2),
            };
            return (lanes != 0).then(|| lanes.trailing_zeros() as usize / a_slot);
        }
        let same = |word: &AtomicU64| SlotWord(word.load(Ordering::Relaxed)).tag::<D>() == tag;
        bucket.iter().position(same)
    }
}

/// True if there is AVX-512 that compares 16-bit lanes, of the generations (Ice Lake, Zen 4, and later)
/// which do not lower their clock for it.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
fn wide() -> Option<Avx512> {
    let found = is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi2");
    found.then_some(Avx512)
}

#[cfg(not(all(target_arch = "x86_64", not(any(loom, miri, tsan)))))]
fn wide() -> Option<Avx512> {
    None
}

/// One word after the other.
#[inline(always)]
fn matches_scalar<D: Variant>(first: &[AtomicU64], second: &[AtomicU64], tag: u64) -> Mask {
    let mut mask = 0;
    for (index, word) in first.iter().chain(second).enumerate() {
        let slot = SlotWord(word.load(Ordering::Relaxed));
        mask |= Mask::from(slot.tag::<D>() == tag) << index;
    }
    mask
}

/// All sixteen slots at a time, a bucket in a register.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
#[inline(always)]
fn matches_avx512(_: Avx512, first: &[AtomicU64], second: &[AtomicU64], tag: u64) -> Mask {
    assert!(first.len() == 8 && second.len() == 8);
    let mask: u64;
    // SAFETY: reads the 64 bytes of each bucket (asserted); the instructions are there (the
    // proof). Writes nothing but the named registers; of the vector registers one of the upper sixteen,
    // after which the usual instructions need no `vzeroupper`.
    //
    // Each comparison gives a bit a lane, four lanes a slot; `pext` picks the uppermost of each four.
    unsafe {
        std::arch::asm!(
            "vpbroadcastw zmm16, {tag:e}",
            "vpcmpeqw k1, zmm16, zmmword ptr [{first}]",
            "vpcmpeqw k2, zmm16, zmmword ptr [{second}]",
            "kunpckdq k1, k2, k1",
            "kmovq {mask}, k1",
            "pext {mask}, {mask}, {tops}",
            first = in(reg) first.as_ptr(),
            second = in(reg) second.as_ptr(),
            tag = in(reg) tag,
            tops = in(reg) 0x8888_8888_8888_8888_u64,
            mask = out(reg) mask,
            out("xmm16") _,
            out("k1") _,
            out("k2") _,
            options(nostack, readonly, preserves_flags)
        );
    }
    mask as Mask
}

/// The slots of one bucket: four bits a slot, of which the uppermost alone is set if its tag is `tag`.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
#[inline(always)]
fn lanes_avx512(_: Avx512, bucket: &[AtomicU64], tag: u64) -> u32 {
    assert!(bucket.len() == 8);
    let lanes: u32;
    // SAFETY: as in `matches_avx512`, for one bucket.
    unsafe {
        std::arch::asm!(
            "vpbroadcastw zmm16, {tag:e}",
            "vpcmpeqw k1, zmm16, zmmword ptr [{bucket}]",
            "kmovd {lanes:e}, k1",
            bucket = in(reg) bucket.as_ptr(),
            tag = in(reg) tag,
            lanes = lateout(reg) lanes,
            out("xmm16") _,
            out("k1") _,
            options(nostack, readonly, preserves_flags)
        );
    }
    lanes & 0x8888_8888
}

/// The same with two bits a slot, which are both set.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
#[inline(always)]
fn lanes_sse2(bucket: &[AtomicU64], tag: u64) -> u32 {
    assert!(bucket.len() == 8);
    let lanes: u32;
    // SAFETY: as in `matches_sse2`, for one bucket.
    unsafe {
        std::arch::asm!(
            "movd {tag}, {pattern:e}",
            "pshuflw {tag}, {tag}, 0",
            "punpcklqdq {tag}, {tag}",
            "movups {a}, [{bucket}]",
            "movups {b}, [{bucket} + 16]",
            "movups {c}, [{bucket} + 32]",
            "movups {d}, [{bucket} + 48]",
            "shufps {a}, {b}, 0xdd",
            "shufps {c}, {d}, 0xdd",
            "psrad {a}, 16",
            "psrad {c}, 16",
            "packssdw {a}, {c}",
            "pcmpeqw {a}, {tag}",
            "pmovmskb {lanes:e}, {a}",
            bucket = in(reg) bucket.as_ptr(),
            pattern = in(reg) tag as u32,
            lanes = lateout(reg) lanes,
            tag = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, readonly, preserves_flags)
        );
    }
    lanes
}

/// All sixteen slots at a time, the tags of a bucket in a register.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, tsan))))]
#[inline(always)]
fn matches_sse2(first: &[AtomicU64], second: &[AtomicU64], tag: u64) -> Mask {
    assert!(first.len() == 8 && second.len() == 8);
    let mask: u32;
    // SAFETY: reads the 64 bytes of each bucket (asserted), which are aligned to 8; movups does not
    // care for more. Writes nothing but the named registers. SSE2 is part of x86-64.
    //
    // `shufps 0xdd` takes the upper halves of four quadwords; `psrad` leaves their upper 16 bits,
    // the tags, as signed numbers, which `packssdw` narrows unchanged. `packsswb` narrows the
    // comparisons' all-ones and all-zeros to bytes, whose signs `pmovmskb` collects.
    unsafe {
        std::arch::asm!(
            "movd {tag}, {pattern:e}",
            "pshuflw {tag}, {tag}, 0",
            "punpcklqdq {tag}, {tag}",
            "movups {a}, [{first}]",
            "movups {b}, [{first} + 16]",
            "movups {c}, [{first} + 32]",
            "movups {d}, [{first} + 48]",
            "shufps {a}, {b}, 0xdd",
            "shufps {c}, {d}, 0xdd",
            "psrad {a}, 16",
            "psrad {c}, 16",
            "packssdw {a}, {c}",
            "pcmpeqw {a}, {tag}",
            "movups {b}, [{second}]",
            "movups {c}, [{second} + 16]",
            "movups {d}, [{second} + 32]",
            "movups {e}, [{second} + 48]",
            "shufps {b}, {c}, 0xdd",
            "shufps {d}, {e}, 0xdd",
            "psrad {b}, 16",
            "psrad {d}, 16",
            "packssdw {b}, {d}",
            "pcmpeqw {b}, {tag}",
            "packsswb {a}, {b}",
            "pmovmskb {mask:e}, {a}",
            first = in(reg) first.as_ptr(),
            second = in(reg) second.as_ptr(),
            pattern = in(reg) tag as u32,
            mask = lateout(reg) mask,
            tag = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            e = out(xmm_reg) _,
            options(nostack, readonly, preserves_flags)
        );
    }
    mask
}

#[cfg(all(test, target_arch = "x86_64", not(any(loom, miri, tsan))))]
mod tests {
    use super::super::layout::EightWay;
    use super::*;

    #[test]
    fn the_vectors_agree_with_the_scalar_version() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            state >> 32
        };
        // Also tags whose highest bit is set, and the largest.
        let tags = [0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff];
        for _ in 0..20_000 {
            // Few tags, and the tag's pattern in the lower lanes too, to provoke false matches.
            let mut tag = || tags[random() as usize % tags.len()];
            let mut bucket = || -> Vec<AtomicU64> {
                let words = (0..8).map(|_| (tag() << 48) | (tag() * 0x1_0001_0001));
                words.map(AtomicU64::new).collect()
            };
            let (first, second) = (bucket(), bucket());
            let tag = tag();
            let expected = matches_scalar::<EightWay>(&first, &second, tag);
            assert_eq!(matches_sse2(&first, &second, tag), expected);
            let chosen = Matching::detect();
            assert_eq!(chosen.matches::<EightWay>(&first, &second, tag), expected);
            let first_slot = (expected & 0xff != 0).then(|| expected.trailing_zeros() as usize);
            for wide in [None, chosen.wide] {
                let matching = Matching { wide };
                assert_eq!(matching.first_in::<EightWay>(&first, tag), first_slot);
            }
        }
    }
}
