//! Comparisons by SSE2, which every x86-64 has, by AVX2, and by AVX-512.
//!
//! Each load is one `asm!` instruction, which the compiler can neither split nor repeat. Every x86-64
//! processor with these instructions loads each aligned word of up to 64 bits in a vector atomically.
//!
//! ```text
//! Tag16, AVX2, 2-4 BLP: both buckets, 32 bytes, by one load
//!
//! loaded   |tag v|tag v|tag v|tag v|tag v|tag v|tag v|tag v|
//! masked   |tag 0|tag 0|tag 0|tag 0|tag 0|tag 0|tag 0|tag 0|    and, value lanes cleared
//! compared | -1  |  0  |  0  | ...                              with the tag in every lane
//! collected  bit 0, 1, 2, ...                                   movmskps
//! ```

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Job, Matcher, Scalar};
use crate::entry::{Entry, Slot};

/// 16 bytes at a time.
#[derive(Clone, Copy)]
pub(crate) struct Sse2;

impl Matcher for Sse2 {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        match T::ENTRY {
            // SAFETY: SSE2 is part of x86-64; `in_fours` gives addresses of four slots.
            Entry::Tag16 => in_fours(slots, |at| unsafe { sse2_tag16(at, tag) }),
            // SAFETY: as above.
            Entry::Tag32 => in_fours(slots, |at| unsafe { sse2_tag32(at, tag) }),
            // SSE2 compares at most 32 bits: comparing both halves and combining them took 3 to 19 %
            // longer than one hash after the other (batches of 32, all layouts, 2^20 entries).
            Entry::Hash64 => Scalar::matches(slots, tag),
        }
    }
}

/// The masks of four slots each, combined. All numbers of slots are multiples of four
/// (`Matcher::matches`), so `compare` gets the addresses of four slots that are inside `slots`.
#[inline(always)]
fn in_fours<T: Slot>(slots: &[T], compare: impl Fn(*const u8) -> u32) -> u32 {
    let mut mask = 0;
    for (index, four) in slots.as_chunks::<4>().0.iter().enumerate() {
        mask |= compare(four.as_ptr().cast()) << (4 * index);
    }
    mask
}

/// # Safety
/// The 16 bytes from `at` on may be read.
#[inline]
unsafe fn load128(at: *const u8) -> __m128i {
    let loaded;
    // SAFETY: reads the 16 bytes that the caller promises, of any alignment, writes a register.
    unsafe {
        asm!(
            "movdqu {loaded}, [{at}]",
            at = in(reg) at,
            loaded = lateout(xmm_reg) loaded,
            options(nostack, readonly, preserves_flags)
        );
    }
    loaded
}

/// # Safety
/// Four entries of 4 bytes from `at` on may be read.
#[inline]
unsafe fn sse2_tag16(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's. Arithmetic on registers is SSE2, part of x86-64.
    unsafe {
        let tags = _mm_srli_epi32::<16>(load128(at));
        let same = _mm_cmpeq_epi32(tags, _mm_set1_epi32(tag as i32));
        _mm_movemask_ps(_mm_castsi128_ps(same)) as u32
    }
}

/// # Safety
/// Four entries of 8 bytes from `at` on may be read.
#[inline]
unsafe fn sse2_tag32(at: *const u8, tag: u64) -> u32 {
    // SAFETY: as above.
    unsafe {
        let (low, high) = (load128(at), load128(at.add(16)));
        // The tags are the odd lanes of both.
        let tags = _mm_shuffle_ps::<0b11_01_11_01>(_mm_castsi128_ps(low), _mm_castsi128_ps(high));
        let same = _mm_cmpeq_epi32(_mm_castps_si128(tags), _mm_set1_epi32(tag as i32));
        _mm_movemask_ps(_mm_castsi128_ps(same)) as u32
    }
}

/// 32 bytes at a time.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

impl Matcher for Avx2 {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        let bytes = slots.as_ptr().cast::<u8>();
        if size_of_val(slots) < 32 {
            // SAFETY: as below. Four slots of Tag16 are the only 16 bytes.
            return unsafe { avx2_tag16_four(bytes, tag) };
        }
        let step = if let Entry::Tag16 = T::ENTRY { 8 } else { 4 };
        let mut mask = 0;
        for first in (0..slots.len()).step_by(step) {
            // SAFETY: AVX2 was detected before this type was chosen (`super::dispatch`).
            // There are `step` slots from `first` on: numbers of slots are 4, 8 or 16, and four
            // slots of Tag16 are handled above.
            mask |= unsafe {
                let at = bytes.add(first * size_of::<T>());
                match T::ENTRY {
                    Entry::Tag16 => avx2_tag16(at, tag),
                    Entry::Tag32 => avx2_tag32(at, tag),
                    Entry::Hash64 => avx2_hash64(at, tag),
                }
            } << first;
        }
        mask
    }
}

/// # Safety
/// The 32 bytes from `at` on may be read; the machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load256(at: *const u8) -> __m256i {
    let loaded;
    // SAFETY: reads the 32 bytes that the caller promises, of any alignment, writes a register.
    unsafe {
        asm!(
            "vmovdqu {loaded}, [{at}]",
            at = in(reg) at,
            loaded = lateout(ymm_reg) loaded,
            options(nostack, readonly, preserves_flags)
        );
    }
    loaded
}

