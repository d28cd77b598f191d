//! Buffers of each thread, for what has to be written before it can be lent.

use std::cell::RefCell;

/// Buffers that a thread keeps: a key and a value are lent at the same time, and so again in a computation's own calls.
const KEPT: usize = 4;
/// Bytes of the largest buffer that is kept, so that one large value holds no memory for ever.
const KEPT_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `write` with an empty buffer, which is used again. It may call this itself.
pub(super) fn with<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    // A thread that is ending may have lost them.
    let kept = BUFFERS.try_with(|buffers| buffers.borrow_mut().pop());
    let mut buffer = kept.ok().flatten().unwrap_or_default();
    let written = write(&mut buffer);
    if buffer.capacity() <= KEPT_BYTES {
        buffer.clear();
        let _ending = BUFFERS.try_with(|buffers| {
            let mut buffers = buffers.borrow_mut();
            if buffers.len() < KEPT {
                buffers.push(buffer);
            }
        });
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_those_of_inner_calls_are_others() {
        let place = with(|outer| {
            outer.extend([1; 100]);
            with(|inner| {
                assert!(inner.is_empty());
                inner.push(2);
            });
            assert_eq!(*outer, [1; 100]);
            outer.as_ptr()
        });
        with(|again| {
            assert!(again.is_empty());
            assert_eq!(again.as_ptr(), place);
        });
    }

    #[test]
    fn neither_large_buffers_nor_many_are_kept() {
        with(|buffer| buffer.reserve(KEPT_BYTES + 1));
        fn deep(levels: usize) {
            with(|buffer| {
                buffer.push(1);
                if levels > 0 {
                    deep(levels - 1);
                }
            });
        }
        deep(100);
        BUFFERS.with_borrow(|buffers| {
            assert_eq!(buffers.len(), KEPT);
            assert!(buffers.iter().all(|one| one.capacity() <= KEPT_BYTES));
        });
    }
}
