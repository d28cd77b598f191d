//! The same interface without DPDK: no table can be made.

use crate::{Error, Eviction};

/// `rte_hash` as a cache. This build has none: see the feature `rte-hash`.
#[derive(Debug)]
pub enum RteHash {}

impl RteHash {
    /// Always [`Error::NotBuilt`].
    pub fn new(_entries: u32, _room: u32, _eviction: Eviction) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    /// How many flows a table of `entries` places holds well: 15 of 16.
    pub const fn room_for(entries: u32) -> u32 {
        entries - entries / 16
    }

    /// Stores a flow's value.
    pub fn insert(&mut self, _flow: u64, _hash: u64, _value: u64) {
        match *self {}
    }

    /// Looks flows up.
    pub fn lookup_many(
        &self,
        _flows: &[u64],
        _hashes: &[u64],
        _values: &mut [u64],
        _hits: &mut [u64],
    ) -> usize {
        match *self {}
    }

    /// Whether the table lies on huge pages.
    pub fn huge_pages(&self) -> bool {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_that_it_is_not_built() {
        let error = RteHash::new(1024, RteHash::room_for(1024), Eviction::Oldest).unwrap_err();
        assert_eq!(error, Error::NotBuilt);
        assert!(error.to_string().contains("feature rte-hash"));
    }
}