/// # Safety
/// Four entries of 4 bytes from `at` on may be read; the machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn avx2_tag16_four(at: *const u8, tag: u64) -> u32 {
    let loaded: __m128i;
    // SAFETY: as in `load256`, 16 bytes. Not `load128`: among AVX instructions those in SSE's
    // encoding are slow on some processors.
    unsafe {
        asm!(
            "vmovdqu {loaded}, [{at}]",
            at = in(reg) at,
            loaded = lateout(xmm_reg) loaded,
            options(nostack, readonly, preserves_flags)
        );
    }
    let same = _mm_cmpeq_epi32(_mm_srli_epi32::<16>(loaded), _mm_set1_epi32(tag as i32));
    _mm_movemask_ps(_mm_castsi128_ps(same)) as u32
}

/// # Safety
/// Eight entries of 4 bytes from `at` on may be read; the machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn avx2_tag16(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let loaded = unsafe { load256(at) };
    let tags = _mm256_and_si256(loaded, _mm256_set1_epi32(0xffff_0000_u32 as i32));
    let same = _mm256_cmpeq_epi32(tags, _mm256_set1_epi32((tag << 16) as i32));
    _mm256_movemask_ps(_mm256_castsi256_ps(same)) as u32
}

/// # Safety
/// Four entries of 8 bytes from `at` on may be read; the machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn avx2_tag32(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let loaded = unsafe { load256(at) };
    // The tag is the upper half of its word, whose sign bit movmskpd collects.
    let same = _mm256_cmpeq_epi32(loaded, _mm256_set1_epi32(tag as i32));
    _mm256_movemask_pd(_mm256_castsi256_pd(same)) as u32
}

/// # Safety
/// Four entries of 16 bytes from `at` on may be read; the machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn avx2_hash64(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let (low, high) = unsafe { (load256(at), load256(at.add(32))) };
    // Hashes of entries 0, 2, 1, 3, put in order after the comparison.
    let hashes = _mm256_unpacklo_epi64(low, high);
    let same = _mm256_cmpeq_epi64(hashes, _mm256_set1_epi64x(tag as i64));
    let same = _mm256_permute4x64_epi64::<0b11_01_10_00>(same);
    _mm256_movemask_pd(_mm256_castsi256_pd(same)) as u32
}

/// 64 bytes at a time, where a run of slots is that long.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Matcher for Avx512 {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        if size_of_val(slots) < 64 {
            return Avx2::matches(slots, tag);
        }
        let bytes = slots.as_ptr().cast::<u8>();
        let step = 64 / size_of::<T>();
        let mut mask = 0;
        for first in (0..slots.len()).step_by(step) {
            // SAFETY: AVX-512F was detected before this type was chosen (`super::dispatch`). Runs of
            // 64 bytes or more are multiples of 64 bytes: the number and the size of slots are powers
            // of two.
            mask |= unsafe {
                let at = bytes.add(first * size_of::<T>());
                match T::ENTRY {
                    Entry::Tag16 => avx512_tag16(at, tag),
                    Entry::Tag32 => avx512_tag32(at, tag),
                    Entry::Hash64 => avx512_hash64(at, tag),
                }
            } << first;
        }
        mask
    }
}

/// # Safety
/// The 64 bytes from `at` on may be read; the machine has AVX-512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load512(at: *const u8) -> __m512i {
    let loaded;
    // SAFETY: reads the 64 bytes that the caller promises, of any alignment, writes a register.
    unsafe {
        asm!(
            "vmovdqu64 {loaded}, [{at}]",
            at = in(reg) at,
            loaded = lateout(zmm_reg) loaded,
            options(nostack, readonly, preserves_flags)
        );
    }
    loaded
}

/// # Safety
/// Sixteen entries of 4 bytes from `at` on may be read; the machine has AVX-512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn avx512_tag16(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let loaded = unsafe { load512(at) };
    let tags = _mm512_srli_epi32::<16>(loaded);
    u32::from(_mm512_cmpeq_epi32_mask(tags, _mm512_set1_epi32(tag as i32)))
}

/// # Safety
/// Eight entries of 8 bytes from `at` on may be read; the machine has AVX-512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn avx512_tag32(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let loaded = unsafe { load512(at) };
    let tags = _mm512_srli_epi64::<32>(loaded);
    u32::from(_mm512_cmpeq_epi64_mask(tags, _mm512_set1_epi64(tag as i64)))
}

/// # Safety
/// Four entries of 16 bytes from `at` on may be read; the machine has AVX-512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn avx512_hash64(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let loaded = unsafe { load512(at) };
    let same = _mm512_cmpeq_epi64_mask(loaded, _mm512_set1_epi64(tag as i64));
    // Every second lane is a hash; gather bits 0, 2, 4 and 6.
    let hashes = u32::from(same) & 0b0101_0101;
    let pairs = (hashes | hashes >> 1) & 0b0011_0011;
    (pairs | pairs >> 2) & 0b1111
}

/// Does a job compiled for AVX2.
///
/// # Safety
/// The machine has AVX2 and BMI1.
#[target_feature(enable = "avx2,bmi1")]
pub(crate) unsafe fn with_avx2<J: Job>(job: J) -> J::Output {
    job.run::<Avx2>()
}

/// Does a job compiled for AVX-512.
///
/// # Safety
/// The machine has AVX-512F, AVX2 and BMI1.
#[target_feature(enable = "avx512f,avx2,bmi1")]
pub(crate) unsafe fn with_avx512<J: Job>(job: J) -> J::Output {
    job.run::<Avx512>()
}
