//! A worker's pool of free buffers. A connection holds a buffer only while the buffer has data, so an idle connection
//! needs none, and the buffer that is used next is still in the processor's cache.

/// Buffers larger than this are given back to the allocator.
const BUFFER_MAX: usize = 64 << 10;

/// Bytes kept by all workers together.
const KEPT_MAX: usize = 4 << 20;

/// A worker's pool of empty buffers.
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    /// Bytes that it keeps at most.
    kept_max: usize,
}

impl Pool {
    /// An empty pool, for one of this many workers.
    pub(crate) fn shared_by(workers: usize) -> Self {
        Self {
            buffers: Vec::new(),
            bytes: 0,
            kept_max: (KEPT_MAX / workers.max(1)).min(1 << 20),
        }
    }

    /// An empty buffer: the one given back last, or a new one.
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

    /// Keeps a buffer for the next use, unless it is too large or the pool is full.
    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && capacity <= BUFFER_MAX && self.bytes + capacity <= self.kept_max {
            buffer.clear();
            self.bytes += capacity;
            self.buffers.push(buffer);
        }
    }

    /// Bytes that it keeps now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back to the allocator all but this many buffers.
    #[inline]
    pub(crate) fn keep(&mut self, count: usize) {
        while self.buffers.len() > count {
            self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_a_bounded_number() {
        let mut pool = Pool::shared_by(4);
        pool.give(Vec::with_capacity(BUFFER_MAX + 1));
        assert_eq!(pool.take().capacity(), 0);
        for _ in 0..100 {
            pool.give(Vec::with_capacity(BUFFER_MAX));
        }
        assert!(pool.bytes <= KEPT_MAX / 4);
        assert_eq!(pool.buffers.len(), KEPT_MAX / 4 / BUFFER_MAX);
        assert!(pool.take().capacity() >= BUFFER_MAX);
        pool.keep(3);
        assert_eq!((pool.buffers.len(), pool.bytes), (3, 3 * BUFFER_MAX));
    }
}
