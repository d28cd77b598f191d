//! The chained engine's part of [`Reclaim`]: taking an item out of its chain.

use super::Chained;
use super::local::Local;
use nuthatch_store::item::Header;
use nuthatch_store::item::unlinked::Unlinked;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::reclaim::Reclaim;
use nuthatch_store::timestamps::Timestamps;

impl Reclaim for Chained {
    type Local = Local;

    fn timestamps(&self) -> &Timestamps {
        &self.timestamps
    }

    fn remove_from_index(
        &self,
        local: &mut Local,
        address: Address,
        doomed: impl Fn(&Header) -> bool,
    ) -> Option<Unlinked> {
        let key = self.store.copy_key(address)?;
        let locked = self.index.lock(self.hasher.hash(key.bytes()));
        // The key may have been torn, or the chunk reused: only finding the chunk in this very chain proves that it
        // holds an item.
        let found = self.find_at(&locked, address)?;
        if !doomed(&found.header) {
            return None;
        }
        let item = self.leave(&locked, &found);
        drop(locked);
        local.went(&self.population);
        Some(item)
    }
}
