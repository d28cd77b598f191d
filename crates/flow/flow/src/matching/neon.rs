//! Comparisons by NEON, which every aarch64 has. Tested in an emulator (`scripts/aarch64.sh`); not
//! measured.
//!
//! Each load is one `asm!` instruction, as on x86-64; the architecture loads each aligned element of
//! a vector atomically. Elements have 32 bits: a whole tag, except for [`Entry::Hash64`], of which there
//! are no shared tables.

use std::arch::aarch64::*;
use std::arch::asm;

use super::Matcher;
use crate::entry::{Entry, Slot};

/// 16 bytes at a time.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Matcher for Neon {
    #[inline(always)]
    fn matches<T: Slot>(slots: &[T], tag: u64) -> u32 {
        let bytes = slots.as_ptr().cast::<u8>();
        let mut mask = 0;
        for first in (0..slots.len()).step_by(4) {
            // SAFETY: NEON is part of aarch64. There are four slots from `first` on, because all
            // numbers of slots are multiples of four (`Matcher::matches`); each of their bytes is
            // inside `slots`.
            mask |= unsafe {
                let at = bytes.add(first * size_of::<T>());
                match T::ENTRY {
                    Entry::Tag16 => tag16(at, tag),
                    Entry::Tag32 => tag32(at, tag),
                    Entry::Hash64 => hash64(at, tag),
                }
            } << first;
        }
        mask
    }
}

/// # Safety
/// The 16 bytes from `at` on may be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(at: *const u8) -> uint32x4_t {
    let loaded;
    // SAFETY: reads the 16 bytes that the caller promises, writes a register.
    unsafe {
        asm!(
            "ld1 {{{loaded:v}.4s}}, [{at}]",
            at = in(reg) at,
            loaded = lateout(vreg) loaded,
            options(nostack, readonly, preserves_flags)
        );
    }
    loaded
}

/// Lane `i` becomes bit `i`.
#[inline]
#[target_feature(enable = "neon")]
fn collect(same: uint32x4_t) -> u32 {
    // 1, 2, 4 and 8 where lanes are all ones, added up.
    const WEIGHTS: [u32; 4] = [1, 2, 4, 8];
    // SAFETY: reads the 16 bytes of WEIGHTS.
    let weights = unsafe { vld1q_u32(WEIGHTS.as_ptr()) };
    vaddvq_u32(vandq_u32(same, weights))
}

/// # Safety
/// Four entries of 4 bytes from `at` on may be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn tag16(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let tags = vshrq_n_u32::<16>(unsafe { load(at) });
    collect(vceqq_u32(tags, vdupq_n_u32(tag as u32)))
}

/// # Safety
/// Four entries of 8 bytes from `at` on may be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn tag32(at: *const u8, tag: u64) -> u32 {
    // SAFETY: the caller's.
    let (low, high) = unsafe { (load(at), load(at.add(16))) };
    // The tags are the odd lanes of both.
    collect(vceqq_u32(vuzp2q_u32(low, high), vdupq_n_u32(tag as u32)))
}

/// # Safety
/// Four entries of 16 bytes from `at` on may be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn hash64(at: *const u8, tag: u64) -> u32 {
    let mut mask = 0;
    for entry in 0..4 {
        // SAFETY: the caller's.
        let hash = unsafe { load(at.add(16 * entry)) };
        let same = vceqq_u64(vreinterpretq_u64_u32(hash), vdupq_n_u64(tag));
        mask |= ((vgetq_lane_u64::<0>(same) & 1) as u32) << entry;
    }
    mask
}
