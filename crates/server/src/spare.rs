//! Buffers between two uses. A connection holds one only while it has something in it, so an idle
//! connection costs none, and the one that is used next is still in the processor's cache.

/// Buffers larger than this are given back to the allocator.
const BUFFER_MAX: usize = 64 << 10;

/// Bytes kept in all.
const KEPT_MAX: usize = 1 << 20;

/// A worker's stock of empty buffers.
#[derive(Default)]
pub(crate) struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// An empty buffer, the one given last if there is one.
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match self.buffers.pop() {
            Some(buffer) => {
                self.bytes -= buffer.capacity();
                buffer
            }
            None => Vec::new(),
        }
    }

    /// Keeps a buffer for the next, unless there is enough.
    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && capacity <= BUFFER_MAX && self.bytes + capacity <= KEPT_MAX {
            buffer.clear();
            self.bytes += capacity;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_a_bounded_stock() {
        let mut spare = Spare::default();
        spare.give(Vec::with_capacity(BUFFER_MAX + 1));
        assert_eq!(spare.take().capacity(), 0);
        for _ in 0..100 {
            spare.give(Vec::with_capacity(BUFFER_MAX));
        }
        assert!(spare.bytes <= KEPT_MAX);
        assert_eq!(spare.buffers.len(), KEPT_MAX / BUFFER_MAX);
        assert!(spare.take().capacity() >= BUFFER_MAX);
    }
}
