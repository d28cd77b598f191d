//! The memory that a store of real items takes beside their keys and values. Both families have the same model, so that
//! they can be compared.

/// Bytes of a page, and of what items take besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Bytes of a page.
    pub page: u64,
    /// Bytes in front of each item.
    pub header: u64,
    /// Bytes in front of each piece of a value that is cut.
    pub piece_header: u64,
    /// The alignment of items and pieces, in bytes.
    pub unit: u64,
    /// Bytes outside of pages for each item.
    pub outside: f64,
    /// Bytes outside of pages for each byte of a page.
    pub bits: f64,
}

/// Pages have a power of two of bytes, between these, as in the engines.
const PAGE_MIN: u64 = 1 << 14;
const PAGE_MAX: u64 = 1 << 20;

/// Slots of the index have 8 bytes, and nine of ten are in use.
const INDEX: f64 = 8.0 / 0.9;

/// Bytes of a ghost.
const GHOST: f64 = 2.0;

/// A queue of chunks: a number of four bytes for each, and three bits to tell how often it was used, and whether ever.
const QUEUE: f64 = 4.0 + 3.0 / 8.0;

/// In a log the order is that of the records. Three bits for each 32 bytes.
const LOG_BITS: f64 = 3.0 / 8.0 / 32.0;

impl Costs {
    /// Pages of about one part in `pages` of the limit.
    fn new(limit: u64, pages: u64) -> Self {
        Self {
            page: (1 << (limit / pages).max(1).ilog2()).clamp(PAGE_MIN, PAGE_MAX),
            header: 16,
            piece_header: 16,
            unit: 8,
            outside: INDEX,
            bits: 0.0,
        }
    }

    /// The costs of chunks in size classes, whose queues have `ghosts` ghosts for each item.
    pub fn slab(limit: u64, pages: u64, ghosts: f64) -> Self {
        let costs = Self::new(limit, pages);
        Self {
            outside: costs.outside + QUEUE + GHOST * ghosts,
            ..costs
        }
    }

    /// The costs of a log, whose records lie one behind the other.
    pub fn log(limit: u64, pages: u64, ghosts: f64) -> Self {
        let costs = Self::new(limit, pages);
        Self {
            outside: costs.outside + GHOST * ghosts,
            bits: LOG_BITS,
            ..costs
        }
    }

    /// Pages that fit into the limit beside what `items` items take outside of pages.
    pub fn pages(&self, limit: u64, items: u64) -> usize {
        let left = limit as f64 - self.outside * items as f64;
        (left / (self.page as f64 * (1.0 + self.bits))).max(0.0) as usize
    }

    /// Bytes of an item or a piece with its header.
    pub fn record(&self, header: u64, bytes: u64) -> u64 {
        (header + bytes).next_multiple_of(self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_of_pages_leaves_fewer_of_them() {
        let costs = Costs::log(64 << 20, 256, 1.0);
        assert_eq!(costs.page, 256 << 10);
        // 1.2 % for bits.
        assert_eq!(costs.pages(64 << 20, 0), 253);
        // A million items: 10.9 bytes each.
        assert_eq!(costs.pages(64 << 20, 1_000_000), 211);
        assert_eq!(costs.pages(1 << 20, 1_000_000), 0);
        assert_eq!(costs.record(costs.header, 17), 40);
        assert_eq!(Costs::slab(1 << 20, 128, 1.0).page, 16 << 10);
        assert_eq!(Costs::slab(64 << 20, 128, 1.0).pages(64 << 20, 0), 128);
    }
}
