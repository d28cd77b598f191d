//! 32-bit hashes that are fields of the caller's structs: a base pointer, a stride and a count.
//!
//! ```text
//! first               first + stride          first + 2 * stride
//! | hash | ........... | hash | ............... | hash | ...
//! ```

use std::ffi::c_void;
use std::marker::PhantomData;

use nuthatch_flow::widen;

use crate::status::Status;

/// Checked: all hashes can be read.
pub(crate) struct Strided<'a> {
    first: *const u8,
    stride: usize,
    count: usize,
    lifetime: PhantomData<&'a u32>,
}

impl<'a> Strided<'a> {
    /// # Safety
    /// `first` is NULL, or points into an array of the caller's that has four bytes, aligned or not, at each of `count`
    /// multiples of `stride` bytes from it; no code changes them for `'a`.
    pub(crate) unsafe fn checked(
        first: *const c_void,
        stride: usize,
        count: usize,
    ) -> Result<Self, Status> {
        if stride < size_of::<u32>() {
            return Err(Status::Stride);
        }
        let last = count.saturating_sub(1).checked_mul(stride);
        let bytes = last.and_then(|last| last.checked_add(size_of::<u32>()));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(Status::CountTooLarge);
        }
        if first.is_null() && count > 0 {
            return Err(Status::NullPointer);
        }
        Ok(Self {
            first: first.cast(),
            stride,
            count,
            lifetime: PhantomData,
        })
    }

    /// Stores the hashes from number `start` on in `widened`, 64 bits each, and returns the part of
    /// it that was filled.
    pub(crate) fn gather<'b>(&self, start: usize, widened: &'b mut [u64]) -> &'b [u64] {
        let count = widened.len().min(self.count.saturating_sub(start));
        let widened = &mut widened[..count];
        for (at, hash) in (start..).zip(widened.iter_mut()) {
            // SAFETY: `at` is below the count, so that the four bytes are in the caller's array, by
            // an offset that `checked` found to be below half the address space.
            let narrow = unsafe {
                self.first
                    .add(at * self.stride)
                    .cast::<u32>()
                    .read_unaligned()
            };
            *hash = widen(narrow);
        }
        widened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, packed)]
    struct Packet {
        length: u8,
        hash: u32,
        rest: [u8; 6],
    }

    #[test]
    fn hashes_are_found_whatever_the_stride_and_alignment() {
        let packets: Vec<_> = (0..100_u32)
            .map(|number| Packet {
                length: 0xff,
                hash: number * 0x0101_0101,
                rest: [0xff; 6],
            })
            .collect();
        let first = (&raw const packets[0].hash).cast();
        // SAFETY: the hashes of an array that is not changed.
        let hashes =
            unsafe { Strided::checked(first, size_of::<Packet>(), packets.len()) }.unwrap();
        let all: Vec<_> = packets.iter().map(|packet| widen(packet.hash)).collect();
        let mut room = [0; 32];
        for start in [0, 1, 68, 69, 99, 100, 101] {
            let expected = &all[start.min(100)..(start + 32).min(100)];
            assert_eq!(hashes.gather(start, &mut room), expected);
        }
        assert_eq!((packets[7].length, packets[7].rest), (0xff, [0xff; 6]));
    }

    #[test]
    fn sizes_and_pointers_are_checked() {
        let hash = 0_u32;
        let first = (&raw const hash).cast::<c_void>();
        // SAFETY: arguments that `checked` refuses are not read.
        let check = |first, stride, count| unsafe { Strided::checked(first, stride, count) }.err();
        let null = std::ptr::null();
        let half = isize::MAX as usize;
        assert_eq!(check(first, 4, 1), None);
        assert_eq!(check(null, 4, 0), None);
        assert_eq!(check(first, 3, 1), Some(Status::Stride));
        assert_eq!(check(null, 0, 0), Some(Status::Stride));
        assert_eq!(check(null, 4, 1), Some(Status::NullPointer));
        assert_eq!(check(first, usize::MAX, 1), None);
        assert_eq!(check(first, usize::MAX, 2), Some(Status::CountTooLarge));
        assert_eq!(check(first, usize::MAX, 3), Some(Status::CountTooLarge));
        assert_eq!(check(first, half - 3, 2), Some(Status::CountTooLarge));
        assert_eq!(check(first, half - 4, 2), None);
        assert_eq!(check(first, 64, usize::MAX), Some(Status::CountTooLarge));
    }
}
